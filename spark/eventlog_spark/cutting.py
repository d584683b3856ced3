"""How a conversion is cut for Spark: into which pieces its input, into how many buckets, at which positions its output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from pyarrow import parquet

from eventlog.convert.inputs import UNIT_BYTES, Unit, units
from eventlog.convert.partitions import ranges
from eventlog.convert.plan import BUCKET_ROWS, RANGE_ROWS, ROW_BYTES
from eventlog.convert.reading import held_rows
from eventlog.convert.settings import Conversion, FilesInput, LogInput, SnapshotRows, StreamInput
from eventlog.convert.snapshot import SnapshotFile, snapshot_files
from eventlog_spark.deciding import answered
from eventlog_spark.exchange import Piece, WholeLog, log_options, rows_of
from eventlog_spark.faults import travelling
from eventlog_spark.log import BulkLog, NumberRange, stretches
from eventlog_spark.snapshot import EXPORT

MOST_BUCKETS: Final = 1_024
MOST_RANGES: Final = 4_096
STRETCH_ROWS: Final = 250_000


class RowSpan(Struct, frozen=True, kw_only=True):
    """About so many rows that have record_ids from the lowest to the highest."""

    rows: int
    lowest: int
    highest: int


class Cut(Struct, frozen=True, kw_only=True):
    """The pieces of the input, those of a snapshot last; where record_ids lie, as far as that is known beforehand.

    `rows` are `counted`, or judged by the size of files that do not say how many they have.
    """

    pieces: tuple[Piece, ...]
    rows: int
    counted: bool = True
    spans: tuple[RowSpan, ...] = ()
    held: frozenset[int] = frozenset()

    @property
    def total(self) -> int | None:
        """What people are told of the number of rows: nothing, where it is only judged."""
        return self.rows if self.counted else None

    @property
    def buckets(self) -> int:
        """A power of two; as many as let each be sorted in memory."""
        return min(MOST_BUCKETS, 1 << max(self.rows // BUCKET_ROWS, 1).bit_length())

    @property
    def unknown(self) -> tuple[Unit, ...]:
        """The units whose record_ids are not known before they are read."""
        return tuple(piece for piece in self.pieces if isinstance(piece, Unit) and piece.kind != "parquet")


def boundaries(spans: Sequence[RowSpan]) -> tuple[int, ...]:
    """Where the output is cut into ranges that are sorted in memory, if record_ids are even within each span."""
    rows = sum(span.rows for span in spans)
    sampled = [number for span in spans for number in _evenly(span)]
    return ranges(sampled, min(MOST_RANGES, 1 + rows // RANGE_ROWS))


@contextmanager
def cut(conversion: Conversion) -> Iterator[Cut]:
    """The cut, and what must last while pieces are read: a snapshot that all stretches of a log share."""
    tables = _tables(conversion)
    if isinstance(conversion.input, StreamInput):
        yield Cut(pieces=(), rows=0)  # a stream is cut by what it holds
    elif isinstance(conversion.input, FilesInput):
        found = units(conversion.input)
        rows = sum(unit.size // ROW_BYTES if unit.rows is None else unit.rows for unit in found)
        counted = all(unit.rows is not None for unit in found)
        yield Cut(pieces=(*found, *tables), rows=rows, counted=counted, spans=tuple(_spans(found)))
    else:
        assert isinstance(conversion.input, LogInput)
        with _log(conversion.input, tables) as found_log:
            yield found_log


def _tables(conversion: Conversion) -> list[SnapshotFile]:
    source, catalog = conversion.read_back, conversion.catalog
    return snapshot_files(source.folder, catalog) if isinstance(source, SnapshotRows) and catalog is not None else []


@contextmanager
def _log(source: LogInput, tables: Sequence[SnapshotFile]) -> Iterator[Cut]:
    log = BulkLog(log_options(source))
    held = held_rows(log.engine, log.names)
    with log.connection() as connection:
        snapshot = str(connection.exec_driver_sql(EXPORT).scalar_one()) if log.copies else None
        ((lowest, highest),) = log.rows(connection, "extent")
        ((rows,),) = log.rows(connection, "chosen_count")
        spans = [] if lowest is None else [RowSpan(rows=int(rows), lowest=int(lowest), highest=int(highest))]
        pieces: list[NumberRange | WholeLog] = [WholeLog()]
        if snapshot is not None:
            count = 1 + int(rows) // STRETCH_ROWS
            pieces = [one for span in spans for one in stretches(span.lowest, span.highest, count, snapshot)]
        yield Cut(pieces=(*pieces, *tables), rows=int(rows), spans=tuple(spans), held=held)


def _evenly(span: RowSpan) -> Iterator[int]:
    count = 1 + span.rows // 1_000
    width = span.highest - span.lowest
    return (span.lowest + width * place // count for place in range(count))


def _spans(found: Sequence[Unit]) -> Iterator[RowSpan]:
    """What Parquet says of its row groups."""
    for path in dict.fromkeys(unit.path for unit in found if unit.kind == "parquet"):
        described: Any = parquet.read_metadata(path)
        for number in range(described.num_row_groups):
            span = _span(described.row_group(number))
            if span is not None:
                yield span


def _span(group: Any) -> RowSpan | None:
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema.strip().casefold() == "record_id":
            known = column.statistics
            if known is None or not known.has_min_max or not isinstance(known.min, int):
                return None
            return RowSpan(rows=group.num_rows, lowest=known.min, highest=known.max)
    return None


GLANCE_BATCHES: Final = 2
"""Batches that stand for a unit which is not larger than others; a whole file of CSV is looked through."""


def sampled(
    conversion: Conversion, units: Sequence[Unit], places: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The spans of record_ids in the units at these places."""
    with travelling():
        for batch in places:
            for place in batch.column(0).to_pylist():
                yield answered(msgspec.json.encode(list(_looked_at(conversion, units[place]))))


def _looked_at(conversion: Conversion, unit: Unit) -> Iterator[RowSpan]:
    rows = rows_of(conversion, unit)
    large = unit.size > UNIT_BYTES
    for batch in rows if large else islice(rows, GLANCE_BATCHES):
        numbers = batch.column("record_id").drop_null()
        if len(numbers):
            weight = len(numbers) if large else max(1, unit.size // ROW_BYTES // GLANCE_BATCHES)
            yield RowSpan(rows=weight, lowest=pc.min(numbers).as_py(), highest=pc.max(numbers).as_py())
