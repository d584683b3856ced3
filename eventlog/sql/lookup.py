"""Many rows by their keys at once: what is asked of a database, and how it is answered. The ways of
asking stand in the databases' rooms: one statement, bound keys, answers numbered like the keys.

And the one text that a value has, whoever writes it: triggers into the log, a full load into keys,
read-backs into changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct
from sqlalchemy import Connection

from eventlog.core.schema import Column, Made
from eventlog.core.sql_types import Category, bare_type, is_zoned
from eventlog.sql.dialect import Dialect, offers, statement

ZONED = "text_of_zoned"
"""The fragment for moments."""

_FRAGMENTS = {
    Category.STRING: "text_of_string",
    Category.OCTET: "text_of_octet",
    Category.INT: "text_of_int",
    Category.STATE: "text_of_state",
    Category.NUMBER: "text_of_number",
    Category.DATE: "text_of_date",
    Category.TIME: "text_of_time",
    Category.TIMESTAMP: "text_of_timestamp",
}


def value_text(dialect: Dialect, column: Column, value: str, *, in_key: bool = False) -> str:
    """Write SQL for the logged text of a column's value, alone or in a key; `value` is SQL for the value."""
    usual = _FRAGMENTS[column.category]
    if is_moment(dialect, column) and offers(dialect, ZONED):
        usual = ZONED
    # A type that somebody made may be called like one of the database's.
    name = "" if column.made is Made.TYPE else bare_type(column.type)
    fragment = dialect.type_texts.get(name, usual)
    if in_key or column.key is not None:
        fragment = dialect.key_texts.get(name, fragment)
    # A database has a fragment of its own for values whose text is not written as any other's.
    return statement(dialect, fragment if offers(dialect, fragment) else _FRAGMENTS[Category.STRING], value=value)


def is_moment(dialect: Dialect, column: Column) -> bool:
    """Return True if the column holds moments, seen in UTC by our sessions.

    MariaDB's and MySQL's TIMESTAMP is one although without a zone.

    `types` are those of the source's columns, by name in lower case. None if there is none.
    """
    if column.category is not Category.TIMESTAMP:
        return False
    return is_zoned(column.type) or dialect.type_texts.get(bare_type(column.type)) == ZONED


Key = tuple[str, ...]
Answer = tuple[Any, ...]
"""The number of the key, then the selected values."""


class Question(Struct, frozen=True, kw_only=True):
    """Which columns of which table, and those that hold the keys; names are the catalog's."""

    schema: str | None
    table: str
    matched: tuple[Column, ...]
    selected: tuple[Column, ...]
    several: bool = False
    """A key may have several rows; they are ordered by their values then, so that they repeat."""
    plain: int | None = None
    """How many bytes a value may have at most; of a row with a longer one the bytes of all its
    values come, as the last column of every answer, and NULL instead of the value.
    """
    nobody: bool = False
    """No row is asked for: only whether the database would answer at all."""


class KeyComparison(Struct, frozen=True, kw_only=True):
    """How a key column is compared: SQL for it and for a parameter, and what a text is bound as."""

    column: str = "{column}"
    value: str = "{key}"
    read: Callable[[str], Any]


class KeyLookup(Protocol):
    """One database's way of looking up keys. With `keeps_lengths` no value is longer than its
    column's type says.
    """

    @property
    def keeps_lengths(self) -> bool: ...

    def ask(
        self,
        connection: Connection,
        dialect: Dialect,
        question: Question,
        keys: Sequence[Key],
    ) -> list[Answer]:
        """Read the rows with these keys, in their order; keys impossible for their columns have none."""

    def select_value(self, dialect: Dialect, name: str, column: Column) -> str:
        """Write SQL for the value read of a column."""

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        """Write SQL for the bytes of that; None if never many."""

    def compare_column(self, dialect: Dialect, column: Column) -> KeyComparison:
        """Return how values of the column are compared in the order of the key."""
