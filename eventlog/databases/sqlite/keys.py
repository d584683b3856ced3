"""SQLite's keys: a list of them in the statement; texts become what their columns prefer, as they
did when they were stored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import Connection

from eventlog.core.schema import Column
from eventlog.core.sql_types import Category
from eventlog.databases.lookups import UNBOUNDED, lookup_holes, nobody, octets_of, readable, text_of
from eventlog.sql.access import fetch
from eventlog.sql.dialect import Dialect, statement
from eventlog.sql.lookup import Answer, Key, KeyComparison, Question, value_text

_whole = re.compile(r" *[+-]?[0-9]+ *", re.ASCII).fullmatch


class SqliteLookup:
    """A list of keys in the statement, each value a parameter, split where the database limits
    their number.
    """

    keeps_lengths: Final = False

    def ask(
        self,
        connection: Connection,
        dialect: Dialect,
        question: Question,
        keys: Sequence[Key],
    ) -> list[Answer]:
        untyped = tuple(map(_is_untyped, question.matched))
        holes = lookup_holes(dialect, question, self, untyped, spell=str)
        numbers, columns = readable(list(map(_reader, question.matched)), keys)
        answers = _list_answers(connection, dialect, holes, numbers, columns)
        there = set(map(itemgetter(0), answers))
        if len(there) == len(keys):  # by far the most common
            return answers
        # A value may be of another type than its column says, so what was not met is asked for as
        # the text that a trigger would write.
        left = [number for number, key in enumerate(keys) if number not in there and _may_be_there(question, key)]
        if not left:
            return answers
        texts = [
            [_choose_binding(column)(keys[number][index]) for number in left]
            for index, column in enumerate(question.matched)
        ]
        by_text = {**holes, "match": _as_text(dialect, question)}
        answers += _list_answers(connection, dialect, by_text, left, texts)
        return sorted(answers, key=itemgetter(0))

    def select_value(self, dialect: Dialect, name: str, column: Column) -> str:
        if column.category is Category.NUMBER:
            return value_text(dialect, column, name)
        if column.category is Category.OCTET:  # a text there has the bytes that a trigger writes
            return f"CAST({name} AS blob)"
        if not _is_untyped(column):
            return name
        # A real number of a column without a type has the text that a trigger makes of it.
        return f"CASE typeof({name}) WHEN 'real' THEN CAST({name} AS text) ELSE {name} END"

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        if column.category in UNBOUNDED:
            return f"length(CAST({name} AS blob))"
        return None

    def compare_column(self, dialect: Dialect, column: Column) -> KeyComparison:
        compared = "CAST({column} AS text)" if _is_untyped(column) else "{column}"
        return KeyComparison(column=compared, read=_reader(column))


def _list_answers(
    connection: Connection,
    dialect: Dialect,
    holes: Mapping[str, str],
    numbers: list[int],
    columns: list[list[Any]],
) -> list[Answer]:
    """Find the rows with these keys; `columns` has a list of values for each column."""
    import sqlite3

    answers: list[Answer] = []
    # SQLite is built with different limits.
    driver: Any = connection.connection.driver_connection
    parameters = int(driver.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER))
    places = ", ".join(["?"] * len(columns))
    at_once = parameters // len(columns)
    for start in range(0, len(numbers), at_once):
        some = slice(start, start + at_once)
        listed = ", ".join([f"({number}, {places})" for number in numbers[some]])
        rows = zip(*[column[some] for column in columns], strict=True)
        values = tuple(chain.from_iterable(rows))
        query = statement(dialect, "rows_by_key", keys=listed, **holes)
        answers += fetch(connection, query, values)
    return answers


def _may_be_there(question: Question, key: Key) -> bool:
    """Return True if a row may have the key although not found; only whole numbers are certain."""
    if None in map(text_of, key):
        return False
    both = zip(question.matched, key, strict=True)
    return not all(column.category is Category.INT and _whole(text) for column, text in both)


def _as_text(dialect: Dialect, question: Question) -> str:
    """Write a condition comparing the key as a trigger writes it; an index finds candidates."""
    conditions = []
    for index, column in enumerate(question.matched):
        name, key = f"found.{dialect.quote(column.name)}", f"asked.k{index}"
        listed = ", ".join([form.format(key=key) for form in _FORMS.get(column.category, _USUAL_FORMS)])
        is_octet = column.category is Category.OCTET
        same = f"CAST({name} AS blob)" if is_octet else value_text(dialect, column, name)
        conditions.append(f"{name} IN ({listed}) AND {same} = {key}")
    return " AND ".join([*conditions, *nobody(question)])


# 9e999 is how SQLite writes an infinite number, for which it has no word.
_INFINITE: Final = "CASE {key} WHEN 'Inf' THEN 9e999 WHEN '-Inf' THEN -9e999 END"
_USUAL_FORMS: Final = ("{key}", "CAST({key} AS blob)", "CAST({key} AS numeric)", _INFINITE)
"""The values of which a text can be made: a value may be of another type than its column."""
# A second with up to nine digits: the point alone makes no time.
_LENGTHS: Final = (19, *range(21, 30))
_FORMS: Final = {
    Category.OCTET: ("{key}", "CAST({key} AS text)", "CAST(CAST({key} AS text) AS numeric)"),
    Category.TIMESTAMP: (
        *_USUAL_FORMS,
        *[f"substr({{key}}, 1, {length})" for length in _LENGTHS],
        *[f"replace(substr({{key}}, 1, {length}), ' ', 'T')" for length in _LENGTHS],
    ),
}
"""A time has nine digits of a second in a key, however many it has in its table."""


def _is_untyped(column: Column) -> bool:
    """Return True for a column without a type: SQLite then compares text only with text."""
    return column.type.strip().lower() in ("", "null")


def _choose_binding(column: Column) -> Callable[[str], Any]:
    """Choose how to bind a key not found at first: as text, or as its bytes."""
    return octets_of if column.category is Category.OCTET else str


def _reader(column: Column) -> Callable[[str], Any]:
    return _READERS.get(column.category, text_of)


def _number(written: str) -> float | str | None:
    """Read a real number; as text if it overflows. SQLite reads digits less exactly."""
    if _fraction(written):
        value = float(written)
        if math.isfinite(value) or written.endswith("Inf"):
            return value
    return text_of(written)


_fraction = re.compile(r"-?(?:[0-9]+\.[0-9]*(?:e[+-]?[0-9]+)?|Inf)", re.ASCII).fullmatch
_READERS: Final[dict[Category, Callable[[str], Any]]] = {
    Category.OCTET: octets_of,
    Category.NUMBER: _number,
}
"""Everything else is bound as text, which SQLite converts to what the column prefers, as it did
when it was stored.
"""
