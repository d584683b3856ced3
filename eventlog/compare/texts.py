"""The canonical text of a value, its hash, and when two values are the same. Pure.

A database writes the same text by the statements of its compare.sql. Where two databases write a
value differently, the hashes differ, and the values themselves decide. That two different values
have one text must not be.
"""

from __future__ import annotations

import binascii
import datetime as dt
import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from hashlib import sha256
from typing import Any, Final

from eventlog.core.errors import ExpressionError
from eventlog.core.sql_types import PADDED_TYPES, Category, bare_type, category, is_zoned
from eventlog.qlik.readings import is_float, reading_of

NULL: Final = "~"
"""The text of NULL, which no value has: a string begins with its length."""

BETWEEN: Final = "|"
"""What stands between the texts of two values of a row."""

LONG_CHARACTERS: Final = 1000
"""A longer text stands in the text of its row by its hash."""

HASH_DIGITS: Final = 15
"""Hexadecimal digits of a hash: 60 bits, which every database has room for."""

HALF_BITS: Final = 30

Cells = Sequence[str | None]
_is_span = re.compile(r"-?\d{2,3}:\d\d:\d\d(?:\.\d+)?", re.ASCII).fullmatch


def hash_of(text: str) -> int:
    """Hash a text."""
    return int(_digest(text.encode("utf-8", "surrogatepass"))[:HASH_DIGITS], 16)


def row_text(texts: Cells) -> str:
    """Join the texts of some values."""
    return BETWEEN.join([NULL if text is None else text for text in texts])


def kind_of(sql_type: str) -> str:
    """Choose the canonical form of a type's values: the ending of the name of a query in compare.sql."""
    kind = category(sql_type)
    if kind is Category.NUMBER and is_float(sql_type):
        return "float"
    if kind is Category.TIMESTAMP and is_zoned(sql_type):
        return "zoned"
    return str(kind)


def are_blanks_equal(sql_type: str) -> bool:
    """Return True if blanks at the end of the type's texts do not count."""
    return bare_type(sql_type) in PADDED_TYPES


def reader_of(sql_type: str) -> Callable[[Any], Any]:
    """Make a reader of a type's values, of which all that counts is left."""
    if are_blanks_equal(sql_type):
        return _read_padded
    return reading_of(sql_type)


def _read_padded(cell: Any) -> Any:
    return str(_read_string(cell)).rstrip(" ")


_read_string: Final = reading_of("varchar")


def string_text(value: str) -> str:
    """Put a text's length before it, so that two texts side by side are never taken for others."""
    length = len(value)
    if length > LONG_CHARACTERS:
        # A database has to put the texts of a row together, and has no room for long ones.
        return f"{length}:{_digest(value.encode())}"
    return f"{length}:{value}"


def plain_text(value: Any) -> str | None:
    """Write a value as a text from which a column of its type reads it again."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode()
    if isinstance(value, bool):
        # `str` would say True.
        return "1" if value else "0"
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dt.datetime):
        if value.tzinfo:
            value = value.astimezone(dt.UTC)
        return _trim_zeros(value.replace(tzinfo=None).isoformat(" "))
    if isinstance(value, dt.time):
        return _trim_zeros(value.isoformat())
    return str(value)


def canonical(sql_type: str) -> Callable[[Any], str | None]:
    """Make a writer of the canonical text of a type's values, from any driver's form."""
    read, string = reader_of(sql_type), is_string(sql_type)

    def text(cell: Any) -> str | None:
        value = read_cell(read, cell)
        return canonical_text(value, plain_text(value), string=string)

    return text


def is_string(sql_type: str) -> bool:
    """Return True if the canonical text of the type's values has its length before it."""
    return category(sql_type) is Category.STRING


def canonical_text(value: Any, plain: str | None, *, string: bool) -> str | None:
    """Write the canonical text of a value, given its plain text."""
    if isinstance(value, bytes):
        return _digest(value)
    if plain is not None and string:
        return string_text(plain)
    return plain


def read_cell(read: Callable[[Any], Any], cell: Any) -> Any:
    """Read a cell; return the cell itself where it is no value of the type."""
    if cell is None:
        return None
    if isinstance(cell, memoryview | bytearray):
        cell = bytes(cell)
    try:
        return read(cell)
    except ExpressionError:
        # MariaDB's times go beyond a day, and have as many noughts at their end as the column says.
        if isinstance(cell, str) and _is_span(cell):
            return _trim_zeros(cell)
        return cell


def write_several(sql_type: str, cells: Sequence[Any]) -> str | None:
    """Write several values, of which neither order nor number counts, as one text; None where there are none."""
    read = reading_of(sql_type)
    texts = {plain_text(read_cell(read, cell)) for cell in cells} - {None}
    return json.dumps(sorted(texts, key=str), ensure_ascii=False) if texts else None


def same(left: Any, right: Any) -> bool:
    """Return True for equal values; NaN equals itself here."""
    if left is None or right is None:
        return left is right
    if type(left) is type(right):
        return bool(left == right) or (_is_nan(left) and _is_nan(right))
    return plain_text(left) == plain_text(right)


def _is_nan(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float) and math.isnan(value)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        if value.is_nan():
            return "NaN"
        return "-Infinity" if value.is_signed() else "Infinity"
    # Databases differ in how many noughts they write behind a point.
    text = _trim_zeros(format(value, "f"))
    if text == "-0":
        return "0"
    return text


def _float(value: float) -> str:
    """Write a fraction as PostgreSQL does: the fewest digits that give it back, without a point where
    there is no fraction.
    """
    if not math.isfinite(value):
        if math.isnan(value):
            return "NaN"
        return "Infinity" if value > 0 else "-Infinity"
    # From there on PostgreSQL writes an exponent, and Python only from 1e16 on.
    if value == int(value) and abs(value) < 1e15:
        # The sign of a nought only shows in this way.
        if value == 0 and math.copysign(1, value) < 0:
            return "-0"
        return str(int(value))
    digits, _, exponent = repr(value).partition("e")
    digits = digits.removesuffix(".0")
    if not exponent:
        return digits
    return f"{digits}e{exponent.removeprefix('+')}"


def _trim_zeros(text: str) -> str:
    if "." not in text:
        return text
    return text.rstrip("0").rstrip(".")
