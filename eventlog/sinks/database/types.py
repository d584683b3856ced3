"""Types of a target's columns, by the source's type name, in the types that the target's database has."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from eventlog.core.sql_types import Category, bare_type, category
from eventlog.qlik.readings import is_float, is_zoned

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

    from eventlog.sql.column_types import ColumnTypes

TEXT_CHARACTERS: Final = 4000
"""What every database takes as a text of bounded length; Oracle's limit is the lowest."""
MASK_BYTES: Final = 256
_arguments = re.compile(r"\((\d+)(?: *, *(-?\d+))?[^)]*\)").search


def target_type(sql_type: str, there: ColumnTypes) -> TypeEngine[Any]:
    """The target's type for values of the source's type; a length or precision is kept where it is known."""
    import sqlalchemy as sa

    kind = category(sql_type)
    if kind is Category.STRING:
        length = _numbers(sql_type)[0] if "char" in bare_type(sql_type) else None
        return there.text(length if length is not None and length <= TEXT_CHARACTERS else None)
    if kind is Category.OCTET:
        length = _numbers(sql_type)[0]
        return there.binary(length if length is not None and length <= MASK_BYTES else None)
    if kind is Category.INT:
        return _integer(sql_type, there)
    if kind is Category.NUMBER:
        return _number(sql_type, there)
    if kind is Category.TIMESTAMP:
        return there.timestamp(is_zoned(sql_type))
    others: dict[Category, TypeEngine[Any]] = {Category.STATE: sa.Boolean(), Category.DATE: sa.Date()}
    return others.get(kind) or there.time


def _integer(sql_type: str, there: ColumnTypes) -> TypeEngine[Any]:
    import sqlalchemy as sa

    digits, _ = _numbers(sql_type)
    exact = bare_type(sql_type) in ("numeric", "decimal", "dec", "number")
    if exact and digits is not None and digits > 18:
        return there.decimal(digits, 0)
    if "unsigned" in sql_type.lower() and "bigint" in sql_type.lower():
        return there.decimal(20, 0)
    return sa.BigInteger()


def _number(sql_type: str, there: ColumnTypes) -> TypeEngine[Any]:
    import sqlalchemy as sa

    if is_float(sql_type):
        return sa.Double()
    digits, scale = _numbers(sql_type)
    return there.decimal(digits, scale) if scale is not None else there.decimal(None, None)


def _numbers(sql_type: str) -> tuple[int | None, int | None]:
    """A type's length, or its digits and how many of them are a fraction."""
    match = _arguments(sql_type)
    if match is None:
        return None, None
    return int(match[1]), None if match[2] is None else int(match[2])


def as_stored(sql_type: str, there: ColumnTypes) -> Callable[[Any], Any] | None:
    """How a value gets into a column whose type stands for another one there; None where it goes as it is."""
    import sqlalchemy as sa

    kind, made = category(sql_type), target_type(sql_type, there)
    if isinstance(made, sa.String):
        return None if kind is Category.STRING else _plain
    if kind is Category.TIMESTAMP and is_zoned(sql_type) and not getattr(made, "timezone", False):
        return _without_zone
    return None


def _plain(value: Any) -> str:
    return format(value, "f") if hasattr(value, "is_snan") else str(value)


def _without_zone(value: Any) -> Any:
    return value.replace(tzinfo=None)
