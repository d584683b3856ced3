"""Reads files and log tables into record batches of rows (ROWS); what cannot be a number becomes
the row's problem.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import parquet

from eventlog.convert.inputs import BUFFER_BYTES, Unit, damaged, opened, places_of
from eventlog.convert.lines import column_of, csv_columns, line_columns
from eventlog.convert.partitions import BATCH_ROWS
from eventlog.convert.rows import NUMBERS, shaped, told_in_utc
from eventlog.convert.settings import LogInput
from eventlog.core.errors import SourceError
from eventlog.sql.clocks import UTC, zone_of
from eventlog.sql.names import STANDARD, TRANSACTION

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.sql.names import LogNames

BATCH_BYTES: Final = 2_000_000


def read(unit: Unit, statuses: str = "", clock: str = UTC) -> Iterator[pa.RecordBatch]:
    """The rows (ROWS) of a unit, their times in UTC; DataError names the file and the place that is
    damaged.
    """
    zone = zone_of(clock)
    try:
        columns = _parquet(unit) if unit.kind == "parquet" else _text(unit)
        for found in columns:
            yield told_in_utc(shaped(found, statuses), zone)
    except (pa.ArrowInvalid, EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise damaged(unit.path, error) from error
    except FileNotFoundError as error:
        hint = "Somebody removed it during the conversion; begin again with what is there."
        raise SourceError(f"{unit.path} is gone.", hint=hint, may_pass=False) from error
    except OSError as error:  # Arrow tells damaged pages and what a disk refuses alike
        raise damaged(unit.path, error) from error


def _parquet(unit: Unit) -> Iterator[dict[str, pa.Array]]:
    with parquet.ParquetFile(unit.path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
        names = file.schema_arrow.names
        places = places_of(names, unit.path)
        wanted = {name: names[place] for name, place in places.items()}
        groups = list(range(unit.start, unit.end or 0))
        rows = _batch_rows(file, groups)
        for batch in file.iter_batches(rows, row_groups=groups, columns=list(wanted.values()), use_threads=False):
            yield {name: batch.column(found) for name, found in wanted.items()}


def _batch_rows(file: Any, groups: list[int]) -> int:
    """Fewer rows at once where they are long."""
    described = [file.metadata.row_group(group) for group in groups]
    rows = sum(group.num_rows for group in described) or 1
    each = sum(group.total_byte_size for group in described) / rows
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(each, 1))))


def _text(unit: Unit) -> Iterator[dict[str, pa.Array]]:
    with opened(unit) as file:
        yield from csv_columns(file, unit.path) if unit.kind == "csv" else line_columns(file, unit)


FETCHED_ROWS: Final = 10_000
EVERYTHING: Final = {"first": str(-(2**63)), "last": str(2**63 - 1)}


def read_log(source: LogInput) -> Iterator[pa.RecordBatch]:
    """The rows (ROWS) of the log with the wanted statuses, in no order, also those that `withheld`
    leaves.
    """
    from eventlog.sql.connect import connect
    from eventlog.sql.findlog import log_columns

    engine = connect(source.url)
    try:
        names = log_columns(engine, source.names, source.columns)
        zone = zone_of(names.clock)
        for rows in _fetched(engine, names, source.statuses):
            yield told_in_utc(shaped(_columns(rows)), zone)
    finally:
        engine.dispose()


def _fetched(engine: Engine, names: LogNames, statuses: str) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of the log as the driver gives them, some at a time, each with its transaction where
    the log says it.
    """
    from sqlalchemy import text

    from eventlog.sql.access import in_text, transaction, with_statuses
    from eventlog.sql.dialect import dialect_of, log_holes, statement, transaction_behind

    dialect = dialect_of(engine)
    holes = log_holes(dialect, names)
    chosen = with_statuses(dialect, holes, statuses)
    query = statement(
        dialect, "stretch", **holes, **EVERYTHING, chosen=chosen, transaction=transaction_behind(dialect, holes)
    )
    with transaction(engine, f"The event log {names.table}") as connection:
        streaming = connection.execution_options(stream_results=True)
        result = streaming.execute(text(in_text(query)))
        while rows := result.fetchmany(FETCHED_ROWS):
            yield [tuple(row) for row in rows]


def _columns(rows: list[tuple[Any, ...]]) -> dict[str, pa.Array]:
    columns = zip((*STANDARD, TRANSACTION), zip(*rows, strict=True), strict=False)
    return {name: column_of([_plain(value) for value in column], name in NUMBERS) for name, column in columns}


def _plain(value: Any) -> Any:
    """What SQLite holds as text may be any bytes, which become lone surrogates; the row says so and
    stays readable.
    """
    return (
        value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) and not value.isascii() else value
    )
