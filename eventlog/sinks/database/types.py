"""Types of a target's columns, by the source's type name, in the types that the target's database
has.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from eventlog.core.sql_types import Category, bare_type, category, is_zoned
from eventlog.qlik.typemap import qlik_type
from eventlog.sql.column_types import ColumnTypes

TEXT_CHARACTERS: Final = 4000
"""What every database takes as a text of bounded length; Oracle's limit is the lowest."""
MASK_BYTES: Final = 256
_GENERAL: Final = {
    "integer": "Integer",
    "bigint": "BigInteger",
    "real": "REAL",  # which a database takes for double precision where single would lose digits
    "double": "Double",
    "date": "Date",
}


def target_type(sql_type: str, there: ColumnTypes) -> TypeEngine[Any]:
    """Return the target's type for a source's type, with length or precision if known."""
    kind = qlik_type(sql_type)
    word = kind.forms.sql
    if word == "text":
        return there.text(find_text_limit(sql_type))
    if word == "binary":
        return there.binary(find_bytes_limit(sql_type))
    if word == "decimal":
        return there.decimal(*(kind.digits or (None, None)))
    if word == "timestamp":
        return there.timestamp(is_zoned(sql_type))
    if word == "time":
        return there.time
    if word == "boolean":
        return there.truth
    made: TypeEngine[Any] = getattr(sa, _GENERAL[word])()
    return made


def find_text_limit(sql_type: str) -> int | None:
    """Return the length of a text column in characters; None for no limit."""
    length = qlik_type(sql_type).length
    # A longer one is text without a limit: a VARCHAR of a source may be longer than here.
    return length if "char" in bare_type(sql_type) and 0 < length <= TEXT_CHARACTERS else None


def find_bytes_limit(sql_type: str) -> int | None:
    """Return the length of a binary column in bytes; None for no limit."""
    length = qlik_type(sql_type).length
    # What is longer may be long, and keys and masks are not.
    return length if 0 < length <= MASK_BYTES else None


def as_stored(sql_type: str, made: TypeEngine[Any]) -> Callable[[Any], Any] | None:
    """Return a conversion for values whose column has another or a wider type; None if not needed."""
    kind = category(sql_type)
    if isinstance(made, sa.String):
        return None if kind is Category.STRING else _plain
    if kind is Category.STATE and not isinstance(made, sa.Boolean):
        return int
    # Times without a zone are UTC, and so is a zone's time where the column has none.
    zone = dt.UTC if getattr(made, "timezone", False) else None
    if kind is Category.TIMESTAMP and is_zoned(sql_type) != (zone is not None):
        return _unless_far(lambda value: value.replace(tzinfo=zone))
    if kind is Category.DATE and isinstance(made, sa.DateTime):
        return _unless_far(lambda value: dt.datetime.combine(value, dt.time(), zone))
    return None


def _unless_far(store: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Store a time outside Python's range as it is: it is a text."""
    return lambda value: value if type(value) is str else store(value)


def _plain(value: Any) -> str:
    if hasattr(value, "is_snan"):  # a Decimal, which str() may write with an exponent
        return format(value, "f")
    if isinstance(value, bool):  # as databases without a type of its own store it
        return str(int(value))
    return str(value)
