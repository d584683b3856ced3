"""The default of a column as Debezium writes it into a schema: the value that the table's definition states.

Law: what is worked out when a row is written is a stand-in of its type in PostgreSQL, and the beginning of
1970 in MariaDB and MySQL; any other expression, and what no schema can hold, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from eventlog.core.errors import ExpressionError
from eventlog.core.schema import Column
from eventlog.core.sql_types import Category, type_name
from eventlog.sinks.events.rows import FieldType

_literal = re.compile(r"(?:[bBnNeE]|_[a-z0-9]+ ?)?'((?:[^']|'')*)'(?:::[^']*)?", re.ASCII | re.DOTALL).fullmatch
_number = re.compile(r"\(?([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\)?(?:::[\w ()\",]+)?", re.ASCII).fullmatch
_call = re.compile(r"[(]?[A-Za-z0-9_.]+\(.*\)", re.ASCII | re.DOTALL).match
_now = re.compile(
    r"(?:current_(?:timestamp|time|date)|localtime(?:stamp)?|now)(?:\(\d*\))?(?: on update .*)?", re.IGNORECASE
).fullmatch
_words: Final = frozenset({"true", "false"})
_PLACEHOLDERS: Final = {"uuid": "00000000-0000-0000-0000-000000000000", "json": "{}", "jsonb": "{}"}
_WITH_PLACEHOLDERS: Final = frozenset(
    ("bit", "bit varying", "boolean", "char", "character", "varchar", "text", "numeric", "real", "double precision")
    + ("smallint", "integer", "bigint", "json", "jsonb", "xml", "uuid", "date", "time", "timestamp", "interval")
)
"""PostgreSQL's types whose defaults Debezium reads at all."""
_TIMES: Final = frozenset({Category.DATE, Category.TIME, Category.TIMESTAMP})
_CALENDAR: Final = {Category.DATE: "1970-01-01", Category.TIME: "00:00:00", Category.TIMESTAMP: "1970-01-01 00:00:00"}


def find_default(database: str, column: Column, field: FieldType, way: Callable[[Any], Any]) -> Any:
    """Find the value that stands in a schema as a column's default; None where there is none."""
    stated = column.default
    if stated is None or field.type in ("struct", "array"):
        return None
    if database == "postgresql" and not (column.labels or type_name(column.type) in _WITH_PLACEHOLDERS):
        return None
    cell = _read_cell(database, column, stated.strip())
    if cell is None:
        return None
    try:
        return way(cell)
    except ExpressionError:
        return None


def _read_cell(database: str, column: Column, stated: str) -> Any:
    """Read what a default states, as the log would have it."""
    if (match := _literal(stated)) is not None:
        text = match[1].replace("''", "'")
        # MariaDB's bits are a number to it.
        if database == "mysql" and stated[:1] in ("b", "B") and type_name(column.type) == "bit":
            return int(text or "0", 2)
        return text
    if (match := _number(stated)) is not None:
        return match[1]
    if stated.lower() in _words:
        return stated.lower()
    if _now(stated) is not None and column.category in _TIMES:
        return _CALENDAR[column.category]
    if database == "postgresql" and _call(stated) is not None and not column.labels:
        return _find_placeholder(column)
    return None


def _find_placeholder(column: Column) -> str:
    name = type_name(column.type)
    if name in _PLACEHOLDERS:
        return _PLACEHOLDERS[name]
    if name in ("bit", "bit varying"):
        return "0"
    if name == "interval":
        return "00:00:00"
    if column.category in _CALENDAR:
        return _CALENDAR[column.category]
    return "" if column.category is Category.STRING else "0"
