"""Oracle's column types, and how values are asked for when rows are read back."""

from __future__ import annotations

import re
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import oracle
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex, CreateTable

from eventlog.sql.column_types import ColumnType, ColumnTypes

ROWDEPENDENCIES: Final = "eventlog rowdependencies"
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
def _compile_table(element: CreateTable, compiler: Any, **given: Any) -> str:
    """Compile CREATE TABLE with its tablespace, and of the log with partitions, ROWDEPENDENCIES and short values in
    the row.
    """
    table, preparer = element.element, compiler.preparer
    text = f"{compiler.visit_create_table(element, **given).rstrip()}{_write_tablespace(compiler)}\n"
    if not table.info.get(ROWDEPENDENCIES):
        return f"{text}\n"
    values = [preparer.format_column(column) for column in table.columns if isinstance(column.type, sa.Text)]
    text += f"LOB ({', '.join(values)}) STORE AS SECUREFILE (ENABLE STORAGE IN ROW)\n"
    if rows := _find_partition_rows(compiler, table):
        [number] = table.primary_key.columns
        # An interval makes further partitions by itself, from the first one on.
        first = f"(PARTITION first_rows VALUES LESS THAN ({rows}))"
        text += f"PARTITION BY RANGE ({preparer.format_column(number)}) INTERVAL ({rows}) {first}\n"
    return f"{text}ROWDEPENDENCIES\n\n"


@compiles(sa.PrimaryKeyConstraint, "oracle")
def _compile_key(element: sa.PrimaryKeyConstraint, compiler: Any, **given: Any) -> str:
    """Compile a key with the tablespace of its index: Oracle has none of a session."""
    # A key of each partition goes with it, so that an empty partition is dropped without a look at
    # the others.
    local = " LOCAL" if _find_partition_rows(compiler, element.table) else ""
    index, text = f"{local}{_write_tablespace(compiler)}", str(compiler.visit_primary_key_constraint(element, **given))
    return f"{text} USING INDEX{index}" if index else text


@compiles(CreateIndex, "oracle")
def _compile_index(element: CreateIndex, compiler: Any, **given: Any) -> str:
    return f"{compiler.visit_create_index(element, **given)}{_write_tablespace(compiler)}"


def _write_tablespace(compiler: Any) -> str:
    """Write the tablespace that was asked for; LOBs lie where their table does."""
    storage = getattr(compiler.dialect, "eventlog_storage", None)
    return f" TABLESPACE {storage.tablespace}" if storage and storage.tablespace else ""


def _find_partition_rows(compiler: Any, table: sa.Table) -> int | None:
    """Find how many rows a partition is to have; only the log has any."""
    storage = getattr(compiler.dialect, "eventlog_storage", None)
    return storage.partition_rows if storage and table.info.get(ROWDEPENDENCIES) else None


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
