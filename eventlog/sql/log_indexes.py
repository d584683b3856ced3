"""Indexes of a log: which rows they hold, and whether any row is found by its number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import SQLAlchemyError

from eventlog.sql.access import verbatim
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames

SORTED: Final = frozenset({"btree", "hash"})
"""Kinds of indexes that lead to the rows of one letter, and not to the pages where some may be."""

PROCESSED: Final = frozenset({"S", "W", "E", "F", None})
"""Letters of rows that do not wait. An adopted log may have rows without one."""


def has_number_index(engine: Engine, names: LogNames) -> bool:
    """Return True if an index finds any row of the log by its number: one for all rows, or one each for
    the waiting and the others.
    """
    with engine.connect() as connection:
        inspector, number = inspect(connection), names.column("record_id").casefold()
        key = inspector.get_pk_constraint(names.table, schema=names.schema)["constrained_columns"]
        if [str(name).casefold() for name in key[:1]] == [number]:
            return True
        # An index that begins with the number leads to a row whatever else it holds.
        leading = [
            index
            for index in inspector.get_indexes(names.table, schema=names.schema)
            if is_usable(index, frozenset({"btree"}))
            and [str(name).casefold() for name in index["column_names"][:1]] == [number]
        ]
        conditions = [option_of(index, "where") for index in leading]
        if "" in conditions:
            return True
        held = [find_statuses(connection, condition, names) for condition in conditions]
    return any("N" in statuses for statuses in held) and any(statuses >= PROCESSED for statuses in held)


def may_number_twice(engine: Engine, names: LogNames) -> bool:
    """Return True if a log of ours may have repeated numbers, and an index to find them."""
    # Elsewhere a key or a CHECK keeps such numbers out, and a log that others made has the numbers
    # that it has.
    is_open = names.transaction is not None and not dialect_of(engine).ddl.log_has_key
    return is_open and has_number_index(engine, names)


def option_of(index: Mapping[str, Any], what: str) -> str:
    """Read an index's option, kept by SQLAlchemy under a name beginning with the database's."""
    for name, value in index.get("dialect_options", {}).items():
        if name.endswith(f"_{what}") and value is not None and value is not False:
            return str(value)
    return ""


def find_statuses(connection: Connection, condition: str, log: LogNames) -> frozenset[str | None]:
    """List the statuses an index with this condition covers wholly; none if it has other terms."""
    status = dialect_of(connection).quote(log.column("status"))
    statuses = ["NULL" if value is None else f"'{value}'" for value in ("N", *PROCESSED)]
    rows = " UNION ALL ".join(f"SELECT CAST({value} AS CHAR(1)) AS {status}" for value in statuses)
    try:
        # The database itself decides, on rows of nothing but the letter; where the condition names
        # another column it fails. In a savepoint, for PostgreSQL ends the transaction then.
        with connection.begin_nested():
            asked = verbatim(f"SELECT {status} FROM ({rows}) AS entry WHERE {condition}")
            return frozenset(connection.execute(asked).scalars())
    except SQLAlchemyError:
        return frozenset()


def is_usable(index: Mapping[str, Any], kinds: frozenset[str] = SORTED) -> bool:
    return not option_of(index, "invalid") and (option_of(index, "using") or "btree") in kinds
