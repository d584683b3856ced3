"""Reads an event log table into batches of rows: one statement, hence one moment, and never more than a batch at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.convert.columns import NUMBERS
from eventlog.convert.jsonlines import column_of
from eventlog.convert.settings import LogInput
from eventlog.convert.shape import shaped
from eventlog.sql.names import STANDARD, read_log_name

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.sql.names import LogNames

FETCHED_ROWS: Final = 10_000
EVERYTHING: Final = {"first": str(-(2**63)), "last": str(2**63 - 1)}


def read_log(source: LogInput) -> Iterator[pa.RecordBatch]:
    """The rows (ROWS) of the log that are to be converted, in no order."""
    from eventlog.sql.connect import connect
    from eventlog.sql.reflect import log_columns

    engine = connect(source.url)
    try:
        names = log_columns(engine, read_log_name(source.log), source.columns)
        held = held_rows(engine, names)
        for rows in _fetched(engine, names, source.statuses):
            yield without_held(shaped(_columns(rows)), held)
    finally:
        engine.dispose()


def held_rows(engine: Engine, names: LogNames) -> frozenset[int]:
    """The record_ids that somebody holds; none where the log has no companion table."""
    from sqlalchemy import column, inspect, select, table

    from eventlog.sql.access import transaction

    with transaction(engine, f"The event log {names.table}") as connection:
        if not inspect(connection).has_table(names.outcomes, schema=names.schema):
            return frozenset()
        kept = table(names.outcomes, column("record_id"), column("held"), schema=names.schema)
        return frozenset(int(row[0]) for row in connection.execute(select(kept.c.record_id).where(kept.c.held != 0)))


def without_held(rows: pa.RecordBatch, held: frozenset[int]) -> pa.RecordBatch:
    """The rows without those that wait and are held."""
    if not held:
        return rows
    stays = pc.is_in(rows.column("record_id"), value_set=pa.array(sorted(held), pa.int64()))
    waits = pc.equal(rows.column("status"), "N")
    return rows.filter(pc.invert(pc.fill_null(pc.and_(stays, waits), False)))


def _fetched(engine: Engine, names: LogNames, statuses: str) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of the log as the driver gives them, some at a time."""
    from sqlalchemy import text

    from eventlog.sql.access import in_text, transaction
    from eventlog.sql.dialect import dialect_of
    from eventlog.sql.queries import log_holes, statement

    dialect = dialect_of(engine)
    holes = log_holes(dialect, names)
    letters = ", ".join(dialect.literal(letter) for letter in dict.fromkeys(statuses))
    chosen = statement(dialect, "chosen_letters" if letters else "chosen_all", **holes, letters=f"({letters})")
    query = statement(dialect, "stretch", **holes, **EVERYTHING, chosen=chosen)
    with transaction(engine, f"The event log {names.table}") as connection:
        streaming = connection.execution_options(stream_results=True)
        result = streaming.execute(text(in_text(query)))
        while rows := result.fetchmany(FETCHED_ROWS):
            yield [tuple(row) for row in rows]


def _columns(rows: list[tuple[Any, ...]]) -> dict[str, pa.Array]:
    columns = zip(STANDARD, zip(*rows, strict=True), strict=True)
    return {name: column_of([_plain(value) for value in column], name in NUMBERS) for name, column in columns}


def _plain(value: Any) -> Any:
    """What SQLite holds as text may be any bytes, which become lone surrogates; the row says so and stays readable."""
    return (
        value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) and not value.isascii() else value
    )
