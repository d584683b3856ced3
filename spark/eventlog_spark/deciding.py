"""What executors do after the shuffle: they decide buckets, and do the pipeline's tasks.

The work is the local engine's own. What it leaves are files that every node can see, in the
destination's work folder; they are called after their attempt, so that an attempt which Spark
repeats meets nothing of the one that failed.
"""

from __future__ import annotations

import os
import pickle  # only of tasks from our own driver, whose functions Spark pickles too
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import IO, Any, Final
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.collecting import Gather, gather
from eventlog.convert.folders import merge
from eventlog.convert.partitions import (
    BY_OBJECT,
    PartitionFile,
    in_order,
    labels_of,
    partition_file,
)
from eventlog.convert.rows import one_batch
from eventlog.convert.settings import Conversion
from eventlog.convert.snapshot import PlacedTable, reader_of
from eventlog.convert.step import step
from eventlog.convert.tasks import (
    NUMBERS,
    Decide,
    DecidedBucket,
    DecidedRows,
    UnitNumbers,
    decide,
    find_boundaries,
    keep_in_file,
    numbers_in,
    repeated_numbers,
)
from eventlog.convert.work import guard_task, without_collecting
from eventlog.convert.writing import Write, WriteOutcomes
from eventlog.core.errors import SourceError
from eventlog_spark.exchange import (
    CONFLICTS,
    NOTES,
    ROWS,
    TABLES,
    Blob,
    BlobFiles,
    Bundle,
    pack_rows,
    unbundle_blobs,
    unpack_rows,
)
from eventlog_spark.faults import travelling

HELD_BYTES: Final = 16_000_000
"""Packed rows of a task's buckets that are held in memory; more go to the disk."""

ANSWERS: Final = "content binary"
_arrow: Final = pa.schema([("content", pa.binary())])


Name = tuple[int, int | None]
"""A table of the catalog by its place, and a child table of it by its own."""


class BucketRules(Struct, frozen=True, kw_only=True):
    """How buckets are decided. `tables` are those of the snapshot, in the order of their blobs'
    kinds.

    `conflicts` are files of record_ids that stand at several objects. Without a `folder` that all
    nodes see, what was decided goes on as blobs.
    """

    conversion: Conversion
    tables: tuple[Name, ...] = ()
    conflicts: tuple[PartitionFile, ...] = ()
    folder: str | None = None


class BucketResult(Struct, frozen=True, kw_only=True):
    """What came of one bucket, where its ranges begin, and of the first bucket the notes that came
    to all tasks.
    """

    decided: DecidedBucket
    boundaries: tuple[int, ...]
    noted: tuple[UnitNumbers, ...] = ()


def together(answers: Iterable[bytes]) -> DecidedRows:
    """Join the answers of the buckets; SourceError if they were cut by different boundaries."""
    results = [msgspec.json.decode(answer, type=BucketResult) for answer in answers]
    boundaries_of_tasks = sorted({result.boundaries for result in results})
    # Spark repeats a task whose output it has lost; if the input was another one then, tasks that
    # were done before have cut what they wrote at other places.
    if len(boundaries_of_tasks) > 1:
        first_positions = [str(list(several[:3])) for several in boundaries_of_tasks[:2]]
        positions = " and then ".join(first_positions)
        what = "A part of the input was read twice and had changed"
        message = f"{what}: its ranges begin with the positions {positions}."
        hint = "Convert again when nobody writes to it."
        raise SourceError(message, hint=hint, may_pass=False)
    return DecidedRows(
        numbers=[unit for result in results for unit in result.noted],
        buckets=[result.decided for result in results],
        boundaries=results[0].boundaries if results else (),
    )


CHANGES: Final = 2
ENDED: Final = 3
ENDS: Final = 4
"""What blobs of a decided bucket hold, besides the answer (NOTES): changes or outcomes in one range
of positions. Where transactions are gathered, changes are those of some transactions, and their
ends come too.
"""


