"""Reads files and log tables into record batches of rows (ROWS); what cannot be a number becomes
the row's problem.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import parquet

from eventlog.convert.inputs import BUFFER_BYTES, Unit, describe_damage, line_number, open_unit, places_of, rows_at_once
from eventlog.convert.partitions import BATCH_ROWS
from eventlog.convert.rows import NUMBERS, shape_rows, times_in_utc
from eventlog.convert.settings import LogInput
from eventlog.core.errors import SourceError
from eventlog.core.who import read_context
from eventlog.sql.clocks import UTC, zone_of
from eventlog.sql.names import CONTEXT, STANDARD, TRANSACTION

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from eventlog.sql.dialect import Dialect
    from eventlog.sql.names import LogNames


def read(unit: Unit, clock: str = UTC) -> Iterator[pa.RecordBatch]:
    """Read the rows (ROWS) of a unit, times in UTC; DataError names file and damaged place."""
    zone = zone_of(clock)
    try:
        blocks = _parquet(unit) if unit.kind == "parquet" else _text(unit)
        for columns in blocks:
            yield times_in_utc(shape_rows(columns), zone)
    except (pa.ArrowInvalid, EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise describe_damage(unit.path, error) from error
    except FileNotFoundError as error:
        hint = "Somebody removed it during the conversion; begin again with what is there."
        raise SourceError(f"{unit.path} is gone.", hint=hint, may_pass=False) from error
    except OSError as error:
        # Arrow says of damaged pages what it says of a disk that refuses.
        raise describe_damage(unit.path, error) from error


def _parquet(unit: Unit) -> Iterator[dict[str, pa.Array]]:
    with parquet.ParquetFile(unit.path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
        names = file.schema_arrow.names
        places = places_of(names, unit.path)
        wanted = {name: names[index] for name, index in places.items()}
        groups = list(range(unit.start, unit.end or 0))
        described = [file.metadata.row_group(group) for group in groups]
        at_once = rows_at_once(described, BATCH_ROWS)
        # One thread: the processes share the cores among them.
        batches = file.iter_batches(at_once, row_groups=groups, columns=list(wanted.values()), use_threads=False)
        for batch in batches:
            yield {name: batch.column(own_name) for name, own_name in wanted.items()}


def _text(unit: Unit) -> Iterator[dict[str, pa.Array]]:
    from eventlog.convert.lines import blocks_of_lines, csv_columns, line_columns

    with open_unit(unit) as file:
        blocks = blocks_of_lines(file, unit)
        if unit.kind == "csv":
            yield from csv_columns((block for block, _ in blocks), unit.path, unit.line_limit)
        else:
            yield from line_columns(blocks, unit.path, partial(line_number, unit))


FETCHED_ROWS: Final = 10_000
EVERYTHING: Final = {"first": str(-(2**63)), "last": str(2**63 - 1)}


def read_log(source: LogInput) -> Iterator[pa.RecordBatch]:
    """Read the log's rows (ROWS) with the wanted statuses, in no order, even those not `taken`."""
    from eventlog.sql.connect import connect
    from eventlog.sql.findlog import log_columns

    engine = connect(source.url)
    try:
        names = log_columns(engine, source.names, source.columns)
        zone = zone_of(names.clock)
        context = source.who and names.context is not None
        for rows in _fetch(engine, names, source.statuses, context=context):
            yield times_in_utc(shape_rows(columns_of(rows, context=context)), zone)
    finally:
        engine.dispose()


def _fetch(engine: Engine, names: LogNames, statuses: str, *, context: bool) -> Iterator[Sequence[Sequence[Any]]]:
    """Fetch the log's rows from the driver, some at a time.

    Each has its transaction if the log knows it, and its context if asked for.
    """
    from eventlog.sql.access import transaction
    from eventlog.sql.dialect import dialect_of, log_holes, statement

    dialect = dialect_of(engine)
    holes = log_holes(dialect, names)
    query = statement(
        dialect,
        "row_range",
        **holes,
        **EVERYTHING,
        chosen=with_statuses(dialect, holes, statuses),
        transaction=transaction_behind(dialect, holes),
        context=context_behind(dialect, holes) if context else "",
    )
    with transaction(engine, f"The event log {names.table}") as connection:
        yield from fetch_rows(connection, query)


def fetch_rows(connection: Connection, query: str) -> Iterator[Sequence[Sequence[Any]]]:
    """Fetch the rows of a query, some at a time; as bytes where the database holds any bytes as text."""
    from sqlalchemy import text

    from eventlog.sql.access import in_text
    from eventlog.sql.dialect import dialect_of

    with _reading_bytes(connection) if dialect_of(connection).driver.stores_any_bytes else nullcontext():
        # Without it drivers bring the whole result into memory before the first row.
        result = connection.execution_options(stream_results=True).execute(text(in_text(query)))
        while rows := result.fetchmany(FETCHED_ROWS):
            yield rows


@contextmanager
def _reading_bytes(connection: Connection) -> Iterator[None]:
    """Read texts as bytes while the block runs: one that is no UTF-8 would end the reading of all others."""
    session: Any = connection.connection.driver_connection
    usual, session.text_factory = session.text_factory, bytes
    try:
        yield
    finally:
        session.text_factory = usual


def columns_of(rows: Sequence[Sequence[Any]], *, context: bool) -> dict[str, pa.Array]:
    """Make the columns of a log's rows; the last one is their `context`, if that was asked for."""
    from eventlog.convert.lines import column_of

    cells = list(zip(*rows, strict=True))
    # A log without transactions has a column less.
    names = [*STANDARD, TRANSACTION][: len(cells) - context]
    if context:
        names.append(CONTEXT)
        cells[-1] = tuple(map(read_context, cells[-1]))
    columns = zip(names, cells, strict=True)
    return {name: column_of([_plain(value) for value in column], name in NUMBERS) for name, column in columns}


def _plain(value: Any) -> Any:
    """Turn a text with lone surrogates, as drivers read bytes that are no UTF-8, into bytes: its row says so."""
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogatepass")
    return value


def transaction_behind(dialect: Dialect, holes: Mapping[str, str]) -> str:
    """Write the SQL for a row's transaction, behind its columns; empty if the log has none."""
    from eventlog.sql.dialect import statement

    if "transaction_number" not in holes:
        return ""
    return statement(dialect, "transaction_told", **holes)


def context_behind(dialect: Dialect, holes: Mapping[str, str]) -> str:
    """Write the SQL for a row's session context, behind its columns; empty if the log has none."""
    from eventlog.sql.dialect import statement

    return statement(dialect, "context_told", **holes) if "context_column" in holes else ""


def with_statuses(dialect: Dialect, holes: Mapping[str, str], statuses: str) -> str:
    """Write the condition for rows with one of these letters; without letters for every row."""
    from eventlog.sql.dialect import statement

    texts = ", ".join(dialect.literal(text) for text in dict.fromkeys(statuses))
    query = "chosen_statuses" if texts else "chosen_all"
    return statement(dialect, query, **holes, statuses=f"({texts})")
