"""Fields: the ready pieces of each attribute of a table, and how its values are written.

A change then costs the concatenation of ready pieces and its own values; a million field edits a second hang on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from eventlog.core.errors import ExpressionError
from eventlog.core.model import ABSENT
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.sql_types import Category
from eventlog.core.tablekey import quoted
from eventlog.xds.text import attribute, escaped, shown, special
from eventlog.xds.times import TimeSyntax
from eventlog.xds.values import Reading, reading

ValueWriter = Callable[[object], str]

Search = Callable[[str], re.Match[str] | None]

_always = re.compile("").search
_not_digits = re.compile(r"[^0-9]|^$").search
_ODD: dict[Category | None, tuple[str, Search]] = {
    None: ("string", special),
    Category.STRING: ("string", special),
    Category.NUMBER: ("string", special),
    Category.INT: ("int", _not_digits),
}
"""Which text of the log is not written as it stands; None is a column that nobody described."""


class Settings(Struct, frozen=True, kw_only=True):
    """What the text of an element depends on, besides the change and the catalog."""

    time_syntax: TimeSyntax = 1
    enable_refs: bool = True
    schema_name: str | None = None
    indent: str = ""


class Field(Struct, frozen=True, kw_only=True):
    """The ready pieces of one attribute. A str in which `odd` finds nothing stands as it is after `opening`."""

    odd: Search
    opening: str
    write: ValueWriter
    add: str
    modify: str


class Fields(dict[str, Field]):
    """The fields of a table by attribute name, each made when it is first met."""

    def __init__(self, table: Table | None, catalog: Catalog | None, settings: Settings) -> None:
        super().__init__()
        self._table = table
        self._catalog = catalog
        self._settings = settings

    def __missing__(self, name: str) -> Field:
        described = self._table.loggable.get(name) if self._table is not None else None
        column = described.column if described is not None else None
        category = column.category if column is not None else None
        referenced = self._referenced(column)
        if referenced is not None:
            # The key of the other object, which its table_key writes as the log does, whatever this format's syntax.
            write = _reference_writer(reading(category, 3), referenced, self._settings.schema_name)
        else:
            write = _value_writer(reading(category, self._settings.time_syntax))
        kind, odd = _ODD.get(category if referenced is None else Category.OCTET, ("", _always))
        add, modify = _openings(name, self._settings.indent)
        made = self[name] = Field(odd=odd, opening=f'<value type="{kind}">', write=write, add=add, modify=modify)
        return made

    def _referenced(self, column: Column | None) -> Table | None:
        """The table that the column's values point into, when an association can be made of them."""
        if self._catalog is None or self._table is None or column is None or not self._settings.enable_refs:
            return None
        found = self._catalog.referenced(self._table, column)
        return found if found is not None and len(found.key) == 1 else None


def association_end(table: str, schema: str | None) -> str:
    """What follows the key in an association: the table, and the schema where there is one."""
    return f",table={quoted(table)}" + (f",schema={quoted(schema)}" if schema else "")


def values(field: Field, cell: object, name: str) -> list[str]:
    """The `<value>` elements of a cell: none for NULL, several for a child table's column."""
    if cell is None or cell is ABSENT:
        return []
    try:
        if isinstance(cell, tuple):
            return [field.write(value) for value in cell if value is not None]
        return [field.write(cell)]
    except ExpressionError as error:
        raise ExpressionError(f"attribute {shown(name)}: {error}") from error


def _value_writer(read: Reading) -> ValueWriter:
    def write(value: object) -> str:
        kind, text = read(value)
        return f'<value type="{kind}">{escaped(text)}</value>'

    return write


def _reference_writer(read: Reading, table: Table, schema_name: str | None) -> ValueWriter:
    key = table.key[0]
    end = association_end(table.name, table.schema or schema_name)

    def write(value: object) -> str:
        _, text = read(value)
        association = attribute(f"{key}={quoted(text)}{end}")
        return f'<value type="dn" association-ref="{association}">{escaped(text)}</value>'

    return write


def _openings(name: str, indent: str) -> tuple[str, str]:
    try:
        named = attribute(name)
    except ExpressionError as error:
        raise ExpressionError(f"the name of attribute {shown(name)}: {error}") from error
    return f'\n{indent}  <add-attr attr-name="{named}">', f'\n{indent}  <modify-attr attr-name="{named}">'
