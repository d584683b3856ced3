"""The one text that a value has, whoever writes it: triggers into the log, a full load into keys, read-backs into changes."""

from __future__ import annotations

from eventlog.core.schema import Column
from eventlog.core.sql_types import Category, bare_type, is_zoned
from eventlog.sql.dialect import Dialect, statement

ZONED = "text_of_zoned"
"""The fragment for moments."""

_FRAGMENTS = {
    Category.STRING: "text_of_string",
    Category.OCTET: "text_of_octet",
    Category.INT: "text_of_int",
    Category.STATE: "text_of_state",
    Category.NUMBER: "text_of_number",
    Category.DATE: "text_of_date",
    Category.TIME: "text_of_time",
    Category.TIMESTAMP: "text_of_timestamp",
}


def value_text(dialect: Dialect, column: Column, value: str) -> str:
    """The text that the log holds for a value of this column; `value` is SQL that gives it."""
    usual = ZONED if is_moment(dialect, column) else _FRAGMENTS[column.category]
    return statement(dialect, dialect.type_texts.get(bare_type(column.type), usual), value=value)


def is_moment(dialect: Dialect, column: Column) -> bool:
    """Whether the column holds moments, which our sessions see in UTC; MariaDB's and MySQL's TIMESTAMP says so by no zone."""
    if column.category is not Category.TIMESTAMP:
        return False
    return is_zoned(column.type) or dialect.type_texts.get(bare_type(column.type)) == ZONED
