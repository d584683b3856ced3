"""Many rows by their keys at once, as every database has it: what is asked, and the SQL that the ways of asking share.

The ways themselves stand in the databases' rooms: one statement, bound keys, answers numbered like the keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from eventlog.core.schema import Column, Made
from eventlog.core.sql_types import Category
from eventlog.sql.queries import statement

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.dialect import Dialect

Key = tuple[str, ...]
Answer = tuple[Any, ...]
"""The number of the key, then the selected values."""

CHARACTER_BYTES: Final = 4
"""What a character has at most."""

UNBOUNDED: Final = frozenset({Category.STRING, Category.OCTET})
"""What may be long, unless its type says how long it is at most."""

_stated: Final = re.compile(r"(?i)(?:char|varchar|character|character varying|binary|varbinary)\((\d+)\)").fullmatch


class Question(Struct, frozen=True, kw_only=True):
    """Which columns of which table, and the columns that hold the keys; all names are the catalog's."""

    schema: str | None
    table: str
    matched: tuple[Column, ...]
    selected: tuple[Column, ...]
    several: bool = False
    """Whether a key may have several rows; they are ordered by their values then, so that they repeat."""
    plain: int | None = None
    """How many bytes a value may have at most; of a row with a longer one the bytes of all its values come, as the last
    column of every answer, and NULL instead of the value."""
    nobody: bool = False
    """No row is asked for: only whether the database would answer at all."""


class KeyComparison(Struct, frozen=True, kw_only=True):
    """How values of one key column are compared: SQL for the column and for a parameter, and what a text is bound as."""

    column: str = "{column}"
    value: str = "{key}"
    read: Callable[[str], Any]


class KeyLookup(Protocol):
    """One database's way of looking up keys. With `keeps_lengths` no value is longer than its column's type says."""

    @property
    def keeps_lengths(self) -> bool: ...

    def ask(self, connection: Connection, dialect: Dialect, question: Question, keys: Sequence[Key]) -> list[Answer]:
        """The rows that have the keys, in the order of the keys; keys that cannot be values of their columns have none."""

    def selected(self, dialect: Dialect, name: str, column: Column) -> str:
        """SQL for what is read of a column."""

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        """SQL for how many bytes that has; None where it is never many."""

    def compared(self, dialect: Dialect, column: Column) -> KeyComparison:
        """How values of the column are compared in the order of the key."""


def cast_to_text(dialect: Dialect, name: str, column: Column) -> str:
    """A column as text; a cast of a type that somebody made could be a function of theirs."""
    return statement(dialect, "made_type", value=name) if column.made is Made.TYPE else f"CAST({name} AS text)"


def lookup_holes(
    dialect: Dialect,
    question: Question,
    lookup: KeyLookup,
    as_text: Sequence[bool],
    *,
    spell: Callable[[str], str],
) -> dict[str, str]:
    """What fills the holes of the query; `as_text` says which key columns are compared as text."""

    def name(column: Column) -> str:
        return f"found.{spell(dialect.quoted(column.name))}"

    selected = [lookup.selected(dialect, name(column), column) for column in question.selected]
    sizes = []
    if question.plain is not None:
        lengths = [_length(lookup, dialect, name(column), column, question.plain) for column in question.selected]
        selected = [
            text if length is None else f"CASE WHEN {length} <= {question.plain} THEN {text} END"
            for text, length in zip(selected, lengths, strict=True)
        ]
        sizes = [_size([length for length in lengths if length is not None], question.plain)]
    keys = [
        cast_to_text(dialect, name(column), column) if cast else name(column)
        for column, cast in zip(question.matched, as_text, strict=True)
    ]
    matched = [f"{key} = asked.k{place}" for place, key in enumerate(keys)]
    ordered = range(1, len(selected) + 2) if question.several else [1]
    return {
        "columns": ", ".join(["asked.n", *selected, *sizes]),
        "names": ", ".join(["n", *(f"k{place}" for place in range(len(keys)))]),
        "table": spell(dialect.qualified(question.schema, question.table)),
        "match": " AND ".join([*matched, *nobody(question)]),
        "order": ", ".join(map(str, ordered)),
    }


def nobody(question: Question) -> list[str]:
    """The condition that no row meets, where none is asked for; the others stay, for they may be what is wrong."""
    return ["1 = 0"] if question.nobody else []


def _length(lookup: KeyLookup, dialect: Dialect, name: str, column: Column, plain: int) -> str | None:
    """SQL for the length of a value; None where its type says that it is never longer than that."""
    length = lookup.length(dialect, name, column)
    stated = _stated(column.type) if lookup.keeps_lengths else None
    if stated is not None and int(stated[1]) * CHARACTER_BYTES <= plain:
        return None
    return length


def _size(lengths: Sequence[str], plain: int) -> str:
    """SQL for the bytes of all values of a row in which one is too long to come with the others."""
    if not lengths:
        return "NULL"
    long = " OR ".join(f"{length} > {plain}" for length in lengths)
    return f"CASE WHEN {long} THEN {' + '.join(f'COALESCE({length}, 0)' for length in lengths)} END"


def readable(readers: Sequence[Callable[[str], Any]], keys: Sequence[Key]) -> tuple[list[int], list[list[Any]]]:
    """The numbers of the keys that can be values of their columns, and the values, a list for each column."""
    columns = [[read(key[place]) for key in keys] for place, read in enumerate(readers)]
    if not any(None in column for column in columns):
        return list(range(len(keys))), columns
    numbers = [number for number in range(len(keys)) if all(column[number] is not None for column in columns)]
    return numbers, [[column[number] for number in numbers] for column in columns]


def key_stretches(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Where each stretch of so many keys begins and ends."""
    for start in range(0, count, size):
        yield start, min(start + size, count)
