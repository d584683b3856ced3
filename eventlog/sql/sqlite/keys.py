"""SQLite's keys: a list of them in the statement; texts become what their columns prefer, as they did when they were stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from eventlog.core.schema import Column
from eventlog.core.sql_types import Category
from eventlog.sql import keyforms
from eventlog.sql.access import fetched
from eventlog.sql.lookup import UNBOUNDED, Answer, Key, KeyComparison, Question, key_stretches, lookup_holes, readable
from eventlog.sql.queries import statement

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.dialect import Dialect


class SqliteLookup:
    """A list of keys in the statement, each value a parameter, split where the database limits their number."""

    keeps_lengths: Final = False

    def ask(self, connection: Connection, dialect: Dialect, question: Question, keys: Sequence[Key]) -> list[Answer]:
        as_text = [_is_untyped(column) for column in question.matched]
        numbers, columns = readable([_reader(column) for column in question.matched], keys)
        width = len(question.matched)
        holes = lookup_holes(dialect, question, self, as_text, spell=str)
        found: list[Answer] = []
        for start, end in key_stretches(len(numbers), _parameter_limit(connection) // width):
            places = ", ".join(["?"] * width)
            listed = ", ".join([f"({number}, {places})" for number in numbers[start:end]])
            rows = zip(*(column[start:end] for column in columns), strict=True)
            values = tuple(value for row in rows for value in row)
            found += fetched(connection, statement(dialect, "rows_by_key", keys=listed, **holes), values)
        return found

    def selected(self, dialect: Dialect, name: str, column: Column) -> str:
        return name

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        return f"length(CAST({name} AS blob))" if column.category in UNBOUNDED else None

    def compared(self, dialect: Dialect, column: Column) -> KeyComparison:
        return KeyComparison(
            column="CAST({column} AS text)" if _is_untyped(column) else "{column}", read=_reader(column)
        )


def _is_untyped(column: Column) -> bool:
    """Without a declared type SQLite compares nothing with text but text."""
    return column.type.strip().lower() in ("", "null")


def _reader(column: Column) -> Callable[[str], Any]:
    return _READERS.get(column.category, keyforms.text)


_READERS: Final = {Category.OCTET: keyforms.octets, Category.STATE: keyforms.state}
"""Everything else is bound as text, which SQLite converts to what the column prefers, as it did when it was stored."""


def _parameter_limit(connection: Connection) -> int:
    """How many parameters a statement may have here; SQLite is built with different limits."""
    import sqlite3

    driver: Any = connection.connection.driver_connection
    return int(driver.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER))
