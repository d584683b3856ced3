"""Column types of MariaDB and MySQL, and how values are asked for when rows are read back."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles

from eventlog.core.limits import ColumnLimits
from eventlog.core.schema import Column
from eventlog.core.sql_types import Category, bare_type
from eventlog.databases.mysql.times import read_beyond
from eventlog.sql.column_types import ColumnType, ColumnTypes, KeyText, general_text

LONGEST_CHARACTERS: Final = 255
"""Longer texts count in full against the 65,535 bytes of a row."""
SHAPES: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
    | {"geometrycollection", "geomcollection"}
)
LONG_TYPES: Final = frozenset(
    {"char", "varchar", "text", "mediumtext", "longtext", "json"}
    | {"binary", "varbinary", "blob", "mediumblob", "longblob"}
)
"""Types whose values may be long."""
_READ_AS_TEXT: Final = frozenset({Category.DATE, Category.TIME, Category.TIMESTAMP})
"""A date of MySQL may be zero, and its times are no times of day."""
_SAID: Final = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}


def _text(length: int | None) -> ColumnType:
    if length is not None and length <= LONGEST_CHARACTERS:
        return general_text(length)
    return mysql.LONGTEXT()


def _make_key_type(kind: ColumnType) -> ColumnType:
    """Return the type of key columns: bytewise text, nothing unbounded."""
    if isinstance(kind, mysql.LONGBLOB):
        return mysql.VARBINARY(LONGEST_CHARACTERS)
    if isinstance(kind, mysql.LONGTEXT):
        return KeyText(LONGEST_CHARACTERS)
    if isinstance(kind, sa.String):
        return KeyText(kind.length)
    return kind


@compiles(KeyText, "mysql", "mariadb")
def _key_text(element: KeyText, compiler: Any, **_given: Any) -> str:
    """Compile a key's text type with a bytewise collation.

    utf8mb4_bin takes 'a' for 'a ', and each server names the exact collation differently.
    """
    # NO PAD: blanks at the end count.
    exact = "utf8mb4_nopad_bin" if compiler.dialect.is_mariadb else "utf8mb4_0900_bin"
    return f"VARCHAR({element.length}) CHARACTER SET utf8mb4 COLLATE {exact}"


class SpanTime(mysql.TIME):
    """A TIME, which goes beyond a day and below zero: what is no time of day is read as a text."""

    cache_ok = True

    def result_processor(self, _dialect: Any, _coltype: Any) -> Any:
        def read(value: Any) -> Any:
            if not isinstance(value, dt.timedelta) or dt.timedelta() <= value < _DAY:
                return value if not isinstance(value, dt.timedelta) else (dt.datetime.min + value).time()
            seconds, micros = divmod(abs(value) // dt.timedelta(microseconds=1), 1_000_000)
            sign, fraction = "-" if value < dt.timedelta() else "", f".{micros:06}" if micros else ""
            return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"

        return read


_DAY: Final = dt.timedelta(days=1)

TYPES: Final = ColumnTypes(
    limits=ColumnLimits(nan=False, infinite=False, single=False, beyond=read_beyond),
    text=_text,
    # VARBINARY beyond a row's 65,535 bytes is refused, and nobody knows how many there will be.
    binary=lambda length: mysql.LONGBLOB() if length is None else mysql.VARBINARY(length),
    decimal=lambda digits, scale: sa.Numeric(65, 30) if digits is None else sa.Numeric(digits, scale),
    timestamp=lambda _zoned: mysql.DATETIME(fsp=6),
    time=SpanTime(fsp=6),
    truth=mysql.TINYINT(1),
    keyed=_make_key_type,
    log_time=mysql.DATETIME(fsp=6),
    log_moment=mysql.DATETIME(fsp=6),
    log_name=sa.String(400),
    # A session's variable may have any character set, or none: a text would refuse some and fail the writer.
    log_context=mysql.VARBINARY(1600),
    log_key=sa.String(4000),
    log_value=mysql.LONGTEXT(),
    # Binary collation: a lower-case status must not pass for an upper-case one.
    table_options={f"{name}_{what}": value for what, value in _SAID.items() for name in ("mysql", "mariadb")},
)


def mysql_value(name: str, column: Column) -> str:
    """Write SQL reading a column: times as text, bytes of BIT as number or text.

    Vectors come as Base64: the driver cannot read them.
    """
    if column.category in _READ_AS_TEXT:
        return f"CAST({name} AS CHAR)"
    kind = bare_type(column.type)
    if kind == "bit":
        return f"{name} + 0"  # a number, not the bytes
    if kind == "vector":
        return f"REPLACE(TO_BASE64({name}), CHAR(10 USING utf8mb4), '')"
    if kind in SHAPES:
        # A geometry of another reference system than 0 has it before its words.
        return f"CONCAT(IF(ST_SRID({name}) = 0, '', CONCAT('SRID=', ST_SRID({name}), ';')), ST_AsText({name}))"
    return name
