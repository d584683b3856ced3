"""What a column's SQL type means for its values, whatever database named it."""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Final


class Category(StrEnum):
    """The kinds of values that formats tell apart."""

    STRING = "string"
    OCTET = "octet"
    INT = "int"
    STATE = "state"
    NUMBER = "number"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"


_NAMES: dict[str, Category] = {
    **dict.fromkeys(
        ("binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob", "bytea", "image", "raw", "longraw")
        + ("long raw", "byte", "binary varying", "binary large object", "long varbinary"),
        Category.OCTET,
    ),
    **dict.fromkeys(
        ("int", "integer", "smallint", "bigint", "tinyint", "mediumint", "int2", "int4", "int8", "serial", "serial8")
        + ("bigserial", "smallserial", "serial2", "serial4", "year"),
        Category.INT,
    ),
    **dict.fromkeys(("bit", "bool", "boolean"), Category.STATE),
    **dict.fromkeys(
        ("numeric", "decimal", "dec", "number", "float", "real", "double", "double precision", "money", "smallmoney")
        + ("smallfloat", "float4", "float8", "binary_float", "binary_double", "decfloat"),
        Category.NUMBER,
    ),
    "date": Category.DATE,
    "time": Category.TIME,
    "timetz": Category.STRING,  # no format has a form for it that keeps its zone
    **dict.fromkeys(("timestamp", "timestamptz", "datetime", "datetime2", "smalldatetime"), Category.TIMESTAMP),
}
_arguments = re.compile(r"\(([^)]*)\)")
# What may follow a type's name, also that of Informix's datetime and interval.
_qualifiers = re.compile(
    r" (?:unsigned|signed|zerofill|with(?:out)?(?: local)? time zone|year to .*|hour to .*|(?:not )?null|auto_increment)\b"
)


def bare_type(sql_type: str) -> str:
    """Strip a type's name of its length: `timestamp` for `TIMESTAMP(3) WITHOUT TIME ZONE`."""
    bare = _arguments.sub("", sql_type).lower().removesuffix(" without time zone")
    return " ".join(bare.split())


def type_name(sql_type: str) -> str:
    """Strip a type's name of everything behind it: `integer` for `INTEGER(10) UNSIGNED NOT NULL`."""
    return _qualifiers.sub("", " ".join(_arguments.sub(" ", sql_type).lower().split()))


def longest(sql_type: str) -> int | None:
    """Read the length in a type, as 64 of `varchar(64)`; None without one."""
    match = _arguments.search(sql_type)
    words = match[1].split() if match else []
    return int(words[0]) if words and words[0].isdigit() else None


def fraction_digits(sql_type: str) -> int | None:
    """Read how many digits an exact number has behind the point; None where the type does not say."""
    match = _arguments.search(sql_type)
    _, _, scale = match[1].partition(",") if match else ("", "", "")
    return int(scale) if scale.strip().isdigit() else None


PADDED_TYPES: Final = frozenset({"char", "character", "bpchar", "nchar", "national character", "native character"})
"""Names of texts that a database fills up with blanks, which count in no comparison of theirs."""

EXACT_TYPES: Final = frozenset({"numeric", "decimal", "dec", "number"})
"""Names of exact numbers with as many digits as are stated, or any."""


@lru_cache(maxsize=4096)
def category(sql_type: str) -> Category:
    """Find the category of a type, as `varchar(64)` or `numeric(10,0)`; unknown names are strings."""
    match = _arguments.search(sql_type)
    arguments = []
    if match:
        arguments = [part.strip() for part in match[1].split(",")]
    name = type_name(sql_type)
    of_name = _NAMES.get(name, Category.STRING)
    if of_name is Category.NUMBER and name in EXACT_TYPES:
        # Only a stated precision fixes the scale: a bare NUMBER or NUMERIC holds fractions in
        # Oracle and PostgreSQL, and Oracle's NUMBER(*) is a bare NUMBER.
        match arguments:
            case [precision] if precision != "*":
                return Category.INT
            case [_, "0"]:
                return Category.INT
    if of_name is Category.TIME and bare_type(sql_type) == "time with time zone":
        return Category.STRING  # what is called timetz too
    if name == "tinyint" and arguments == ["1"]:
        return Category.STATE  # what MySQL and MariaDB make of BOOLEAN
    if name == "bit" and arguments not in ([], ["1"]):
        return Category.STRING  # a string of bits, not a truth value
    return of_name


_TRUTHS: Final = {
    **dict.fromkeys(("1", "t", "true", "y", "yes"), True),
    **dict.fromkeys(("0", "f", "false", "n", "no"), False),
}


def truth_of(value: object) -> bool | None:
    """Read a truth value as logs and databases write it; None where it is none."""
    if isinstance(value, str):
        return _TRUTHS.get(value.strip(" ").lower())
    if isinstance(value, bytes | bytearray | memoryview):
        # BIT(1), as MySQL's drivers hand it over
        return {b"\0": False, b"\1": True}.get(bytes(value))
    if isinstance(value, Decimal) and value.is_nan():  # one that signals cannot even be compared
        return None
    if isinstance(value, int | float | Decimal) and value in (0, 1):
        return bool(value)
    return None


def is_zoned(sql_type: str) -> bool:
    """Return True if a time of this type is a moment, independent of the reader's zone."""
    name = bare_type(sql_type)
    return name.endswith(("with time zone", "with local time zone")) or name == "timestamptz"
