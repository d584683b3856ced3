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
            if is_usable(index, frozenset({"btree"}))
            and [str(name).casefold() for name in index["column_names"][:1]] == [number]
        ]
        conditions = [option_of(index, "where") for index in leading]
        if "" in conditions:
            return True
        if not any(holds_letter(connection, condition, names, "'N'") for condition in conditions):
            return False
        return any(
            all(holds_letter(connection, condition, names, letter) for letter in PROCESSED) for condition in conditions
        )


def option_of(index: Mapping[str, Any], what: str) -> str:
    """What SQLAlchemy knows of an index under a name that begins with the database's."""
    for name, value in index.get("dialect_options", {}).items():
        if name.endswith(f"_{what}") and value is not None and value is not False:
            return str(value)
    return ""


def holds_letter(connection: Connection, condition: str, log: LogNames, letter: str) -> bool:
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


def is_usable(index: Mapping[str, Any], kinds: frozenset[str] = SORTED) -> bool:
    return not option_of(index, "invalid") and (option_of(index, "using") or "btree") in kinds
