"""The first stage: rows of one unit of the input are placed and written to a sheaf, under the bucket of their object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eventlog.convert.columns import OBJECT, PLACED, ROWS
from eventlog.convert.events import integers, one_batch
from eventlog.convert.inputs import Unit
from eventlog.convert.order import sample
from eventlog.convert.place import Placing, bucket_of
from eventlog.convert.readfiles import read
from eventlog.convert.readlog import read_log
from eventlog.convert.settings import Conversion, FilesInput, LogInput
from eventlog.convert.sheaf import Sheaf, SheafWriter, sheaf
from eventlog.convert.work import advance

GATHERED_ROWS: Final = 32_768
GATHERED_BYTES: Final = 8_000_000
"""Rows are written together, so that a bucket gets some hundreds of them at a time."""


class Scatter(Struct, frozen=True, kw_only=True):
    """One unit of the input, or the log as a whole, to be scattered over buckets."""

    name: str
    conversion: Conversion
    unit: Unit | None
    buckets: int
    folder: str


class Scattered(Struct, frozen=True, kw_only=True):
    """What came of it. In an `ascending` unit each record_id is above the one before, so none stands there twice."""

    sheaf: Sheaf
    rows: int = 0
    ascending: bool = True
    lowest: int | None = None
    highest: int | None = None
    sampled: tuple[int, ...] = ()


class UnitNumbers:
    """What is noted about the record_ids of a unit as they come by."""

    def __init__(self) -> None:
        self.rows = 0
        self.ascending = True
        self.lowest: int | None = None
        self.highest: int | None = None
        self.sampled: list[int] = []

    def take(self, positions: pa.Array) -> None:
        """Notes the record_ids of a batch."""
        self.rows += len(positions)
        known = positions.drop_null()
        if not len(known):
            return
        first, low, high = known[0].as_py(), pc.min(known).as_py(), pc.max(known).as_py()
        rising = pc.all(pc.greater(known.slice(1), known.slice(0, len(known) - 1))).as_py()
        self.ascending &= rising is not False and (self.highest is None or first > self.highest)
        self.lowest = low if self.lowest is None else min(low, self.lowest)
        self.highest = high if self.highest is None else max(high, self.highest)
        self.sampled += sample(known)


def scatter(task: Scatter) -> Scattered:
    """Reads, places and writes the rows of a unit."""
    placing = Placing(task.conversion.catalog)
    numbers = UnitNumbers()
    with sheaf(Path(task.folder) / f"{task.name}.arrow", PLACED) as writer:
        for rows in gathered(_read(task), ROWS):
            placed = placing.place(rows)
            numbers.take(placed.column("record_id"))
            write_by(writer, placed, bucket_of(placed.column(OBJECT), task.buckets))
            advance(len(rows))
    return Scattered(
        sheaf=writer.finished(),
        rows=numbers.rows,
        ascending=numbers.ascending,
        lowest=numbers.lowest,
        highest=numbers.highest,
        sampled=tuple(numbers.sampled),
    )


def gathered(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, most_rows: int | None = None, most_bytes: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows in larger batches, each of so many rows or bytes or a few more."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    most_rows, most_bytes = most_rows or GATHERED_ROWS, most_bytes or GATHERED_BYTES
    for batch in batches:
        held.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= most_rows or size >= most_bytes:
            yield one_batch(held, schema)
            held, rows, size = [], 0, 0
    if rows:
        yield one_batch(held, schema)


def write_by(writer: SheafWriter, rows: pa.RecordBatch, labels: pa.Array) -> None:
    """Writes the rows under their labels."""
    order = pc.array_sort_indices(labels)
    ordered, labelled = rows.take(order), integers(labels.take(order))
    start = 0
    while start < len(ordered):
        label = labelled[start]
        end = _end_of(labelled, start)
        writer.write(label, ordered.slice(start, end - start))
        start = end


def _end_of(labelled: memoryview, start: int) -> int:
    from bisect import bisect_right

    return bisect_right(labelled, labelled[start], start)


def _read(task: Scatter) -> Iterator[pa.RecordBatch]:
    source = task.conversion.input
    if isinstance(source, FilesInput):
        return read(task.unit, source.statuses) if task.unit is not None else iter(())
    assert isinstance(source, LogInput)
    return read_log(source)
