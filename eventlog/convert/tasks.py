"""The tasks up to the decision, each by itself: bring rows and a snapshot to partitions, compare
numbers, decide a partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eventlog.convert.collecting import (
    ByRanges,
    ByTransactions,
    WrittenChanges,
    transaction_labels,
)
from eventlog.convert.forms import ENDS, form_of, with_transaction
from eventlog.convert.inputs import Unit
from eventlog.convert.partitions import (
    BY_OBJECT,
    PACKED,
    PartitionFile,
    gather_batches,
    in_order,
    partition_file,
    ranges,
    read_label,
    sample,
    write_by,
)
from eventlog.convert.plan import range_count
from eventlog.convert.reading import read, read_log
from eventlog.convert.rows import OBJECT, OUTCOMES, PLACED, ROWS, Placing, bucket_of, integers
from eventlog.convert.settings import FilesInput, LogInput
from eventlog.convert.snapshot import PlacedTable, SnapshotFile, place_rows, reader_of
from eventlog.convert.step import CHANGE, DUPLICATE, ENDING, Keep, Reread, kind_of, step
from eventlog.convert.taken import ALL, ConvertedRows
from eventlog.convert.work import ConversionTask, Task, advance
from eventlog.sql.names import TRANSACTION

NUMBERS: Final = pa.schema([("record_id", pa.int64())])


class UnitNumbers(Struct, kw_only=True):
    """What is noted about the rows of a unit and their record_ids as they come by.

    In an `ascending` unit each is above the one before, so none stands there twice.
    """

    rows: int = 0
    size: int = 0
    """The bytes of the rows in memory."""
    ascending: bool = True
    lowest: int | None = None
    highest: int | None = None
    sampled: list[int] = []
    left: dict[str, int] = {}
    """Rows that were left where they are, by the reason."""
    alone: int = 0
    """Rows that do not say their transaction."""

    def take(self, rows: pa.RecordBatch) -> None:
        """Note the rows of a batch."""
        positions = rows.column("record_id")
        self.rows += len(positions)
        self.size += rows.nbytes
        self.alone += rows.column(TRANSACTION).null_count
        known = positions.drop_null()
        if not len(known):
            return
        first, low, high = known[0].as_py(), pc.min(known).as_py(), pc.max(known).as_py()
        rising = pc.all(pc.greater(known.slice(1), known.slice(0, len(known) - 1))).as_py()
        # Of a single number it is None, and that is no descent.
        self.ascending &= rising is not False and (self.highest is None or first > self.highest)
        self.lowest = low if self.lowest is None else min(low, self.lowest)
        self.highest = high if self.highest is None else max(high, self.highest)
        self.sampled += sample(known)


def may_conflict(units: Sequence[UnitNumbers]) -> bool:
    """Return True if a record_id may be repeated: not if units ascend without overlap."""
    spans: list[tuple[int, int]] = []
    for unit in units:
        if not unit.ascending:
            return True
        if unit.lowest is not None and unit.highest is not None:
            spans.append((unit.lowest, unit.highest))
    return any(highest >= next_lowest for (_, highest), (next_lowest, _) in pairwise(sorted(spans)))


def find_boundaries(units: Sequence[UnitNumbers]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Choose where ranges begin that are each fit for memory: of changes, and of outcomes, which have few bytes."""
    sampled = sorted(chain.from_iterable([unit.sampled for unit in units]))
    rows, size = sum([unit.rows for unit in units]), sum([unit.size for unit in units])
    return ranges(sampled, range_count(rows, size)), ranges(sampled, range_count(rows))


def count_left(units: Iterable[UnitNumbers]) -> dict[str, int]:
    """Count the rows left, by reason."""
    left = Counter[str]()
    for unit in units:
        left.update(unit.left)
    return dict(sorted(left.items()))


class Scatter(ConversionTask, frozen=True, kw_only=True):
    """One unit of the input, or the log as a whole, to be scattered over the partitions of its
    rows' objects.
    """

    unit: Unit | None
    buckets: int
    taken: ConvertedRows = ALL


