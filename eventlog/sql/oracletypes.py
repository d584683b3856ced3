"""How Oracle's column types are met when rows are read back: what becomes of a key's text, and how values are asked for.

Keys come as JSON, and JSON_TABLE knows fewer types than columns have: `bound` is its type, and `match` the SQL that
compares it with the column such that the column's index is used. Types that are not listed are compared as text. Pure.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from eventlog.sql import keyforms

TEXT_BYTES = 4000
"""The longest text that JSON_TABLE gives and SQL compares."""
_SECONDS = "YYYY-MM-DD HH24:MI:SS"
_NANOSECONDS = f"{_SECONDS}.FF9"
_moment = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?)?", re.ASCII).fullmatch
_arguments = re.compile(r"\([^)]*\)")


class OracleKeyForm(Struct, frozen=True, kw_only=True):
    """How keys of one column type are looked up: `read` gives None for text that is no such value."""

    bound: str
    read: Callable[[str], Any]
    match: str = "{column} = {key}"


def oracle_form(sql_type: str) -> OracleKeyForm:
    """How keys of a column of this type are looked up."""
    return _KEYS.get(_bare(sql_type), _AS_TEXT)


def oracle_value(sql_type: str, column: str) -> str:
    """SQL for the value of a column: times as text, whatever the years; CHAR without its padding."""
    return _VALUES.get(_bare(sql_type), "{column}").format(column=column)


def has_order(sql_type: str) -> bool:
    """Whether Oracle can sort by a column of this type."""
    return _bare(sql_type) not in _UNORDERED


def _bare(sql_type: str) -> str:
    return " ".join(_arguments.sub(" ", sql_type.lower()).split())


def _text(written: str) -> str | None:
    """The text where a column can hold it; the empty one is NULL in Oracle, which no key is."""
    found = keyforms.text(written)
    return found if found and len(found.encode()) <= TEXT_BYTES else None


def _padded(written: str) -> str | None:
    """Text of a CHAR column, of which the blanks at its end are no part."""
    trimmed = written.rstrip(" ")
    return trimmed if _text(trimmed) and len(trimmed.encode()) <= 2000 else None


def _number(written: str) -> Decimal | None:
    found = keyforms.number(written)
    return found if found is not None and (not found or -130 <= found.adjusted() < 126) else None


def _real(written: str) -> str | None:
    """A binary number in the words of TO_BINARY_DOUBLE, which has its own for infinity."""
    try:
        value = float(written)
    except ValueError:
        return None
    return repr(value) if math.isfinite(value) else "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"


def _second(written: str) -> str | None:
    """A moment of a DATE column, which knows no fractions."""
    found = _nanosecond(written)
    return found[:19] if found and not found[20:].strip("0") else None


def _nanosecond(written: str) -> str | None:
    match = _moment(written.strip())
    if match is None:
        return None
    whole = f"{match[1]} {match[2] or '00:00:00'}"
    try:
        dt.datetime.fromisoformat(whole)
    except ValueError:
        return None
    return f"{whole}.{(match[3] or '').ljust(9, '0')}"


def _hexadecimal(written: str) -> str | None:
    found = keyforms.octets(written)
    return found.hex().upper() if found and len(found) <= TEXT_BYTES // 2 else None


_TEXT: Final = OracleKeyForm(bound="VARCHAR2(4000)", read=_text)
_AS_TEXT: Final = OracleKeyForm(bound="VARCHAR2(4000)", read=_text, match="TO_CHAR({column}) = {key}")
_NUMBER: Final = OracleKeyForm(bound="NUMBER", read=_number)
_DOUBLE: Final = OracleKeyForm(bound="VARCHAR2(400)", read=_real, match="{column} = TO_BINARY_DOUBLE({key})")
_FLOAT: Final = OracleKeyForm(bound="VARCHAR2(400)", read=_real, match="{column} = TO_BINARY_FLOAT({key})")
_ZONED: Final = OracleKeyForm(
    bound="VARCHAR2(40)",
    read=_nanosecond,
    match=f"SYS_EXTRACT_UTC({{column}}) = TO_TIMESTAMP({{key}}, '{_NANOSECONDS}')",
)

_KEYS: Final = {
    **dict.fromkeys(("varchar2", "varchar", "nvarchar2"), _TEXT),
    # Both sides are CHAR: Oracle then pads the shorter one, which it does not do for VARCHAR2.
    "char": OracleKeyForm(bound="VARCHAR2(2000)", read=_padded, match="{column} = CAST({key} AS CHAR(2000))"),
    "nchar": OracleKeyForm(bound="VARCHAR2(2000)", read=_padded, match="{column} = CAST({key} AS NCHAR(1000))"),
    **dict.fromkeys(("number", "numeric", "decimal", "integer", "smallint", "float"), _NUMBER),
    "binary_double": _DOUBLE,
    "binary_float": _FLOAT,
    "date": OracleKeyForm(bound="VARCHAR2(40)", read=_second, match=f"{{column}} = TO_DATE({{key}}, '{_SECONDS}')"),
    "timestamp": OracleKeyForm(
        bound="VARCHAR2(40)", read=_nanosecond, match=f"{{column}} = TO_TIMESTAMP({{key}}, '{_NANOSECONDS}')"
    ),
    **dict.fromkeys(("timestamp with time zone", "timestamp with local time zone"), _ZONED),
    "raw": OracleKeyForm(bound="VARCHAR2(4000)", read=_hexadecimal, match="{column} = HEXTORAW({key})"),
}
_IN_UTC: Final = f"TO_CHAR(SYS_EXTRACT_UTC({{column}}), '{_NANOSECONDS}')"
_VALUES: Final = {
    **dict.fromkeys(("char", "nchar"), "RTRIM({column})"),
    "date": f"TO_CHAR({{column}}, '{_SECONDS}')",
    "timestamp": f"TO_CHAR({{column}}, '{_NANOSECONDS}')",
    **dict.fromkeys(("timestamp with time zone", "timestamp with local time zone"), _IN_UTC),
    **dict.fromkeys(("interval year to month", "interval day to second"), "TO_CHAR({column})"),
    "rowid": "ROWIDTOCHAR({column})",
    "xmltype": "XMLSERIALIZE(CONTENT {column} AS CLOB)",
}
_UNORDERED: Final = frozenset({"clob", "nclob", "blob", "bfile", "long", "long raw", "xmltype", "json"})
