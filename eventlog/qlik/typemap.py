"""What Qlik calls a column's type, in messages, descriptions of files and DDL history: name, length, precision, scale.

Where the reference is silent: `text` counts as STRING and not as a LOB, for SQLite and PostgreSQL call every text so, and
its changes would be lost from changeMask; a NUMERIC without a stated precision has precision 0.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

from eventlog.core.sql_types import Category, bare_type, category
from eventlog.qlik.readings import is_float

LOBS: Final = frozenset({"BLOB", "CLOB", "NCLOB"})
_BLOBS = frozenset(
    ("blob", "tinyblob", "mediumblob", "longblob", "image", "longraw", "long raw", "byte", "binary large object")
    + ("long varbinary",)
)
_CLOBS = {
    **dict.fromkeys(("clob", "tinytext", "mediumtext", "longtext", "long", "long varchar", "dbclob"), "CLOB"),
    **dict.fromkeys(("character large object", "char large object"), "CLOB"),
    **dict.fromkeys(("nclob", "ntext", "national character large object"), "NCLOB"),
}
_SIZES = {
    "tinyint": 1,
    **dict.fromkeys(("smallint", "int2", "smallserial", "serial2", "year"), 2),
    **dict.fromkeys(("mediumint", "int", "integer", "int4", "serial"), 4),
    **dict.fromkeys(("bigint", "int8", "serial8", "bigserial"), 8),
}
_LENGTHS = {1: 3, 2: 5, 4: 10, 8: 19}
_MONEY = {"money": (19, 4), "smallmoney": (10, 4)}
_SINGLE = frozenset({"real", "float4", "smallfloat", "binary_float"})
_FIXED = {Category.DATE: "DATE", Category.TIME: "TIME", Category.TIMESTAMP: "DATETIME"}
_arguments = re.compile(r"\(\s*(\d+|\*)[^,)]*(?:,\s*(-?\d+)\s*)?\)").search
_SIGNS = frozenset({"unsigned", "signed", "zerofill"})


class QlikType(Struct, frozen=True):
    """A column's type as it is told to those who read."""

    name: str
    length: int = 0
    precision: int = 0
    scale: int = 0

    @property
    def lob(self) -> bool:
        """Whether changeMask leaves it out."""
        return self.name in LOBS


@lru_cache(maxsize=4096)
def qlik_type(sql_type: str) -> QlikType:
    """What a SQL type is called, such as `varchar(64)` or `numeric(10,2)`."""
    words = bare_type(sql_type).split()
    name = " ".join([word for word in words if word not in _SIGNS])
    found = category(sql_type)
    if found is Category.STATE:
        return QlikType("BOOLEAN", 1)
    if found is Category.INT and name in _SIZES:
        return _whole(_SIZES[name], unsigned="unsigned" in words)
    if found in (Category.INT, Category.NUMBER):
        return _number(sql_type, name)
    if found in _FIXED:
        return QlikType(_FIXED[found])
    length = 0 if name.startswith("time") else _first(sql_type)  # what a time of day with a zone has is no length
    if found is Category.OCTET:
        return QlikType("BLOB" if name in _BLOBS else "BYTES", length)
    return QlikType(_CLOBS.get(name, "STRING"), length)


def _whole(size: int, *, unsigned: bool) -> QlikType:
    length = 20 if unsigned and size == 8 else _LENGTHS[size]
    return QlikType(f"{'U' if unsigned else ''}INT{size}", length)


def _number(sql_type: str, name: str) -> QlikType:
    if is_float(sql_type):
        return QlikType("REAL4", 7) if name in _SINGLE else QlikType("REAL8", 14)
    precision, scale = _MONEY.get(name, (0, 0))
    match = _arguments(sql_type)
    if match is not None:
        precision = 38 if match[1] == "*" else int(match[1])
        scale = int(match[2] or 0)
    if scale < 0 or (match is not None and match[1] == "*" and match[2] is None) or scale > precision:
        return QlikType("NUMERIC")  # what no decimal of Avro could hold: Oracle's NUMBER(*), NUMBER(5,-2), NUMBER(2,5)
    return QlikType("NUMERIC", 0, precision, scale)


def _first(sql_type: str) -> int:
    match = _arguments(sql_type)
    return int(match[1]) if match is not None and match[1] != "*" else 0
