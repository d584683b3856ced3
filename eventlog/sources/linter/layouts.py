"""What a source table's records are made of: LINTER's types by their names, lengths, code pages.

Does no I/O.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import ConfigError, DataError
from eventlog.core.schema import Column, Table

ByteOrder = Literal["little", "big"]


class Type(StrEnum):
    """The types of LINTER's columns."""

    CHAR = "char"
    VARCHAR = "varchar"
    NCHAR = "nchar"
    NVARCHAR = "nvarchar"
    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    REAL = "real"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DATE = "date"
    BOOLEAN = "boolean"
    BYTE = "byte"
    VARBYTE = "varbyte"
    BLOB = "blob"
    EXTFILE = "extfile"


_NAMES: Final = {
    **{kind.value: kind for kind in Type},
    "character": Type.CHAR,
    "character varying": Type.VARCHAR,
    "char varying": Type.VARCHAR,
    "nchar varying": Type.NVARCHAR,
    "national character": Type.NCHAR,
    "national character varying": Type.NVARCHAR,
    "int": Type.INTEGER,
    "float": Type.DOUBLE,
    "double precision": Type.DOUBLE,
    "dec": Type.DECIMAL,
    "numeric": Type.DECIMAL,
    "byte varying": Type.VARBYTE,
    "bool": Type.BOOLEAN,
}
_PUBLISHED: Final = {Type.DATE: "timestamp(2)", Type.EXTFILE: "varchar(512)", Type.VARBYTE: "varbinary({length})"}
"""What other databases call the types whose names mean something else there, or nothing."""

# A decimal's scale is read over, for all of them have twenty digits and ten behind the point; words
# may follow the length, as in `character (10) varying`.
_written = re.compile(r"\s*([a-z ]+?)\s*(?:\(\s*(\d+)\s*(?:,\s*\d+\s*)?\)\s*([a-z ]*))?\s*", re.IGNORECASE).fullmatch


class RecordField(Struct, frozen=True, kw_only=True):
    """One column of a record."""

    name: str
    type: Type
    length: int = 0
    code_page: str = "ascii"


class RecordLayout(Struct, frozen=True, kw_only=True):
    """A table and its columns in the order of its records. A codec may use of it what it needs.

    `null_mask` says whether a mask of NULLs leads; `strict` that nothing may follow the last
    column.
    """

    table: Table
    fields: tuple[RecordField, ...]
    byte_order: ByteOrder = "little"
    null_mask: bool = True
    strict: bool = True


def record_fields(
    table: Table,
    code_page: str,
    code_pages: Mapping[str, str],
) -> tuple[RecordField, ...]:
    """Return the fields of a table's records.

    The code page is the one set for `table.column`, else for the table, else the source's.
    """
    pages = {name.casefold(): page for name, page in code_pages.items()}
    own = pages.get(table.name.casefold(), code_page)
    return tuple(
        _field(table, column, check_code_page(pages.get(f"{table.name}.{column.name}".casefold(), own)))
        for column in table.columns
    )


def check_code_page(name: str) -> str:
    """Return the code page's canonical name; raise ConfigError if unknown."""
    try:
        return codecs.lookup(name).name
    except LookupError:
        known = "ascii, cp866, koi8-r, cp1251, utf-8"
        raise ConfigError(f"{name!r} is no code page.", hint=f"LINTER uses {known}.") from None


def describe_published(table: Table) -> Table:
    """Return the table for consumers, with type names of other databases."""
    columns = []
    for column in table.columns:
        field = _field(table, column, "ascii")
        name = _PUBLISHED.get(field.type)
        if name is not None:
            column = replace(column, type=name.format(length=field.length))  # noqa: PLW2901  the same column
        columns.append(column)
    return replace(table, columns=tuple(columns))


def _field(table: Table, column: Column, code_page: str) -> RecordField:
    match = _written(column.type)
    name = ""
    if match:
        name = " ".join(f"{match[1]} {match[3] or ''}".lower().split())
    kind = _NAMES.get(name)
    if kind is None or match is None:
        raise DataError(
            f"Column {column.name} of {table.name} has the type {column.type}, which LINTER does not"
            " have; correct the schema file."
        )
    length = int(match[2] or 1)  # a type without a length has one character
    return RecordField(name=column.name, type=kind, length=length, code_page=code_page)
