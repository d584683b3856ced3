"""Oracle's keys: all of them in one JSON document of any length; comparisons by the rules of
Oracle's types.

JSON_TABLE knows fewer types than columns have: `bound` is its type, and `match` the SQL that
compares it with the column such that the column's index is used. Types that are not listed are
compared as text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import msgspec
from sqlalchemy import Connection, text

from eventlog.core.schema import Column
from eventlog.core.sql_types import Category, bare_type
from eventlog.core.times import read_moment
from eventlog.databases.lookups import (
    KeyForm,
    lookup_holes,
    nobody,
    number_of,
    octets_of,
    readable,
    text_of,
)
from eventlog.databases.oracle.types import (
    NANOSECONDS,
    SECONDS,
    has_order,
    oracle_value,
    plain_name,
)
from eventlog.sql.access import fetch, in_text
from eventlog.sql.dialect import Dialect, statement
from eventlog.sql.lookup import Answer, Key, KeyComparison, Question, value_text

TEXT_BYTES = 4000
"""The longest text that JSON_TABLE gives and SQL compares."""
# A TIMESTAMP of Oracle has up to nine digits of a second.
_moment = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?)?", re.ASCII).fullmatch
# As a text a number would be compared as a text by JSON_TABLE's conversion.
_numbers_as_such: Final = msgspec.json.Encoder(decimal_format="number")


def oracle_form(sql_type: str) -> KeyForm:
    """Choose how keys of this type are looked up."""
    return _KEYS.get(plain_name(sql_type), _AS_TEXT)


class JsonTableLookup:
    """All keys in one JSON document of any length; comparisons by the rules of Oracle's types."""

    keeps_lengths: Final = True

    def ask(
        self,
        connection: Connection,
        dialect: Dialect,
        question: Question,
        keys: Sequence[Key],
    ) -> list[Answer]:
        forms = [oracle_form(column.type) for column in question.matched]
        numbers, columns = readable([form.read for form in forms], keys)
        if not numbers:
            return []
        holes = lookup_holes(dialect, question, self, (False,) * len(forms), spell=in_text)
        holes = {**holes, **self._take_apart(dialect, question, forms)}
        query = statement(dialect, "rows_by_key", **holes)
        document = _numbers_as_such.encode(list(zip(numbers, *columns, strict=True))).decode()
        return _measure(question, fetch(connection, text(query), {"keys": document}))

    def select_value(self, dialect: Dialect, name: str, column: Column) -> str:
        if column.category is Category.NUMBER:
            return value_text(dialect, column, name)
        return oracle_value(column.type, name, in_key=column.key is not None)

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        if bare_type(column.type) in ("clob", "nclob", "blob"):
            return f"LENGTH({name})"
        return None

    def _take_apart(self, dialect: Dialect, question: Question, forms: Sequence[KeyForm]) -> dict[str, str]:
        """Define the JSON document's columns, their comparison with the table's, and the order."""
        names = [f"k{index} {form.bound} PATH '$[{index + 1}]'" for index, form in enumerate(forms)]
        match = []
        for index, (form, column) in enumerate(zip(forms, question.matched, strict=True)):
            name = f"found.{in_text(dialect.quote(column.name))}"
            match.append(form.match.format(column=name, key=f"asked.k{index}"))
        order = [1]
        if question.several:
            order += [2 + index for index, column in enumerate(question.selected) if has_order(column.type)]
        return {
            "names": "(" + ", ".join(["n NUMBER PATH '$[0]'", *names]) + ")",
            "match": " AND ".join([*match, *nobody(question)]),
            "order": ", ".join(map(str, order)),
        }

    def compare_column(self, dialect: Dialect, column: Column) -> KeyComparison:
        return oracle_form(column.type).compared


def _measure(question: Question, answers: list[Answer]) -> list[Answer]:
    """Put the bytes of values that are too long in their place where SQL cannot measure them: no
    function takes a LONG.
    """
    places = [place for place, column in enumerate(question.selected, 1) if plain_name(column.type) in _UNMEASURED]
    plain = question.plain
    if not places or plain is None:
        return answers
    measured = []
    for answer in answers:
        row = list(answer)
        for place in places:
            size = len(row[place] or "")
            if size > plain:
                row[place], row[-1] = None, (row[-1] or 0) + size
        measured.append(tuple(row))
    return measured


