"""Points about the log's indexes: whether one leads to the rows that wait, and one to the newest rows.

A log that somebody else made has none of our indexes, or none at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine

from eventlog.check.point import Point, ok, warning
from eventlog.sql.dialect import Dialect, dialect_of, log_holes, offers, statement, waiting_number
from eventlog.sql.findlog import with_schema
from eventlog.sql.log_indexes import find_statuses, has_number_index, is_usable, option_of
from eventlog.sql.names import LogNames


def index_points(engine: Engine, names: LogNames) -> Iterator[Point]:
    """Check for an index of waiting rows; otherwise give the statement to make it."""
    from sqlalchemy import inspect

    with engine.connect() as connection:
        log = with_schema(connection, names)
        inspector = inspect(connection)
        indexes = [*inspector.get_indexes(log.table, schema=log.schema)]
        key = inspector.get_pk_constraint(log.table, schema=log.schema)["constrained_columns"]
        serving = [index["name"] for index in indexes if serves(connection, index, log)]
    if begins_with_status(key, log):
        serving.append("the primary key")
    if serving:
        yield ok("index", f"polling reads {serving[0]} and not the whole log")
        return
    message = f"No index leads to the waiting rows of {log.table}: every poll reads the processed ones too."
    yield warning("index", message, f"Let a DBA run: {making(dialect_of(engine), log)};")


def newest_points(engine: Engine, names: LogNames) -> Iterator[Point]:
    """Give the statement for an index of processed rows, if lists need one to read the newest
    first.
    """
    dialect = dialect_of(engine)
    if not offers(dialect, "make_number_index"):
        return
    with engine.connect() as connection:
        log = with_schema(connection, names)
    if not has_number_index(engine, log):
        message = (
            f"No index leads to the processed rows of {log.table} by their numbers: the page shows them in any order."
        )
        index = making(dialect, log, "make_number_index", "_done")
        yield warning("newest rows", message, f"Let a DBA run: {index};")


def making(dialect: Dialect, log: LogNames, query: str = "make_index", ending: str = "_new") -> str:
    """Write the statement making an index as `install` would have."""
    index = dialect.quote(dialect.beside(dialect.shorten_name(f"{log.table}{ending}"), log.table))
    return " ".join(statement(dialect, query, **log_holes(dialect, log), index=index).split())


def serves(connection: Connection, index: Mapping[str, Any], log: LogNames) -> bool:
    """Return True if an index covers all waiting rows: status first, or only rows of a few
    statuses.
    """
    dialect = dialect_of(connection)
    if dialect.ddl.waiting_number is not None:
        # An index of the expression that has a value for waiting rows alone; the catalog spells it
        # in its own way.
        wanted = _normalise_expression(waiting_number(dialect, log))
        expressions = index.get("expressions") or ()
        if any(_normalise_expression(str(expression)) == wanted for expression in expressions):
            return True
    if not is_usable(index):
        return False
    condition = option_of(index, "where")
    if condition:
        return "N" in find_statuses(connection, condition, log)
    return begins_with_status(index["column_names"], log)


def _normalise_expression(expression: str) -> str:
    return re.sub(r'[\s"]', "", expression).upper()


def begins_with_status(columns: Sequence[str | None], log: LogNames) -> bool:
    """Return True if the first of an index's columns is the status."""
    return [name.casefold() for name in columns[:1] if name] == [log.column("status").casefold()]
