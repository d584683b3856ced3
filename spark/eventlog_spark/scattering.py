"""The first step on Spark: pieces of the input are read and their rows sent to the buckets of their objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

import msgspec
import pyarrow as pa
from msgspec import Struct

from eventlog.convert.columns import OBJECT
from eventlog.convert.columns import ROWS as ROWS_SCHEMA
from eventlog.convert.inputs import Unit
from eventlog.convert.place import Placing, bucket_of
from eventlog.convert.readfiles import read
from eventlog.convert.readlog import read_log, without_held
from eventlog.convert.scatter import UnitNumbers, gathered, write_by
from eventlog.convert.settings import Conversion, FilesInput, LogInput
from eventlog.convert.shape import shaped
from eventlog.convert.snapshot import SnapshotFile, placed_rows
from eventlog_spark.blobs import NOTES, ROWS, TABLES, Blob, Bundle
from eventlog_spark.bulk import NumberRange
from eventlog_spark.faults import travelling
from eventlog_spark.options import LogOptions

if TYPE_CHECKING:
    from eventlog.convert.sheaf import SheafWriter


GATHERED_ROWS: Final = 250_000
GATHERED_BYTES: Final = 64_000_000
"""What is read before it is cut into blobs."""


class WholeLog(Struct, frozen=True, kw_only=True):
    """A log that is read in one piece, because its database has no snapshot that several sessions can share."""


Piece = Unit | NumberRange | WholeLog | SnapshotFile


class Noted(Struct, frozen=True, kw_only=True):
    """What was noted about a piece: how many rows, and whether a record_id can stand in it twice."""

    rows: int
    ascending: bool
    lowest: int | None = None
    highest: int | None = None


class Scattering(Struct, frozen=True, kw_only=True):
    """The whole input, in pieces of which each task gets some by their places. `held` rows wait and stay where they are."""

    conversion: Conversion
    pieces: tuple[Piece, ...]
    buckets: int
    held: frozenset[int] = frozenset()

    @property
    def tables(self) -> tuple[SnapshotFile, ...]:
        """The snapshot's tables; a blob's kind says which of them its rows are of."""
        return tuple(piece for piece in self.pieces if isinstance(piece, SnapshotFile))


def scattered(work: Scattering, places: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads the pieces at these places (a column of numbers) and gives out blobs."""
    with travelling():
        for batch in places:
            for place in batch.column(0).to_pylist():
                piece = work.pieces[place]
                if isinstance(piece, SnapshotFile):
                    yield from _table(work, piece)
                else:
                    yield from _rows(work, piece)


def _rows(work: Scattering, piece: Unit | NumberRange | WholeLog) -> Iterator[pa.RecordBatch]:
    placing = Placing(work.conversion.catalog)
    numbers = UnitNumbers()
    bundle = Bundle(ROWS)
    read = rows_of(work.conversion, piece, work.held)
    for rows in gathered(read, ROWS_SCHEMA, most_rows=GATHERED_ROWS, most_bytes=GATHERED_BYTES):
        placed = placing.place(rows)
        numbers.take(placed.column("record_id"))
        _write(bundle, placed, work.buckets)
        yield from bundle.full()
    noted = Noted(rows=numbers.rows, ascending=numbers.ascending, lowest=numbers.lowest, highest=numbers.highest)
    bundle.add(Blob(bucket=0, kind=NOTES, content=msgspec.json.encode(noted)))
    yield from bundle.rest()


def _table(work: Scattering, file: SnapshotFile) -> Iterator[pa.RecordBatch]:
    """The rows of a table of the snapshot, all of them as the first ones are typed."""
    bundle = Bundle(TABLES + work.tables.index(file))
    schema = None
    assert work.conversion.catalog is not None
    for rows in placed_rows(file, work.conversion.catalog):
        schema = schema or rows.schema
        _write(bundle, rows.cast(schema), work.buckets)
        yield from bundle.full()
    yield from bundle.rest()


def rows_of(
    conversion: Conversion, piece: Unit | NumberRange | WholeLog, held: frozenset[int] = frozenset()
) -> Iterator[pa.RecordBatch]:
    """The rows of a piece of the input, as the local engine reads them."""
    source = conversion.input
    if isinstance(source, FilesInput):
        assert isinstance(piece, Unit)
        return read(piece, source.statuses)
    assert isinstance(source, LogInput)
    if isinstance(piece, NumberRange):
        return _copied(source, piece, held)
    return read_log(source)


def log_options(source: LogInput) -> LogOptions:
    """A conversion's log as the data source is told it."""
    return LogOptions(url=source.url, log=source.log, columns=source.columns, status=source.statuses)


def _copied(source: LogInput, stretch: NumberRange, held: frozenset[int]) -> Iterator[pa.RecordBatch]:
    from eventlog_spark.bulk import BulkLog
    from eventlog_spark.reading import TEXTS, batches

    for batch in batches(BulkLog(log_options(source)), stretch, TEXTS):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        yield without_held(shaped(columns), held)


def _write(bundle: Bundle, rows: pa.RecordBatch, buckets: int) -> None:
    write_by(cast("SheafWriter", bundle), rows, bucket_of(rows.column(OBJECT), buckets))
