"""The stages after the first, each task by itself: place a snapshot, decide a bucket, write parts, write outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eventlog.convert.chosen import form_of
from eventlog.convert.columns import OBJECT, OUTCOMES, PLACED
from eventlog.convert.conflicts import conflicts_of
from eventlog.convert.events import one_batch
from eventlog.convert.forms import STAMP, FileForm, Parts
from eventlog.convert.order import by_range
from eventlog.convert.parts import OUTCOMES_FILE, write_outcomes
from eventlog.convert.place import bucket_of
from eventlog.convert.readback import PlacedTable, reader_of
from eventlog.convert.scatter import write_by
from eventlog.convert.settings import Conversion
from eventlog.convert.sheaf import PACKED, Sheaf, SheafWriter, read_label, sheaf
from eventlog.convert.snapshot import SnapshotFile, placed_rows
from eventlog.convert.sorting import BY_OBJECT, BY_PLACE, BY_POSITION, OUTCOME_ORDER, in_order
from eventlog.convert.step import CHANGE, DUPLICATE, Keep, Reread, kind_of, step
from eventlog.convert.work import advance
from eventlog.core.model import Reason, Status
from eventlog.core.schema import Table

KEPT_BYTES: Final = 8_000_000
"""What was decided is written together, so that a range gets some hundreds of changes at a time."""


class SnapshotFiles(Struct, frozen=True, kw_only=True):
    """The files of one table of the snapshot, to be brought to the buckets."""

    name: str
    conversion: Conversion
    file: SnapshotFile
    buckets: int
    folder: str


class Decide(Struct, frozen=True, kw_only=True):
    """One bucket, to be decided; what comes out is written by ranges."""

    name: str
    conversion: Conversion
    bucket: int
    rows: tuple[Sheaf, ...]
    conflicts: tuple[Sheaf, ...]
    snapshot: tuple[PlacedTable, ...]
    boundaries: tuple[int, ...]
    folder: str


class DecidedBucket(Struct, frozen=True, kw_only=True):
    """What came of a bucket; `outcomes` counts rows by status and reason, `stamps` are the latest times by range."""

    rendered: Sheaf
    ended: Sheaf
    outcomes: dict[str, int]
    duplicates: int = 0
    stamps: dict[int, str] = {}


class Write(Struct, frozen=True, kw_only=True):
    """Some of the parts, to be written: changes number `first` to `last` of all, which begin in the range `range`."""

    name: str
    conversion: Conversion
    rendered: tuple[Sheaf, ...]
    first: int
    last: int
    range: int
    skipped: int
    """Changes of that range that belong to parts before."""
    stamp: str = ""
    """The latest time in the ranges before, in forms that number their changes."""
    tables: dict[int, Table] | None = None
    """What a stream's tables look like, by the numbers that its changes have for them."""
    folder: str
    staged: str


class WriteOutcomes(Struct, frozen=True, kw_only=True):
    """The outcomes of all rows, to be written."""

    name: str
    ended: tuple[Sheaf, ...]
    folder: str
    staged: str
    streamed: bool = False
    """The positions are those of a stream, as text."""
    refused: dict[int, str] = {}
    """What was not taken where changes were sent to, and why."""


def place(task: SnapshotFiles) -> PlacedTable:
    """Writes the rows of a table under the buckets of their objects."""
    catalog = task.conversion.catalog
    batches = placed_rows(task.file, catalog) if catalog is not None else iter(())
    first = next(batches, None)
    placed = PlacedTable(table=task.file.table, child=task.file.child)
    if first is None:
        return placed
    with sheaf(Path(task.folder) / f"{task.name}.arrow", first.schema) as writer:
        batch: pa.RecordBatch | None = first
        while batch is not None:
            write_by(writer, batch.cast(first.schema), bucket_of(batch.column(OBJECT), task.buckets))
            batch = next(batches, None)
    return PlacedTable(table=placed.table, child=placed.child, sheaf=writer.finished())


def decide(task: Decide, rows: Iterable[pa.RecordBatch] | None = None) -> DecidedBucket:
    """Decides the objects of a bucket; `rows` are its rows in no order where they stand in no sheaf."""
    folder = Path(task.folder)
    spill, spool = (folder / f"{task.name}.{use}" for use in ("spill", "spool"))
    conflicts = conflicts_of(task.conflicts, task.bucket)
    ordered = in_order(read_label(task.rows, task.bucket) if rows is None else rows, BY_OBJECT, spill)
    schema, counted, duplicates = form_of(task.conversion).schema, Counter[str](), 0
    with (
        reader_of(task.conversion, task.snapshot, task.bucket) as reader,
        _by_ranges(folder / f"{task.name}-changes.arrow", schema, task.boundaries) as rendered,
        _by_ranges(folder / f"{task.name}-outcomes.arrow", OUTCOMES, task.boundaries) as ended,
    ):
        for results in step(ordered, task.conversion, keep_in_file(spool), reader=reader, conflicts=conflicts):
            kind = kind_of(results)
            if kind == CHANGE:
                rendered.take(results.select(schema.names))
                continue
            if kind == DUPLICATE:
                duplicates += len(results)
            else:
                outcomes = results.select(OUTCOMES.names)
                ended.take(outcomes)
                counted.update(_counted(outcomes))
            advance(len(results))
    return DecidedBucket(
        rendered=rendered.finished(),
        ended=ended.finished(),
        outcomes=dict(counted),
        duplicates=duplicates,
        stamps=rendered.stamps,
    )


