"""Oracle's column types, and how values are asked for when rows are read back."""

from __future__ import annotations

import re
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import oracle
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateTable

from eventlog.sql.column_types import ColumnType, ColumnTypes

ROWDEPENDENCIES: Final = "eventlog rowdependencies"
ROWDEPENDENCIES_CLAUSE: Final = "ROWDEPENDENCIES"
SECONDS: Final = "YYYY-MM-DD HH24:MI:SS"
NANOSECONDS: Final = f"{SECONDS}.FF9"
_arguments = re.compile(r"\([^)]*\)")


KEY_CHARACTERS: Final = 400
"""An index of blocks of 8 KB holds 6,398 bytes."""


def _make_key_type(kind: ColumnType) -> ColumnType:
    """Return the type of key columns: never a LOB.

    Our sessions compare texts bytewise; only databases with long strings take a column's collation.
    """
    if isinstance(kind, sa.LargeBinary):
        return oracle.RAW(KEY_CHARACTERS)
    if isinstance(kind, sa.Text):
        return sa.String(KEY_CHARACTERS)
    return kind


TYPES: Final = ColumnTypes(
    binary=lambda length: sa.LargeBinary() if length is None else oracle.RAW(length),
    timestamp=lambda zoned: oracle.TIMESTAMP(timezone=zoned),
    time=sa.String(32),  # there is no time of day
    keyed=_make_key_type,
    log_number=sa.Numeric(19, 0),
    # A DATE has no fractions, which the log can do without and the companion cannot.
    log_moment=sa.TIMESTAMP(),
    log_name=sa.String(400),
    log_context=sa.String(400),
    log_key=sa.String(4000),
    # So that a row whose writer gives no transaction's number is not grouped with those of its
    # whole block.
    log_options={"info": {ROWDEPENDENCIES: True}},
    # In the order of the calls also on a cluster, where each node would else have numbers of its
    # own in hand; a thousand at a time, so that a busy log seldom writes to the dictionary.
    number_options={"oracle_order": True, "cache": 1000},
)


@compiles(CreateTable, "oracle")  # SQLAlchemy has no word for it
def _compile_create(element: CreateTable, compiler: Any, **given: Any) -> str:
    """Compile CREATE TABLE with ROWDEPENDENCIES and short values in the row, where configured."""
    text = str(compiler.visit_create_table(element, **given))
    if not element.element.info.get(ROWDEPENDENCIES):
        return text
    values = [
        compiler.preparer.format_column(column)
        for column in element.element.columns
        if isinstance(column.type, sa.Text)
    ]
    stored = f"LOB ({', '.join(values)}) STORE AS SECUREFILE (ENABLE STORAGE IN ROW)"
    return f"{text.rstrip()}\n{stored}\n{ROWDEPENDENCIES_CLAUSE}\n\n"


def oracle_value(sql_type: str, column: str, *, in_key: bool = False) -> str:
    """Write SQL for a column's value: times as text, whatever the year; CHAR without blanks in a key."""
    name = plain_name(sql_type)
    if in_key and name in ("char", "nchar"):
        return f"RTRIM({column})"
    return _VALUES.get(name, "{column}").format(column=column)


def has_order(sql_type: str) -> bool:
    """Return True if Oracle can sort by a column of this type."""
    return plain_name(sql_type) not in _UNORDERED


def plain_name(sql_type: str) -> str:
    """Return a type's name without its arguments."""
    return " ".join(_arguments.sub(" ", sql_type.lower()).split())


_IN_UTC: Final = f"TO_CHAR(SYS_EXTRACT_UTC({{column}}), '{NANOSECONDS}')"
_VALUES: Final = {
    "date": f"TO_CHAR({{column}}, '{SECONDS}')",
    "timestamp": f"TO_CHAR({{column}}, '{NANOSECONDS}')",
    **dict.fromkeys(("timestamp with time zone", "timestamp with local time zone"), _IN_UTC),
    **dict.fromkeys(("interval year to month", "interval day to second"), "TO_CHAR({column})"),
    "rowid": "ROWIDTOCHAR({column})",
    "xmltype": "XMLSERIALIZE(CONTENT {column} AS CLOB)",
}
_UNORDERED: Final = frozenset({"clob", "nclob", "blob", "bfile", "long", "long raw", "xmltype", "json"})
