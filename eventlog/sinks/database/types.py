"""Types of a target's columns, by the source's type name: what each database has for the values that come."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from eventlog.core.sql_types import Category, bare_type, category
from eventlog.qlik.readings import is_float, is_zoned

if TYPE_CHECKING:
    from sqlalchemy import Dialect
    from sqlalchemy.types import TypeEngine

LONGEST_TEXT: Final = 4000
"""What every database takes as a text of bounded length; Oracle's limit is the lowest."""
LONGEST_ON_MYSQL: Final = 255
"""Longer ones count in full against the 65,535 bytes of a row there."""
LARGEST_MASK: Final = 256
_arguments = re.compile(r"\((\d+)(?: *, *(-?\d+))?[^)]*\)").search


def target_type(sql_type: str) -> TypeEngine[Any]:
    """The target's type for values of the source's type; a length or precision is kept where it is known."""
    import sqlalchemy as sa

    kind = category(sql_type)
    if kind is Category.STRING:
        return _text(sql_type)
    if kind is Category.OCTET:
        return _binary(sql_type)
    if kind is Category.INT:
        return _integer(sql_type)
    if kind is Category.NUMBER:
        return _number(sql_type)
    if kind is Category.TIMESTAMP:
        return _timestamp(zoned=is_zoned(sql_type))
    others: dict[Category, TypeEngine[Any]] = {Category.STATE: sa.Boolean(), Category.DATE: sa.Date()}
    return others.get(kind, _time())


def _text(sql_type: str) -> TypeEngine[Any]:
    import sqlalchemy as sa
    from sqlalchemy.dialects import mysql

    length = _numbers(sql_type)[0] if "char" in bare_type(sql_type) else None
    if length is None or length > LONGEST_TEXT:
        return sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
    bounded = sa.String(length)
    return bounded if length <= LONGEST_ON_MYSQL else bounded.with_variant(mysql.LONGTEXT(), "mysql", "mariadb")


def _binary(sql_type: str) -> TypeEngine[Any]:
    import sqlalchemy as sa
    from sqlalchemy.dialects import mysql, oracle

    length = _numbers(sql_type)[0]
    if length is not None and length <= LARGEST_MASK:
        small = sa.LargeBinary().with_variant(mysql.VARBINARY(length), "mysql", "mariadb")
        return small.with_variant(oracle.RAW(length), "oracle")
    return sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")


def _integer(sql_type: str) -> TypeEngine[Any]:
    import sqlalchemy as sa

    digits, _ = _numbers(sql_type)
    exact = bare_type(sql_type) in ("numeric", "decimal", "dec", "number")
    if exact and digits is not None and digits > 18:
        return sa.Numeric(digits, 0).with_variant(sa.Text(), "sqlite")
    if "unsigned" in sql_type.lower() and "bigint" in sql_type.lower():
        return sa.Numeric(20, 0).with_variant(sa.Text(), "sqlite")
    return sa.BigInteger()


def _number(sql_type: str) -> TypeEngine[Any]:
    """SQLite has no decimals; as text they stay what they were."""
    import sqlalchemy as sa

    if is_float(sql_type):
        return sa.Double()
    digits, scale = _numbers(sql_type)
    bounded = digits is not None and scale is not None
    found = sa.Numeric(digits, scale) if bounded else sa.Numeric().with_variant(sa.Numeric(65, 30), "mysql", "mariadb")
    return found.with_variant(sa.Text(), "sqlite")


def _timestamp(*, zoned: bool) -> TypeEngine[Any]:
    """To the microsecond; a time with a zone is UTC where the target has no type for one."""
    import sqlalchemy as sa
    from sqlalchemy.dialects import mysql, oracle

    found = sa.DateTime(timezone=zoned).with_variant(sa.DateTime(), "sqlite")
    found = found.with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
    return found.with_variant(oracle.TIMESTAMP(timezone=zoned), "oracle")


def _time() -> TypeEngine[Any]:
    """Oracle has no time of day."""
    import sqlalchemy as sa
    from sqlalchemy.dialects import mysql

    return sa.Time().with_variant(mysql.TIME(fsp=6), "mysql", "mariadb").with_variant(sa.String(32), "oracle")


def _numbers(sql_type: str) -> tuple[int | None, int | None]:
    """A type's length, or its digits and how many of them are a fraction."""
    match = _arguments(sql_type)
    if match is None:
        return None, None
    return int(match[1]), None if match[2] is None else int(match[2])


def as_stored(sql_type: str, dialect: Dialect) -> Any:
    """How a value gets into a column whose type stands for another one there; None where it goes as it is."""
    import sqlalchemy as sa

    kind, there = category(sql_type), target_type(sql_type).dialect_impl(dialect)
    if isinstance(there, sa.String):
        return None if kind is Category.STRING else _plain
    if kind is Category.TIMESTAMP and is_zoned(sql_type) and not getattr(there, "timezone", False):
        return _without_zone
    return None


def _plain(value: Any) -> str:
    return format(value, "f") if hasattr(value, "is_snan") else str(value)


def _without_zone(value: Any) -> Any:
    return value.replace(tzinfo=None)