_UNMEASURED: Final = frozenset({"long", "long raw"})


def _text(written: str) -> str | None:
    """Return the text if a column can hold it; Oracle's empty text is NULL, never a key."""
    text = text_of(written)
    if text and len(text.encode()) <= TEXT_BYTES:
        return text
    return None


def _read_padded(written: str) -> str | None:
    """Return a CHAR column's text without its trailing blanks; one of nothing else has one, for none is NULL."""
    trimmed = written.rstrip(" ") or " "
    # A CHAR of Oracle has at most 2000 bytes.
    if _text(trimmed) and len(trimmed.encode()) <= 2000:
        return trimmed
    return None


def _number(written: str) -> Decimal | None:
    number = number_of(written)
    # What a NUMBER holds: 1E-130 up to less than 1E126.
    if number is not None and (not number or -130 <= number.adjusted() < 126):
        return number
    return None


def _real(written: str) -> str | None:
    """Write a binary number for TO_BINARY_DOUBLE."""
    try:
        value = float(written)
    except ValueError:
        return None
    if math.isfinite(value):
        return repr(value)
    if math.isnan(value):
        return "NaN"
    return "Inf" if value > 0 else "-Inf"


def _second(written: str) -> str | None:
    """Read a moment of a DATE column; None if it has a fraction."""
    moment = _nanosecond(written)
    if moment is None or moment[20:].strip("0"):
        return None
    return moment[:19]


def _nanosecond(written: str) -> str | None:
    match = _moment(written.strip())
    if match is None:
        return None
    whole = f"{match[1]} {match[2] or '00:00:00'}"
    try:
        read_moment(whole)
    except ValueError:
        return None
    return f"{whole}.{(match[3] or '').ljust(9, '0')}"


def _hexadecimal(written: str) -> str | None:
    content = octets_of(written)
    if content and len(content) <= TEXT_BYTES // 2:  # two digits each
        return content.hex().upper()
    return None


_TEXT: Final = KeyForm(bound="VARCHAR2(4000)", read=_text)
_AS_TEXT: Final = KeyForm(bound="VARCHAR2(4000)", read=_text, match="TO_CHAR({column}) = {key}")
_NUMBER: Final = KeyForm(bound="NUMBER", read=_number)
_DOUBLE: Final = KeyForm(bound="VARCHAR2(400)", read=_real, match="{column} = TO_BINARY_DOUBLE({key})")
_FLOAT: Final = KeyForm(bound="VARCHAR2(400)", read=_real, match="{column} = TO_BINARY_FLOAT({key})")
_ZONED: Final = KeyForm(
    bound="VARCHAR2(40)",
    read=_nanosecond,
    match=f"SYS_EXTRACT_UTC({{column}}) = TO_TIMESTAMP({{key}}, '{NANOSECONDS}')",
)

_KEYS: Final = {
    **dict.fromkeys(("varchar2", "varchar", "nvarchar2"), _TEXT),
    # Both sides are CHAR: Oracle then pads the shorter one, which it does not do for VARCHAR2.
    "char": KeyForm(bound="VARCHAR2(2000)", read=_read_padded, match="{column} = CAST({key} AS CHAR(2000))"),
    "nchar": KeyForm(bound="VARCHAR2(2000)", read=_read_padded, match="{column} = CAST({key} AS NCHAR(1000))"),
    **dict.fromkeys(("number", "numeric", "decimal", "integer", "smallint", "float"), _NUMBER),
    "binary_double": _DOUBLE,
    "binary_float": _FLOAT,
    "date": KeyForm(bound="VARCHAR2(40)", read=_second, match=f"{{column}} = TO_DATE({{key}}, '{SECONDS}')"),
    "timestamp": KeyForm(
        bound="VARCHAR2(40)",
        read=_nanosecond,
        match=f"{{column}} = TO_TIMESTAMP({{key}}, '{NANOSECONDS}')",
    ),
    **dict.fromkeys(("timestamp with time zone", "timestamp with local time zone"), _ZONED),
    "raw": KeyForm(bound="VARCHAR2(4000)", read=_hexadecimal, match="{column} = HEXTORAW({key})"),
}
