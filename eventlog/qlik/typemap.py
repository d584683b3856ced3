"""The map of types: what Qlik calls a column's type, and what each of these types is in Avro, in
Parquet and in a database.

Law: this is the only one. Messages, descriptions of files, Parquet and tables that eventlog makes
read it here.

Where the reference is silent: `text` counts as STRING and not as a LOB, for SQLite and PostgreSQL
call every text so, and its changes would be lost from changeMask; a NUMERIC without a stated
precision has precision 0.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct

from eventlog.core.sql_types import Category, bare_type, category, type_name
from eventlog.qlik.readings import is_float

LOBS: Final = frozenset({"BLOB", "CLOB", "NCLOB"})
_BLOBS = frozenset(
    ("blob", "tinyblob", "mediumblob", "longblob", "image", "byte", "binary large object")
    + ("longraw", "long raw", "long varbinary")
)
_CLOBS = {
    **dict.fromkeys(("clob", "tinytext", "mediumtext", "longtext", "long", "dbclob"), "CLOB"),
    **dict.fromkeys(("long varchar", "character large object", "char large object"), "CLOB"),
    **dict.fromkeys(("nclob", "ntext", "national character large object"), "NCLOB"),
}
_SIZES = {
    "tinyint": 1,
    **dict.fromkeys(("smallint", "int2", "smallserial", "serial2", "year"), 2),
    **dict.fromkeys(("mediumint", "int", "integer", "int4", "serial", "serial4"), 4),
    **dict.fromkeys(("bigint", "int8", "serial8", "bigserial"), 8),
}
# 2^64 - 1 has as many.
UNSIGNED_DIGITS: Final = 20
_LENGTHS = {1: 3, 2: 5, 4: 10, 8: 19}
# Numbers of databases whose digits are never stated, for there is only one width of each.
_MONEY = {"money": (19, 2), "smallmoney": (10, 4)}
_SINGLE = frozenset({"real", "float4", "smallfloat", "binary_float"})
_SIZED = frozenset({"bit", "bit varying", "varbit", "clob", "nclob", "text", "string", "graphic", "vargraphic"})
"""Texts with a length whose names do not say that they are made of characters."""
_FIXED = {Category.DATE: "DATE", Category.TIME: "TIME", Category.TIMESTAMP: "DATETIME"}
# Also Oracle's NUMBER(*,2) and a negative scale, which rounds before the point.
_arguments = re.compile(r"\(\s*(\d+|\*)[^,)]*(?:,\s*(-?\d+)\s*)?\)").search
DECIMAL_DIGITS: Final = 38
"""More of them no Parquet decimal has that is read everywhere."""

AvroWord = Literal["boolean", "int", "long", "float", "double", "string", "bytes"]
LogicalWord = Literal["decimal", "date", "time-millis", "timestamp-micros"]
ParquetWord = Literal["bool", "int32", "int64", "float", "double", "decimal", "string", "binary", "date", "timestamp"]
SqlWord = Literal[
    "boolean",
    "integer",
    "bigint",
    "real",
    "double",
    "decimal",
    "text",
    "binary",
    "date",
    "time",
    "timestamp",
]


class Forms(Struct, frozen=True):
    """What a type is where values are written; `logical` is Avro's, where that is wanted."""

    avro: AvroWord
    parquet: ParquetWord
    sql: SqlWord
    logical: LogicalWord | None = None


