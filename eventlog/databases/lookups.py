"""What the databases' ways of looking up keys share: the holes of their queries, and what the text
of a key says.

Numbers, bytes and truth values are written in several ways. Text that cannot be a value of the type
finds no row; it must never reach the database, where it would be an error that takes the other keys
with it. Which reader a column has, and what SQL compares, is for the database's room to say.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import compress
from typing import Any, Final

from msgspec import Struct

from eventlog.core import sql_types
from eventlog.core.schema import Column, Made
from eventlog.core.sql_types import Category, bare_type
from eventlog.sql.dialect import Dialect, statement
from eventlog.sql.lookup import Key, KeyComparison, KeyLookup, Question, value_text

CHARACTER_BYTES: Final = 4
"""What a character has at most."""

UNBOUNDED: Final = frozenset({Category.STRING, Category.OCTET})
"""What may be long, unless its type says how long it is at most."""

_stated: Final = re.compile(r"(?i)(?:char|varchar|character|character varying|binary|varbinary)\((\d+)\)").fullmatch


class KeyForm(Struct, frozen=True, kw_only=True):
    """How keys of one column type are looked up: the type that they are bound as, and SQL that
    compares them with the column.

    `read` gives None for text that is no such value.
    """

    bound: str
    read: Callable[[str], Any]
    match: str = "{column} = {key}"

    @property
    def compared(self) -> KeyComparison:
        column, _, value = self.match.partition(" = ")
        return KeyComparison(column=column, value=value, read=self.read)


def cast_to_text(dialect: Dialect, name: str, column: Column) -> str:
    """Write a column as text; not by CAST for a user-defined type: it could be a function of
    theirs.
    """
    if column.made is Made.TYPE:
        return statement(dialect, "made_type", value=name)
    if bare_type(column.type) in dialect.type_texts:
        return value_text(dialect, column, name)
    # Only types that come with the database get here, whose casts are its own.
    return f"CAST({name} AS text)"


@lru_cache(maxsize=1000)  # the same question comes with each batch
def lookup_holes(
    dialect: Dialect,
    question: Question,
    lookup: KeyLookup,
    as_text: tuple[bool, ...],
    *,
    spell: Callable[[str], str],
    match: tuple[str, ...] | None = None,
) -> Mapping[str, str]:
    """Fill the holes of the query; `as_text`: key columns compared as text; `match`: how each is, where not by `=`."""

    def name(column: Column) -> str:
        return f"found.{spell(dialect.quote(column.name))}"

    selected = [lookup.select_value(dialect, name(column), column) for column in question.selected]
    sizes = []
    if question.plain is not None:
        # A long value would come with each of many rows; its length comes instead, and the value
        # later, if there is room.
        plain, columns = question.plain, question.selected
        lengths = [_length(lookup, dialect, name(column), column, plain) for column in columns]
        short = []
        for text, length in zip(selected, lengths, strict=True):
            if length is not None:
                text = f"CASE WHEN {length} <= {question.plain} THEN {text} END"  # noqa: PLW2901  # or NULL instead
            short.append(text)
        selected = short
        long_ones = [length for length in lengths if length is not None]
        sizes = [_size(long_ones, question.plain)]
    keys = []
    for column, cast in zip(question.matched, as_text, strict=True):
        if cast:
            keys.append(cast_to_text(dialect, name(column), column))
        else:
            keys.append(name(column))
    compared = match or ("{column} = {key}",) * len(keys)
    matched = [
        form.format(column=key, key=f"asked.k{index}")
        for index, (key, form) in enumerate(zip(keys, compared, strict=True))
    ]
    # By the key's number, and by all values where a key has several rows, so that they repeat.
    ordered = range(1, 2)
    if question.several:
        ordered = range(1, len(selected) + 2)
    return {
        "columns": ", ".join(["asked.n", *selected, *sizes]),
        "names": ", ".join(["n", *(f"k{index}" for index in range(len(keys)))]),
        "table": spell(dialect.qualify(question.schema, question.table)),
        "match": " AND ".join([*matched, *nobody(question)]),
        "order": ", ".join(map(str, ordered)),
    }


def nobody(question: Question) -> list[str]:
    """Return a false condition if no row is asked for.

    The other conditions stay: the query may be a test of them.
    """
    if not question.nobody:
        return []
    return ["1 = 0"]


def _length(
    lookup: KeyLookup,
    dialect: Dialect,
    name: str,
    column: Column,
    plain: int,
) -> str | None:
    """Write SQL for the length of a value; None if its type is never longer than `plain`."""
    length = lookup.length(dialect, name, column)
    if not lookup.keeps_lengths:
        return length
    # A type says characters, and how many bytes these are depends on the database's encoding.
    stated = _stated(column.type)
    if stated is not None and int(stated[1]) * CHARACTER_BYTES <= plain:
        return None
    return length


def _size(lengths: Sequence[str], plain: int) -> str:
    """Write SQL for the size of all values in a row with one too long to come along."""
    if not lengths:
        return "NULL"
    long = " OR ".join(f"{length} > {plain}" for length in lengths)
    all_of_them = " + ".join(f"COALESCE({length}, 0)" for length in lengths)
    return f"CASE WHEN {long} THEN {all_of_them} END"


def readable(
    readers: Sequence[Callable[[str], Any]],
    keys: Sequence[Key],
) -> tuple[list[int], list[list[Any]]]:
    """Return the indexes of keys valid for their columns, and the values, a list a column."""
    columns: list[list[Any]] = []
    are_all_read = True
    for index, reader in enumerate(readers):
        column = [reader(key[index]) for key in keys]
        columns.append(column)
        are_all_read = are_all_read and None not in column
    if are_all_read:  # nearly always
        return list(range(len(keys))), columns
    read = [all(column[number] is not None for column in columns) for number in range(len(keys))]
    numbers = list(compress(range(len(keys)), read))
    return numbers, [[column[number] for number in numbers] for column in columns]


# Bounded, for a number of millions of digits would be made before anybody asks for its size.
_number = re.compile(r"[+-]?(?=\.?[0-9])[0-9]{0,300}(?:\.[0-9]{0,300})?(?:[eE][+-]?[0-9]{1,3})?").fullmatch


def text_of(written: str) -> str | None:
    """Return the text, or None if it is no valid Unicode."""
    try:
        written.encode()
    # Half of a surrogate pair, which no database keeps as text.
    except UnicodeEncodeError:
        return None
    return written


def truth_of(written: str) -> bool | None:
    """Read a boolean in any spelling of a database."""
    folded = written.strip().lower()
    if folded in ("on", "off"):  # which no log writes
        return folded == "on"
    return sql_types.truth_of(folded)


def octets_of(written: str) -> bytes | None:
    """Decode Base64, with or without line breaks."""
    try:
        return binascii.a2b_base64("".join(written.split()), strict_mode=True)
    except ValueError:
        return None


def number_of(written: str) -> Decimal | None:
    trimmed = written.strip()
    if _number(trimmed):
        return Decimal(trimmed)
    return None


def reader_of(reading: Callable[[str], Any]) -> Callable[[str], Any]:
    """Make a reader of trimmed text; None where `reading` raises."""

    def read(written: str) -> Any:
        try:
            return reading(written.strip())
        except (ValueError, OverflowError, InvalidOperation):
            return None

    return read
