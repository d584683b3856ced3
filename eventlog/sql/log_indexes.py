"""Which indexes a log has: those that lead to its waiting rows, and those that lead to any row by
its number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import SQLAlchemyError

from eventlog.sql.access import verbatim
from eventlog.sql.dialect import dialect_of, waiting_number
from eventlog.sql.names import LogNames

SORTED: Final = frozenset({"btree", "hash"})
"""Kinds of indexes that lead to the rows of one letter, and not to the pages where some may be."""

PROCESSED: Final = ("'S'", "'W'", "'E'", "'F'", "NULL")
"""Letters of rows that do not wait, as SQL. An adopted log may have rows without one."""


def has_number_index(engine: Engine, names: LogNames) -> bool:
    """Whether the database finds any row of the log by its number: by one index, or the waiting and
    the others by one each.
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
            if _is_usable(index, frozenset({"btree"}))
            and [str(name).casefold() for name in index["column_names"][:1]] == [number]
        ]
        conditions = [_option(index.get("dialect_options", {}), "where") for index in leading]
        if "" in conditions:
            return True
        if not any(_holds(connection, condition, names, "'N'") for condition in conditions):
            return False
        return any(
            all(_holds(connection, condition, names, letter) for letter in PROCESSED) for condition in conditions
        )


def serves(connection: Connection, index: Mapping[str, Any], log: LogNames) -> bool:
    """Whether an index leads to all rows that wait: by their status first, or because it holds
    those of a few letters only.
    """
    options = index.get("dialect_options", {})
    dialect = dialect_of(connection)
    if dialect.waiting_number is not None:
        # An index of the expression that has a value for waiting rows alone; the catalog spells it
        # in its own way.
        wanted = _spelled_alike(waiting_number(dialect, log))
        expressions = index.get("expressions") or ()
        if any(_spelled_alike(str(expression)) == wanted for expression in expressions):
            return True
    if not _is_usable(index):
        return False
    condition = _option(options, "where")
    if condition:
        return _holds(connection, condition, log, "'N'")
    return begins_with_status(index["column_names"], log)


def _spelled_alike(expression: str) -> str:
    return re.sub(r'[\s"]', "", expression).upper()


def _option(options: Mapping[str, Any], what: str, usual: str = "") -> str:
    """What SQLAlchemy tells of an index under a name that begins with the database's."""
    values = [value for name, value in options.items() if name.endswith(f"_{what}")]
    if not values or values[0] is None or values[0] is False:
        return usual
    return str(values[0])


def _holds(connection: Connection, condition: str, log: LogNames, letter: str) -> bool:
    """Whether the condition of an index is true of every row with a letter; one that asks for more
    than the letter is not.
    """
    status = dialect_of(connection).quoted(log.column("status"))
    try:
        # The database itself decides, on a row of nothing but the letter; where the condition names
        # another column it fails. In a savepoint, for PostgreSQL ends the transaction then.
        with connection.begin_nested():
            row = f"SELECT CAST({letter} AS CHAR(1)) AS {status}"
            asked = verbatim(f"SELECT 1 FROM ({row}) AS waiting WHERE {condition}")
            return connection.execute(asked).first() is not None
    except SQLAlchemyError:
        return False


def _is_usable(index: Mapping[str, Any], kinds: frozenset[str] = SORTED) -> bool:
    options = index.get("dialect_options", {})
    return not _option(options, "invalid") and _option(options, "using", "btree") in kinds


def begins_with_status(columns: Sequence[str | None], log: LogNames) -> bool:
    """Whether the first of an index's columns is the letter."""
    return [name.casefold() for name in columns[:1] if name] == [log.column("status").casefold()]
