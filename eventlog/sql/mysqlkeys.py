"""What the text of a key becomes before it meets a column of MariaDB or MySQL: a place in a JSON list, or nothing. Pure.

These servers turn text that is no value of a type into one that is near it, with a warning that nobody reads: 'abc'
into 0, 1.239 into 1.24. So nothing leaves here that they would have to turn into something else. `bound` is the type
that JSON_TABLE gives, and `match` the SQL that compares it such that the column's index is used.
"""

from __future__ import annotations

import binascii
import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Final
from uuid import UUID

from msgspec import Struct

from eventlog.core.sql_types import bare_type
from eventlog.sql import keyforms

_whole = re.compile(r"[+-]?[0-9]{1,20}").fullmatch
_time = re.compile(r"(-?[0-9]{2,3}:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?)0*").fullmatch
_number = re.compile(r"[+-]?[0-9]{1,80}(?:\.[0-9]{0,80})?(?:[eE][+-]?[0-9]{1,2})?").fullmatch
_type = re.compile(
    r"([a-z][a-z0-9 ]*?)\s*(?:\(([0-9, ]*)\)\s*)?( unsigned)?(?: zerofill)?(?: character set .*| collate .*)?"
)
_Read = Callable[[str], str | int | None]


class MysqlKeyForm(Struct, frozen=True, kw_only=True):
    """How keys of one column type are looked up: `read` gives None for text that is no such value.

    `collated` says that the column's own collation decides what the text equals.
    """

    bound: str
    read: _Read
    match: str = "{column} = {key}"
    collated: bool = False


class Collation(Struct, frozen=True, kw_only=True):
    """How a column compares texts."""

    charset: str
    name: str


@lru_cache(maxsize=4096)
def mysql_form(sql_type: str) -> MysqlKeyForm:
    """How keys of a column of this type are looked up; types that are not listed are compared as text."""
    match = _type.fullmatch(" ".join(sql_type.lower().split()))
    if match is None:
        return _AS_TEXT
    name, arguments, unsigned = match.groups()
    if name in ("decimal", "numeric"):
        return _decimal_form(arguments or "10,0")
    if name in _INTEGERS:
        return _UNSIGNED if unsigned else _SIGNED
    return _FORMS.get(name, _AS_TEXT)


def comparison(form: MysqlKeyForm, column: str, key: str, collation: Collation | None) -> str:
    """SQL that compares a column with a key of its form."""
    if not form.collated:
        return form.match.format(column=column, key=key)
    if collation is None:
        return _AS_TEXT.match.format(column=column, key=key)
    if collation.charset == "utf8mb4":
        return f"{column} = {key} COLLATE {collation.name}"
    there = f"CONVERT({key} USING {collation.charset})"
    # What the column's characters do not have becomes '?', which could be somebody else's key.
    same = f"CAST(CONVERT({there} USING utf8mb4) AS BINARY) = CAST({key} AS BINARY)"
    return f"{column} = {there} COLLATE {collation.name} AND {same}"


def selected(column: str, sql_type: str) -> str:
    """SQL that reads a column whose own value Python would get as bytes: bits as a number, shapes in words.

    Vectors as Base64, because the driver loses its place in what the server sends when it meets one.
    """
    name = bare_type(sql_type)
    if name == "bit":
        return f"{column} + 0"
    if name == "vector":
        return f"REPLACE(TO_BASE64({column}), CHAR(10 USING utf8mb4), '')"
    return f"ST_AsText({column})" if name in _SHAPES else column


def _reader(reading: _Read) -> _Read:
    """A reader of text without the blanks round it that answers None where the standard library raises."""

    def read(written: str) -> str | int | None:
        try:
            return reading(written.strip())
        except (ValueError, OverflowError, InvalidOperation):
            return None

    return read


def _signed(written: str) -> int | None:
    truth = keyforms.state(written)
    value = int(written) if _whole(written) else None if truth is None else int(truth)
    return value if value is not None and -(2**63) <= value < 2**63 else None


def _unsigned(written: str) -> int | None:
    value = int(written) if _whole(written) else -1
    return value if 0 <= value < 2**64 else None


def _decimal_form(arguments: str) -> MysqlKeyForm:
    """A number that the column can hold as it is: one with more digits would be rounded to somebody else's key."""
    precision, _, scale = arguments.partition(",")
    places = int(scale or 0)
    limit = Decimal(10) ** (int(precision) - places)

    def read(written: str) -> str | None:
        value = Decimal(written) if _number(written) else limit
        exponent = value.normalize().as_tuple().exponent
        fits = abs(value) < limit and isinstance(exponent, int) and exponent >= -places
        return f"{value:f}" if fits else None

    return MysqlKeyForm(bound=f"DECIMAL({int(precision)},{places})", read=_reader(read))


def _double(written: str) -> str | None:
    value = float(written) if _number(written) else math.inf
    return repr(value) if math.isfinite(value) else None


def _date(written: str) -> str:
    return dt.date.fromisoformat(written).isoformat()


def _moment(written: str) -> str | None:
    value = dt.datetime.fromisoformat(written)
    return value.isoformat(" ") if value.tzinfo is None else None


def _clock_time(written: str) -> str | None:
    match = _time(written)
    return match[1] if match else None


def _base64(written: str) -> str | None:
    content = keyforms.octets(written)
    return None if content is None else binascii.b2a_base64(content, newline=False).decode()


_LONGTEXT: Final = "LONGTEXT CHARACTER SET utf8mb4"
_TEXT: Final = MysqlKeyForm(bound=_LONGTEXT, read=keyforms.text, collated=True)
_AS_TEXT: Final = MysqlKeyForm(
    bound=_LONGTEXT,
    read=keyforms.text,
    match="CAST(CONVERT({column} USING utf8mb4) AS BINARY) = CAST({key} AS BINARY)",
)
_SIGNED: Final = MysqlKeyForm(bound="BIGINT", read=_reader(_signed))
_UNSIGNED: Final = MysqlKeyForm(bound="BIGINT UNSIGNED", read=_reader(_unsigned))
_OCTETS: Final = MysqlKeyForm(bound=_LONGTEXT, read=_base64, match="{column} = FROM_BASE64({key})")
_MOMENT: Final = MysqlKeyForm(bound="DATETIME(6)", read=_reader(_moment))
_DOUBLE: Final = MysqlKeyForm(bound="DOUBLE", read=_reader(_double))
_SHAPES: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
    | {"geometrycollection", "geomcollection"}
)
_INTEGERS: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "integer", "bigint", "bool", "boolean", "year"}
)
_FORMS: Final[Mapping[str, MysqlKeyForm]] = {
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _TEXT),
    **dict.fromkeys(("double", "double precision", "real"), _DOUBLE),
    **dict.fromkeys(("datetime", "timestamp"), _MOMENT),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _OCTETS),
    "date": MysqlKeyForm(bound="DATE", read=_reader(_date)),
    "time": MysqlKeyForm(bound="TIME(6)", read=_reader(_clock_time)),
    "uuid": MysqlKeyForm(bound="CHAR(36)", read=_reader(lambda written: str(UUID(written)))),
    "bit": _UNSIGNED,
}
