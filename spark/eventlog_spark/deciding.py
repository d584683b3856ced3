"""What executors do after the shuffle: they decide a bucket, and do the pipeline's tasks.

The work is the local engine's own. What it leaves are files that every node can see, in the destination's work folder;
they are called after their attempt, so that an attempt which Spark repeats meets nothing of the one that failed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import IO, Any, Final
from uuid import uuid4

import msgspec
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.commit import merge
from eventlog.convert.partitions import PartitionFile, PartitionWriter, partition_file
from eventlog.convert.settings import Conversion
from eventlog.convert.snapshot import PlacedTable, SnapshotFile
from eventlog.convert.tasks import Decide, DecidedBucket, UnitNumbers, decide
from eventlog.convert.work import guarded
from eventlog.convert.writing import Write, WriteOutcomes
from eventlog_spark.exchange import NOTES, ROWS, TABLES, Blob, unbundled, unpacked
from eventlog_spark.faults import travelling

HELD_BYTES: Final = 64_000_000
"""Packed rows of a bucket that are held in memory; more go to the disk."""

ANSWERS: Final = "content binary"
_arrow: Final = pa.schema([("content", pa.binary())])


class BucketRules(Struct, frozen=True, kw_only=True):
    """How buckets are decided. `conflicts` are files of record_ids that stand at several objects."""

    conversion: Conversion
    tables: tuple[SnapshotFile, ...]
    boundaries: tuple[int, ...]
    conflicts: tuple[PartitionFile, ...]
    folder: str


class BucketResult(Struct, frozen=True, kw_only=True):
    """What came of one bucket, and the notes that came along to it."""

    decided: DecidedBucket
    noted: tuple[UnitNumbers, ...] = ()


def decided(work: BucketRules, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decides the one bucket whose blobs come."""
    with travelling(), _local_folder() as folder, SpooledTemporaryFile(HELD_BYTES, dir=str(folder)) as rows:
        bucket = _Bucket(work, folder, rows)
        if bucket.drained(batches):
            yield answered(msgspec.json.encode(guarded(bucket.answer, work)))


class _Bucket:
    """Takes in a bucket's blobs, all of them before the first row is decided."""

    def __init__(self, work: BucketRules, folder: Path, rows: IO[bytes]) -> None:
        self._work = work
        self._folder = folder
        self._noted: list[UnitNumbers] = []
        self._number = 0
        self._rows = rows
        self._tables: dict[int, PartitionFile] = {}

    def drained(self, batches: Iterator[pa.RecordBatch]) -> bool:
        """Says whether anything came."""
        writers: dict[int, PartitionWriter] = {}
        with ExitStack() as files:
            for blob in (blob for batch in batches for blob in unbundled(batch)):
                self._number = blob.bucket
                if blob.kind == NOTES:
                    self._noted.append(msgspec.json.decode(blob.content, type=UnitNumbers))
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
            conflicts=work.conflicts,
            snapshot=tuple(self._placed()),
            boundaries=work.boundaries,
            folder=work.folder,
        )
        return BucketResult(decided=decide(task, self._unpacked()), noted=tuple(self._noted))

    def _take_table(self, blob: Blob, writers: dict[int, PartitionWriter], files: ExitStack) -> None:
        """Keeps rows of the snapshot where the local engine looks for them."""
        for rows in unpacked(blob.content):
            if blob.kind not in writers:
                writers[blob.kind] = files.enter_context(
                    partition_file(self._folder / f"{blob.kind}.arrow", rows.schema)
                )
            writers[blob.kind].write(blob.bucket, rows)

    def _unpacked(self) -> Iterator[pa.RecordBatch]:
        """The rows of the log."""
        self._rows.seek(0)
        while size := self._rows.read(8):
            yield from unpacked(self._rows.read(int.from_bytes(size, "little")))

    def _placed(self) -> Iterator[PlacedTable]:
        for place, file in enumerate(self._work.tables):
            yield PlacedTable(table=file.table, child=file.child, file=self._tables.get(TABLES + place))


def done(
    function: Callable[[Any], Any], tasks: Sequence[Any], places: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What the function answers of the tasks at these places, each under a name of its attempt's own."""
    with travelling():
        for batch in places:
            for place in batch.column(0).to_pylist():
                task = replace(tasks[place], name=f"{tasks[place].name}-{uuid4().hex}")
                yield answered(msgspec.json.encode(guarded(partial(_attempt, function), task)))


def _attempt(function: Callable[[Any], Any], task: Any) -> Any:
    """Writes output into a folder of the attempt's own, and moves what is complete to where it is expected."""
    if not isinstance(task, Write | WriteOutcomes):
        return function(task)
    staged = Path(task.staged)
    attempt = staged.with_name(f"{staged.name}-{task.name}")
    attempt.mkdir()
    count = function(replace(task, staged=str(attempt)))
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