class Scattered(Struct, frozen=True, kw_only=True):
    """What came of it."""

    file: PartitionFile
    numbers: UnitNumbers


def scatter(task: Scatter) -> Scattered:
    """Reads, places and writes the rows of a unit."""
    placing = Placing(task.conversion.catalog)
    numbers = UnitNumbers(left=dict(task.taken.left))
    with partition_file(Path(task.folder) / f"{task.name}.arrow", PLACED) as writer:
        for rows in gather_batches(_read(task), ROWS):
            placed = placing.place(task.taken.keep(rows))
            numbers.take(placed)
            write_by(writer, placed, bucket_of(placed.column(OBJECT), task.buckets))
            advance(len(rows))
    return Scattered(file=writer.finished(), numbers=numbers)


def _read(task: Scatter) -> Iterator[pa.RecordBatch]:
    source = task.conversion.input
    if isinstance(source, FilesInput):
        assert task.unit is not None
        return read(task.unit, source.clock)
    assert isinstance(source, LogInput)
    return read_log(source)


class SnapshotFiles(ConversionTask, frozen=True, kw_only=True):
    """The files of one table of the snapshot, to be brought to the partitions."""

    file: SnapshotFile
    buckets: int


def place(task: SnapshotFiles) -> PlacedTable:
    """Write the rows of a table under the partitions of their objects."""
    catalog = task.conversion.catalog
    assert catalog is not None
    batches = place_rows(task.file, catalog)
    # A partition file has a schema from the beginning, and the first batch gives it.
    first = next(batches, None)
    if first is None:
        return PlacedTable(table=task.file.table, child=task.file.child)
    with partition_file(Path(task.folder) / f"{task.name}.arrow", first.schema) as writer:
        for batch in chain([first], batches):
            write_by(writer, batch, bucket_of(batch.column(OBJECT), task.buckets))
    return PlacedTable(table=task.file.table, child=task.file.child, file=writer.finished())


class Decide(ConversionTask, frozen=True, kw_only=True):
    """One partition, to be decided; what comes out is written by ranges of positions.

    `conflicts` are files of record_ids that stand at several objects. Outcomes have few bytes,
    however long the rows are, so they have ranges of their own.
    """

    bucket: int
    rows: tuple[PartitionFile, ...]
    conflicts: tuple[PartitionFile, ...]
    snapshot: tuple[PlacedTable, ...]
    boundaries: tuple[int, ...]
    outcome_boundaries: tuple[int, ...]


class DecidedBucket(WrittenChanges, frozen=True, kw_only=True):
    """What came of a partition; `outcomes` counts rows by status and reason. Where changes are to
    be brought together by their transactions, they are under the labels of these, and so are the
    `ends`.
    """

    ended: PartitionFile
    outcomes: dict[str, int]
    duplicates: int = 0
    ends: PartitionFile | None = None


class DecidedRows(Struct, frozen=True, kw_only=True):
    """What came of all rows, and what was noted about the record_ids of the units that they were
    read from.
    """

    numbers: Sequence[UnitNumbers]
    buckets: Sequence[DecidedBucket]
    boundaries: tuple[int, ...] = ()
    """Where ranges of changes begin."""


def decide(task: Decide, rows: Iterable[pa.RecordBatch] | None = None) -> DecidedBucket:
    """Decide the objects of a partition; `rows`, in any order, stand in for its files."""
    folder = Path(task.folder)
    if rows is None:
        rows = read_label(task.rows, task.bucket)
    ordered = in_order(rows, BY_OBJECT, folder / f"{task.name}.spill")
    keep = keep_in_file(folder / f"{task.name}.spool")
    counted, duplicates = Counter[str](), 0
    schema = form_of(task.conversion).schema
    if task.conversion.gathers:
        schema = with_transaction(schema)
    conflicts = numbers_in(task.conflicts)
    with (
        reader_of(task.conversion, task.snapshot, task.bucket) as reader,
        _changes_of(task, schema) as (rendered, ends),
        ByRanges.in_file(folder / f"{task.name}-outcomes.arrow", OUTCOMES, task.outcome_boundaries) as ended,
    ):
        for results in step(ordered, task.conversion, keep, reader=reader, conflicts=conflicts):
            kind = kind_of(results)
            if kind == CHANGE:
                rendered.take(results.select(schema.names))
                continue
            if kind == ENDING and ends is not None:
                ends.take(results.select(ENDS.names))
                continue
            if kind == DUPLICATE:
                duplicates += len(results)
            else:
                outcomes = results.select(OUTCOMES.names)
                ended.take(outcomes)
                counted.update(_count_outcomes(outcomes))
            advance(len(results))
    return DecidedBucket(
        rendered=rendered.finished(),
        ended=ended.finished(),
        outcomes=dict(counted),
        duplicates=duplicates,
        stamps=rendered.stamps,
        ends=None if ends is None else ends.finished(),
    )