FORMS: Final[dict[str, Forms]] = {
    "BOOLEAN": Forms("boolean", "bool", "boolean"),
    **dict.fromkeys(("INT1", "INT2", "INT4", "UINT1", "UINT2"), Forms("int", "int32", "integer")),
    **dict.fromkeys(("INT8", "UINT4"), Forms("long", "int64", "bigint")),
    **dict.fromkeys(("UINT8", "NUMERIC"), Forms("string", "decimal", "decimal", "decimal")),
    "REAL4": Forms("float", "float", "real"),
    "REAL8": Forms("double", "double", "double"),
    **dict.fromkeys(("STRING", "CLOB", "NCLOB"), Forms("string", "string", "text")),
    **dict.fromkeys(("BYTES", "BLOB"), Forms("bytes", "binary", "binary")),
    "DATE": Forms("string", "date", "date", "date"),
    # Spark refuses a whole file for Parquet's own type.
    "TIME": Forms("string", "string", "time", "time-millis"),
    "DATETIME": Forms("string", "timestamp", "timestamp", "timestamp-micros"),
}
"""By the names of Qlik's types.

A NUMERIC whose digits nobody states, or with too many of them, is text in Parquet.
"""
WHOLE: Final = Forms("string", "int64", "bigint", "decimal")
"""Exact numbers without a fraction that 64 bits hold."""
WHOLE_DIGITS: Final = 18


class QlikType(Struct, frozen=True):
    """A column's type as it is written for those who read."""

    name: str
    length: int = 0
    precision: int = 0
    scale: int = 0

    @property
    def lob(self) -> bool:
        """Return True if changeMask leaves it out."""
        return self.name in LOBS

    @property
    def forms(self) -> Forms:
        """Return its forms where values are written."""
        if self.name == "NUMERIC" and self.scale == 0 and 0 < self.precision <= WHOLE_DIGITS:
            return WHOLE
        return FORMS[self.name]

    @property
    def digits(self) -> tuple[int, int] | None:
        """Return precision and scale of an exact number; None if not stated."""
        if self.name == "UINT8":
            return UNSIGNED_DIGITS, 0
        if self.name == "NUMERIC" and self.precision:
            return self.precision, self.scale
        return None


@lru_cache(maxsize=4096)
def qlik_type(sql_type: str) -> QlikType:
    """Map a SQL type such as `varchar(64)` or `numeric(10,2)`."""
    name = type_name(sql_type)
    kind = category(sql_type)
    if kind is Category.STATE:
        return QlikType("BOOLEAN", 1)
    # A whole number of another name, as Oracle's INTEGER(10), goes by the digits it states.
    if kind is Category.INT and name in _SIZES:
        return _whole(_SIZES[name], unsigned="unsigned" in bare_type(sql_type).split())
    if kind in (Category.INT, Category.NUMBER):
        return _number(sql_type, name)
    if kind in _FIXED:
        return QlikType(_FIXED[kind])
    if kind is Category.OCTET:
        return QlikType("BLOB" if name in _BLOBS else "BYTES", _first(sql_type))
    return QlikType(_CLOBS.get(name, "STRING"), _first(sql_type) if _has_length(name) else 0)


def _has_length(name: str) -> bool:
    """Return True if the parentheses of a text type hold the length of its values: not an array's, a
    vector's or a time's.
    """
    return not name.endswith("[]") and ("char" in name or name in _SIZED)


def _whole(size: int, *, unsigned: bool) -> QlikType:
    if not unsigned:
        return QlikType(f"INT{size}", _LENGTHS[size])
    # One that is unsigned and of 64 bits has a digit more than the signed one.
    if size == 8:
        return QlikType("UINT8", UNSIGNED_DIGITS)
    return QlikType(f"UINT{size}", _LENGTHS[size])


def _number(sql_type: str, name: str) -> QlikType:
    if is_float(sql_type):
        if name in _SINGLE:
            return QlikType("REAL4", 7)
        return QlikType("REAL8", 14)
    precision, scale = _MONEY.get(name, (0, 0))
    match = _arguments(sql_type)
    if match is not None:
        # What no decimal of Avro could hold: Oracle's NUMBER(*) here, NUMBER(5,-2) and NUMBER(2,5)
        # below.
        if match[1] == "*" and match[2] is None:
            return QlikType("NUMERIC")
        precision = 38
        if match[1] != "*":
            precision = int(match[1])
        scale = int(match[2] or 0)
    if scale < 0 or scale > precision:
        return QlikType("NUMERIC")
    return QlikType("NUMERIC", 0, precision, scale)


def _first(sql_type: str) -> int:
    match = _arguments(sql_type)
    if match is None or match[1] == "*":
        return 0
    return int(match[1])
