"""Types of a target's columns, by the source's type name, in the types that the target's database
has.
"""

from __future__ import annotations

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
    "boolean": "Boolean",
    "integer": "Integer",
    "bigint": "BigInteger",
    "real": "REAL",  # which a database takes for double precision where single would lose digits
    "double": "Double",
    "date": "Date",
}


def target_type(sql_type: str, there: ColumnTypes) -> TypeEngine[Any]:
    """The target's type for values of the source's type.

    A length or precision is kept where it is known.
    """
    kind = qlik_type(sql_type)
    word = kind.forms.sql
    if word == "text":
        short = "char" in bare_type(sql_type) and 0 < kind.length <= TEXT_CHARACTERS
        # A longer one is text without a limit: a VARCHAR of a source may be longer than here.
        return there.text(kind.length if short else None)
    if word == "binary":
        # What is longer may be long, and keys and masks are not.
        return there.binary(kind.length if 0 < kind.length <= MASK_BYTES else None)
    if word == "decimal":
        return there.decimal(*(kind.digits or (None, None)))
    if word == "timestamp":
        return there.timestamp(is_zoned(sql_type))
    if word == "time":
        return there.time
    made: TypeEngine[Any] = getattr(sa, _GENERAL[word])()
    return made


def as_stored(sql_type: str, there: ColumnTypes) -> Callable[[Any], Any] | None:
    """How a value gets into a column whose type stands for another one there.

    None where it goes as it is.
    """
    kind, made = category(sql_type), target_type(sql_type, there)
    if isinstance(made, sa.String):
        return None if kind is Category.STRING else _plain
    # A zone's times are UTC where the database has no type with one.
    if kind is Category.TIMESTAMP and is_zoned(sql_type) and not getattr(made, "timezone", False):
        return lambda value: value.replace(tzinfo=None)
    return None


def _plain(value: Any) -> str:
    if hasattr(value, "is_snan"):  # a Decimal, which str() may write with an exponent
        return format(value, "f")
    return str(value)