def decide_buckets(work: BucketRules, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decide these blobs' buckets; yield decided rows unless a folder takes them, then answers."""
    with travelling(), _buckets(work.tables, batches) as buckets:
        for number in buckets.numbers:
            answer = buckets.answer(number, work)
            bundle = Bundle(CHANGES)
            if work.folder is None:
                of_bucket = answer.decided
                files = {CHANGES: of_bucket.rendered, ENDED: of_bucket.ended, ENDS: of_bucket.ends}
                for kind, file in files.items():
                    if file is not None:
                        yield from give_away(bundle, kind, file)
            # Behind what was decided: a task that fails in between has answered nothing.
            bundle.add(Blob(bucket=0, kind=NOTES, content=msgspec.json.encode(answer)))
            yield from bundle.rest()


def find_repeated(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a row if a record_id has several of these outcomes, each in its range."""
    positions: dict[int, list[pa.Array]] = {}
    for blob in (blob for batch in batches for blob in unbundle_blobs(batch)):
        positions.setdefault(blob.bucket, []).extend(rows.column(0) for rows in unpack_rows(blob.content))
    if any(len(repeated_numbers(several)) for several in positions.values()):
        yield write_answer(b"")


def give_away(bundle: Bundle, kind: int, file: PartitionFile) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file as blobs under its labels, then remove the file."""
    for label, rows in zip(file.labels, file.read(), strict=True):
        bundle.add(Blob(bucket=label, kind=kind, content=pack_rows(rows)))
        yield from bundle.full()
    Path(file.path).unlink()


def gather_changes(
    conversion: Conversion,
    cut: tuple[int, ...],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Bring whole transactions' changes to the ranges of their ends; add a note for each label."""
    with travelling(), local_folder() as folder:
        with BlobFiles(folder) as files:
            for blob in (blob for batch in batches for blob in unbundle_blobs(batch)):
                files.take(blob)
        finished = {kind: (file,) for kind, file in files.finished().items()}
        bundle = Bundle(CHANGES)
        for label in labels_of(finished.get(CHANGES, ())):
            task = Gather(
                name=f"gathered-{label}",
                conversion=conversion,
                label=label,
                rendered=finished[CHANGES],
                ends=finished.get(ENDS, ()),
                boundaries=cut,
                folder=str(folder),
            )
            changes = guard_task(gather, task)
            yield from give_away(bundle, CHANGES, changes.rendered)
            bundle.add(Blob(bucket=0, kind=NOTES, content=msgspec.json.encode(changes)))
        yield from bundle.rest()


def decide_rows(
    order: Conversion,
    tables: tuple[Name, ...],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Decide the buckets of these blobs and yield the step's results."""
    with travelling(), without_collecting(), _buckets(tables, batches) as buckets:
        for number in buckets.numbers:
            yield from buckets.results(number, order)


@contextmanager
def _buckets(tables: tuple[Name, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[_Buckets]:
    """Take in the blobs of some buckets, and yield them for the block."""
    with local_folder() as folder, SpooledTemporaryFile(HELD_BYTES, dir=str(folder)) as rows:
        buckets = _Buckets(tables, folder, rows)
        buckets.drain(batches)
        yield buckets


class _Buckets:
    """Takes in the blobs of some buckets, all of them before the first row is decided."""

    def __init__(self, tables: tuple[Name, ...], folder: Path, rows: IO[bytes]) -> None:
        self._names = tables
        self._folder = folder
        self._noted: list[UnitNumbers] = []
        self._rows = rows
        self._extents: dict[int, list[tuple[int, int]]] = {}
        self._contested: dict[int, list[pa.RecordBatch]] = {}
        self._tables: dict[int, PartitionFile] = {}

    def drain(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Take in all blobs."""
        with BlobFiles(self._folder) as files:
            for blob in (blob for batch in batches for blob in unbundle_blobs(batch)):
                if blob.kind == NOTES:
                    self._noted.append(msgspec.json.decode(blob.content, type=UnitNumbers))
                    # The first bucket hands them on, though it may have no rows.
                    if not blob.bucket:
                        self._extents.setdefault(blob.bucket, [])
                elif blob.kind == CONFLICTS:
                    numbers = [rows.select(NUMBERS.names) for rows in unpack_rows(blob.content)]
                    self._contested.setdefault(blob.bucket, []).extend(numbers)
                elif blob.kind == ROWS:
                    extent = self._rows.tell(), len(blob.content)
                    self._extents.setdefault(blob.bucket, []).append(extent)
                    self._rows.write(blob.content)
                else:
                    # Rows of the snapshot, where the local engine looks for them.
                    files.take(blob)
        self._tables = files.finished()

    @cached_property
    def _boundaries(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return find_boundaries(self._noted)

    @property
    def numbers(self) -> list[int]:
        """List the buckets with something to decide; the first is among them if it has notes."""
        return sorted(self._extents)

    def answer(self, number: int, work: BucketRules) -> BucketResult:
        """Decide a bucket, with changes and outcomes in files by ranges."""
        cut, outcome_cut = self._boundaries
        task = Decide(
            # An attempt that Spark gave up may still write into its own file.
            name=f"bucket-{number:05d}-{uuid4().hex}",
            conversion=work.conversion,
            bucket=number,
            rows=(),
            conflicts=(*work.conflicts, *self._conflicts(number)),
            snapshot=self._place_tables(),
            boundaries=cut,
            outcome_boundaries=outcome_cut,
            folder=work.folder or str(self._folder),
        )
        bucket = guard_task(lambda task: decide(task, self._unpack_rows(number)), task)
        # They came to all tasks, and the driver needs them once.
        noted = tuple(self._noted) if number == 0 else ()
        return BucketResult(decided=bucket, boundaries=cut, noted=noted)

    def results(self, number: int, order: Conversion) -> Iterator[pa.RecordBatch]:
        """Decide a bucket and yield the step's results."""
        rows = in_order(self._unpack_rows(number), BY_OBJECT, self._folder / "spill")
        keep = keep_in_file(self._folder / "spool")
        conflicts = numbers_in(self._conflicts(number))
        with reader_of(order, self._place_tables(), number) as reader:
            yield from step(rows, order, keep, reader=reader, conflicts=conflicts)

    def _unpack_rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """Yield a bucket's rows of the log."""
        for start, size in self._extents[number]:
            self._rows.seek(start)
            yield from unpack_rows(self._rows.read(size))

    def _place_tables(self) -> tuple[PlacedTable, ...]:
        return tuple(
            PlacedTable(table=table, child=child, file=self._tables.get(TABLES + index))
            for index, (table, child) in enumerate(self._names)
        )

    def _conflicts(self, number: int) -> tuple[PartitionFile, ...]:
        """Write a bucket's contested record_ids in order, for the step."""
        if number not in self._contested:
            return ()
        numbers = one_batch(self._contested[number], NUMBERS).column(0).unique()
        ordered = numbers.take(pc.array_sort_indices(numbers))
        with partition_file(self._folder / f"conflicts-{number}.arrow", NUMBERS) as writer:
            writer.write(number, pa.RecordBatch.from_arrays([ordered], schema=NUMBERS))
        return (writer.finished(),)


def pack_tasks(tasks: Sequence[Any], parts: int = 1) -> pa.Table:
    """Pack tasks as rows in so many batches; their conversion travels once, with the code.

    A task goes to its own worker alone, for all together know every batch of every file.
    """
    contents = pa.array(list(map(_pack_task, tasks)), pa.binary())
    starts = [len(tasks) * part // parts for part in range(parts + 1)]
    batches = []
    for start, end in pairwise(starts):
        some = contents.slice(start, end - start)
        batches.append(pa.RecordBatch.from_arrays([some], schema=_arrow))
    return pa.Table.from_batches(batches)


def unpack_tasks(conversion: Conversion, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """Yield the packed tasks of a conversion in order."""
    for batch in batches:
        for content in batch.column(0):
            yield _TaskUnpickler(zlib.decompress(content.as_py()), conversion).load()


class _TaskPickler(pickle.Pickler):
    """Leaves a task's conversion out."""

    def persistent_id(self, obj: Any) -> bool | None:
        return isinstance(obj, Conversion) or None


class _TaskUnpickler(pickle.Unpickler):
    """Puts the conversion back."""

    def __init__(self, content: bytes, conversion: Conversion) -> None:
        super().__init__(BytesIO(content))
        self._conversion = conversion

    def persistent_load(self, pid: Any) -> Conversion:
        return self._conversion


def _pack_task(task: Any) -> bytes:
    packed = BytesIO()
    _TaskPickler(packed, pickle.HIGHEST_PROTOCOL).dump(task)
    return zlib.compress(packed.getvalue(), 1)


def do_tasks(
    function: Callable[[Any], Any], conversion: Conversion, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run the function on each task, under a name of this attempt's own, and yield the answers."""
    with travelling():
        for task in unpack_tasks(conversion, batches):
            named = replace(task, name=f"{task.name}-{uuid4().hex}")
            yield write_answer(msgspec.json.encode(guard_task(partial(_attempt, function), named)))


def _attempt(function: Callable[[Any], Any], task: Any) -> Any:
    """Write output into a folder of this attempt's own, and move it to its place when complete."""
    if not isinstance(task, Write | WriteOutcomes):
        return function(task)
    staged = Path(task.staged)
    attempt = staged.with_name(f"{staged.name}-{task.name}")
    attempt.mkdir()
    count = function(replace(task, staged=str(attempt)))
    merge(attempt, staged)
    return count


def write_answer(content: bytes) -> pa.RecordBatch:
    """Pack an answer for the driver."""
    return pa.RecordBatch.from_arrays([pa.array([content], pa.binary())], schema=_arrow)


@contextmanager
def local_folder() -> Iterator[Path]:
    """Make a temporary folder on a disk of Spark's, and remove it after the block."""
    # Not /tmp, which may be small, or in memory.
    places = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    with TemporaryDirectory(prefix="eventlog-", dir=places[0] or None) as folder:
        yield Path(folder)