def keep_in_file(path: Path) -> Keep:
    """Keeps batches in this file, which is removed afterwards."""

    @contextmanager
    def kept(batches: Iterable[pa.RecordBatch]) -> Iterator[Reread]:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, PLACED, options=PACKED) as writer:
            for batch in batches:
                writer.write_batch(batch)
        yield lambda: _batches_of(path)
        path.unlink(missing_ok=True)

    return kept


def _batches_of(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as reader:
        yield from reader


def produce(task: Write | WriteOutcomes) -> int:
    """Writes parts or the outcomes; says how many."""
    if isinstance(task, WriteOutcomes):
        return write_outcomes(Path(task.staged) / OUTCOMES_FILE, _outcomes(task), streamed=task.streamed)
    settings = task.conversion
    found = InTheirOrder(task)
    rendered = found.batches()
    parts = Parts(first=task.first, part_events=settings.part_events, stamp=found.stamp)
    form = form_of(settings, task.tables)
    assert isinstance(form, FileForm)
    return form.write(Path(task.staged), rendered, parts)


class ByRanges:
    """Collects rows that begin with a position and writes them by ranges; rows without one are a range of their own."""

    def __init__(self, writer: SheafWriter, schema: pa.Schema, boundaries: tuple[int, ...]) -> None:
        self._writer = writer
        self._schema = schema
        self._boundaries = boundaries
        self._kept: list[pa.RecordBatch] = []
        self._size = 0
        self.stamps: dict[int, str] = {}

    def take(self, rows: pa.RecordBatch) -> None:
        """Takes rows in no order."""
        if len(rows):
            self._kept.append(rows)
            self._size += rows.nbytes
        if self._size >= KEPT_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what is there."""
        rows = one_batch(self._kept, self._schema)
        self._kept, self._size = [], 0
        positions = rows.column(0)
        if positions.null_count:
            self._writer.write(unnumbered(self._boundaries), rows.filter(positions.is_null()))
            rows = rows.filter(positions.is_valid())
        for label, part in by_range(rows, self._boundaries):
            self._writer.write(label, part)
            if STAMP in self._schema.names:
                self.stamps[label] = max(self.stamps.get(label, ""), latest(part))

    def finished(self) -> Sheaf:
        """What was written."""
        return self._writer.finished()


def unnumbered(boundaries: tuple[int, ...]) -> int:
    """The label of rows without a position: after the last range."""
    return len(boundaries) + 1


@contextmanager
def _by_ranges(path: Path, schema: pa.Schema, boundaries: tuple[int, ...]) -> Iterator[ByRanges]:
    with sheaf(path, schema) as writer:
        collected = ByRanges(writer, schema, boundaries)
        yield collected
        collected.flush()


def _counted(outcomes: pa.RecordBatch) -> dict[str, int]:
    """How many rows ended with each status and reason."""
    table = pa.Table.from_batches([outcomes]).group_by(["status", "reason"]).aggregate([([], "count_all")])
    return {f"{row['status']} {row['reason']}": row["count_all"] for row in table.to_pylist()}


class InTheirOrder:
    """What was written of a task's changes, in the order of their positions; `stamp` is the latest time before them."""

    def __init__(self, task: Write) -> None:
        self._task = task
        self._batches = self._in_order()
        self.stamp = task.stamp
        self._first: list[pa.RecordBatch] = []
        self._skip()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The changes."""
        left = self._task.last - self._task.first
        for batch in chain(self._first, self._batches):
            found = batch.slice(0, left)
            left -= len(found)
            if len(found):
                yield found
            if not left:
                return

    def _skip(self) -> None:
        skipped = self._task.skipped
        while skipped > 0:
            batch = next(self._batches)
            passed = batch.slice(0, skipped)
            skipped -= len(passed)
            if STAMP in batch.schema.names:
                self.stamp = max(self.stamp, latest(passed))
            self._first = [batch.slice(len(passed))]

    def _in_order(self) -> Iterator[pa.RecordBatch]:
        spill = Path(self._task.folder) / f"{self._task.name}.spill"
        for label in labels_of(self._task.rendered):
            if label >= self._task.range:
                yield from in_order(read_label(self._task.rendered, label), BY_POSITION, spill)


def labels_of(sheaves: Iterable[Sheaf]) -> list[int]:
    """The labels that any of the sheaves has, in their order."""
    return sorted({label for sheaf in sheaves for label in sheaf.labels})


def latest(rows: pa.RecordBatch) -> str:
    """The latest of the times."""
    return str(pc.max(rows.column(STAMP)).as_py() or "")


def _outcomes(task: WriteOutcomes) -> Iterator[pa.RecordBatch]:
    spill = Path(task.folder) / f"{task.name}.spill"
    for label in labels_of(task.ended):
        for batch in in_order(read_label(task.ended, label), BY_PLACE if task.streamed else OUTCOME_ORDER, spill):
            yield _not_taken(batch, task.refused) if task.refused else batch
            advance(len(batch))


def _not_taken(batch: pa.RecordBatch, refused: Mapping[int, str]) -> pa.RecordBatch:
    """The outcomes, but of what was not taken it is said."""
    rows = batch.to_pylist()
    numbered = batch.schema.names[0]
    for row in rows:
        if row[numbered] in refused:
            row |= {"status": Status.ERROR.value, "reason": Reason.REFUSED.value, "note": refused[row[numbered]]}
    return pa.RecordBatch.from_pylist(rows, batch.schema)