@contextmanager
def _changes_of(task: Decide, schema: pa.Schema) -> Iterator[tuple[ByRanges | ByTransactions, ByTransactions | None]]:
    """Open the files for a partition's changes, and for the ends of gathered transactions."""
    file = Path(task.folder) / f"{task.name}-changes.arrow"
    if not task.conversion.gathers:
        with ByRanges.in_file(file, schema, task.boundaries) as rendered:
            yield rendered, None
        return
    labels = transaction_labels(task.boundaries)
    ends_file = file.with_name(f"{task.name}-ends.arrow")
    with (
        ByTransactions.in_file(file, schema, labels) as changes,
        ByTransactions.in_file(ends_file, ENDS, labels) as ends,
    ):
        yield changes, ends


def numbers_in(files: Sequence[PartitionFile]) -> Sequence[int]:
    """Read the numbers of files one after the other, without copies: they may be very many."""
    batches = [batch for file in files for batch in file.read()]
    table = pa.Table.from_batches(batches, NUMBERS).combine_chunks()
    # Without rows there is no chunk.
    if not len(table):
        return ()
    return integers(table.column(0).chunk(0))


def keep_in_file(path: Path) -> Keep:
    """Return a function to keep batches in this file, and remove it afterwards."""

    def reread() -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as reader:
            yield from reader

    @contextmanager
    def kept(batches: Iterable[pa.RecordBatch]) -> Iterator[Reread]:
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_stream(file, PLACED, options=PACKED) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        yield reread
        path.unlink(missing_ok=True)

    return kept


class Compare(Task, frozen=True, kw_only=True):
    """The outcomes in one range of positions, to be looked through for record_ids that have
    several.
    """

    ended: tuple[PartitionFile, ...]
    label: int


def find_contested(task: Compare) -> PartitionFile:
    """Find the record_ids with several outcomes: those of several objects, and of one in
    contradiction with itself.

    Rows of one object meet in their partition anyway. Different objects do not meet, so if a number
    may be there twice it is searched for among the outcomes; all is decided once more with the
    numbers found.
    """
    repeated = repeated_numbers([batch.column(0) for batch in read_label(task.ended, task.label)])
    with partition_file(Path(task.folder) / f"{task.name}.arrow", NUMBERS) as writer:
        if len(repeated):
            # In their order, so that the step can look among them by halves.
            ordered = repeated.take(pc.array_sort_indices(repeated))
            writer.write(task.label, pa.RecordBatch.from_arrays([ordered], schema=NUMBERS))
    return writer.finished()


def repeated_numbers(positions: Sequence[pa.Array]) -> pa.Array:
    """Find the numbers that stand there several times."""
    counted = pc.value_counts(pa.chunked_array(positions, pa.int64()))
    # Rows without a number are many alike, and are no conflict.
    return counted.filter(pc.greater(counted.field("counts"), 1)).field("values").drop_null()


def _count_outcomes(outcomes: pa.RecordBatch) -> dict[str, int]:
    """Count the rows by status and reason."""
    groups = pa.Table.from_batches([outcomes]).group_by(["status", "reason"])
    # It counts whole rows, so it takes no column.
    counts = groups.aggregate([([], "count_all")]).to_pylist()
    return {f"{row['status']} {row['reason']}": row["count_all"] for row in counts}
