"""Reads a stretch of a log into record batches: COPY where the driver is psycopg, else plain queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from eventlog.core.errors import DataError
from eventlog.sql.access import in_text
from eventlog.sql.names import STANDARD
from eventlog_spark.bulk import BulkLog, NumberRange

if TYPE_CHECKING:
    from sqlalchemy import Connection

FETCHED_ROWS: Final = 10_000
"""Rows that are taken from a driver at once."""

NUMBERS: Final = ("record_id", "event_type")
ROWS: Final = pa.schema([(name, pa.int64() if name in NUMBERS else pa.string()) for name in STANDARD])
TEXTS: Final = pa.schema([(name, pa.string()) for name in STANDARD])
"""The columns as COPY writes them, for logs whose columns may be of any type."""


def batches(log: BulkLog, stretch: NumberRange, schema: pa.Schema = ROWS) -> Iterator[pa.RecordBatch]:
    """The rows of a stretch; plain queries always give them as ROWS."""
    with log.connection(stretch.snapshot) as connection:
        query = log.query("stretch", first=stretch.first, last=stretch.last)
        if not log.copies:
            yield from _fetched(connection, query)
            return
        from eventlog_spark.copying import copied

        try:
            yield from copied(connection.connection.driver_connection, query, schema)
        except BaseException:  # a reader that wants no more rows too: the server would go on sending
            connection.invalidate()
            raise


def _fetched(connection: Connection, query: str) -> Iterator[pa.RecordBatch]:
    from sqlalchemy import text

    result = connection.execution_options(stream_results=True).execute(text(in_text(query)))
    while rows := result.fetchmany(FETCHED_ROWS):
        yield _batch(rows)


def _batch(rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    columns = []
    for field, values in zip(ROWS, zip(*rows, strict=True), strict=True):
        convert = _integer if field.name in NUMBERS else _text
        columns.append(pa.array([None if value is None else convert(value) for value in values], field.type))
    return pa.RecordBatch.from_arrays(columns, schema=ROWS)


def _integer(value: Any) -> int | None:
    """Databases that do not hold a column to its type may have anything there; a row without a kind is for the rules."""
    try:
        number = int(value)
    except (TypeError, ValueError):
        return None
    return number if number == value or str(number) == str(value).strip() else None


def _text(value: Any) -> str:
    """What SQLite holds as text may be any bytes."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        hint = "Correct it in the log: half a character is none."
        raise DataError(f"A value of the log is not text: {error.reason}.", hint=hint) from error
    return text
