"""The steps on Spark after the shuffle: a bucket is decided, record_ids are compared, parts and outcomes are written.

The work is the local engine's own. What each step leaves is a file that every node can see, in the destination's work
folder; it is called after its attempt, so that an attempt which Spark repeats meets nothing of the one that failed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import IO, Any, Final
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.commit import merge
from eventlog.convert.conflicts import NUMBERS
from eventlog.convert.readback import PlacedTable
from eventlog.convert.settings import Conversion
from eventlog.convert.sheaf import Sheaf, SheafWriter, read_label, sheaf
from eventlog.convert.snapshot import SnapshotFile
from eventlog.convert.stages import Decide, DecidedBucket, Write, WriteOutcomes, decide, produce
from eventlog.convert.streams import ReadPiece, StreamResult, read_piece
from eventlog.convert.work import guarded
from eventlog_spark.blobs import NOTES, ROWS, TABLES, Blob, unbundled, unpacked
from eventlog_spark.faults import travelling
from eventlog_spark.scattering import Noted

HELD_BYTES: Final = 64_000_000
"""Packed rows of a bucket that are held in memory; more go to the disk."""

ANSWERS: Final = "content binary"
_arrow: Final = pa.schema([("content", pa.binary())])


class BucketRules(Struct, frozen=True, kw_only=True):
    """How buckets are decided. `conflicts` are record_ids that stand at several objects."""

    conversion: Conversion
    tables: tuple[SnapshotFile, ...]
    boundaries: tuple[int, ...]
    conflicts: tuple[int, ...]
    folder: str


class BucketResult(Struct, frozen=True, kw_only=True):
    """What came of one bucket, and the notes that came along to it."""

    decided: DecidedBucket
    noted: tuple[Noted, ...] = ()


class Compare(Struct, frozen=True, kw_only=True):
    """The outcomes in one range, to be looked through for record_ids that have several."""

    name: str
    ended: tuple[Sheaf, ...]
    label: int


def decided(work: BucketRules, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decides the one bucket whose blobs come."""
    with travelling(), _local_folder() as folder, SpooledTemporaryFile(HELD_BYTES, dir=str(folder)) as rows:
        bucket = _Bucket(work, folder, rows)
        if bucket.drained(batches):
            yield answered(msgspec.json.encode(guarded(bucket.answer, work)))


def compared(tasks: Sequence[Compare], places: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The record_ids that have several outcomes, of the tasks at these places."""
    yield from done(_contested, tasks, places)


def produced(tasks: Sequence[Write | WriteOutcomes], places: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Writes what the tasks at these places say; how many parts, or outcomes."""
    yield from done(_produce, tasks, places)


def read_pieces(tasks: Sequence[ReadPiece], places: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads the pieces of a captured stream at these places."""
    yield from done(_read, tasks, places)


class _Bucket:
    """Takes in a bucket's blobs, all of them before the first row is decided."""

    def __init__(self, work: BucketRules, folder: Path, rows: IO[bytes]) -> None:
        self._work = work
        self._folder = folder
        self._noted: list[Noted] = []
        self._number = 0
        self._rows = rows
        self._tables: dict[int, Sheaf] = {}

    def drained(self, batches: Iterator[pa.RecordBatch]) -> bool:
        """Says whether anything came."""
        writers: dict[int, SheafWriter] = {}
        with ExitStack() as files:
            for blob in (blob for batch in batches for blob in unbundled(batch)):
                self._number = blob.bucket
                if blob.kind == NOTES:
                    self._noted.append(msgspec.json.decode(blob.content, type=Noted))
                elif blob.kind == ROWS:
                    self._rows.write(len(blob.content).to_bytes(8, "little"))
                    self._rows.write(blob.content)
                else:
                    self._take_table(blob, writers, files)
        self._tables = {kind: writer.finished() for kind, writer in writers.items()}
        return bool(self._rows.tell() or self._noted)

    def answer(self, work: BucketRules) -> BucketResult:
        """Decides the bucket."""
        task = Decide(
            name=f"bucket-{self._number:05d}-{uuid4().hex}",
            conversion=work.conversion,
            bucket=self._number,
            rows=(),
            conflicts=(self._conflicts(),) if work.conflicts else (),
            snapshot=tuple(self._placed()),
            boundaries=work.boundaries,
            folder=work.folder,
        )
        return BucketResult(decided=decide(task, self._unpacked()), noted=tuple(self._noted))

    def _take_table(self, blob: Blob, writers: dict[int, SheafWriter], files: ExitStack) -> None:
        """Keeps rows of the snapshot where the local engine looks for them."""
        for rows in unpacked(blob.content):
            if blob.kind not in writers:
                writers[blob.kind] = files.enter_context(sheaf(self._folder / f"{blob.kind}.arrow", rows.schema))
            writers[blob.kind].write(blob.bucket, rows)

    def _unpacked(self) -> Iterator[pa.RecordBatch]:
        """The rows of the log."""
        self._rows.seek(0)
        while size := self._rows.read(8):
            yield from unpacked(self._rows.read(int.from_bytes(size, "little")))

    def _placed(self) -> Iterator[PlacedTable]:
        for place, file in enumerate(self._work.tables):
            yield PlacedTable(table=file.table, child=file.child, sheaf=self._tables.get(TABLES + place))

    def _conflicts(self) -> Sheaf:
        numbers = self._work.conflicts
        with sheaf(self._folder / "conflicts.arrow", NUMBERS) as writer:
            columns = [pa.array(numbers, pa.int64()), pa.nulls(len(numbers), pa.int64())]
            writer.write(self._number, pa.RecordBatch.from_arrays(columns, schema=NUMBERS))
        return writer.finished()


def done(
    function: Callable[[Any], Any], tasks: Sequence[Any], places: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What the function answers of the tasks at these places."""
    with travelling():
        for batch in places:
            for place in batch.column(0).to_pylist():
                yield answered(msgspec.json.encode(guarded(function, tasks[place])))


def _contested(task: Compare) -> list[int]:
    positions = [batch.column(0) for batch in read_label(task.ended, task.label)]
    counted = pc.value_counts(pa.chunked_array(positions, pa.int64()))
    several = counted.filter(pc.greater(counted.field("counts"), 1)).field("values")
    return [number for number in several.to_pylist() if number is not None]


def _read(task: ReadPiece) -> StreamResult:
    return read_piece(replace(task, name=f"{task.name}-{uuid4().hex}"))


def _produce(task: Write | WriteOutcomes) -> int:
    """Writes into a folder of the attempt's own, and moves what is complete to where it is expected."""
    staged = Path(task.staged)
    attempt = staged.with_name(f"{staged.name}-{task.name}-{uuid4().hex}")
    attempt.mkdir()
    count = produce(replace(task, name=f"{task.name}-{attempt.name}", staged=str(attempt)))
    merge(attempt, staged)
    return count


def answered(content: bytes) -> pa.RecordBatch:
    """An answer to the driver."""
    return pa.RecordBatch.from_arrays([pa.array([content], pa.binary())], schema=_arrow)


@contextmanager
def _local_folder() -> Iterator[Path]:
    """A folder on a disk of this machine that Spark was given for such things."""
    places = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    with TemporaryDirectory(prefix="eventlog-", dir=places[0] or None) as folder:
        yield Path(folder)
