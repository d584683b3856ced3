"""References: whose key the values of a column are, as associations name it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from eventlog.core.key_forms import forms_of
from eventlog.core.model import RowId
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.sql_types import PADDED_TYPES, bare_type
from eventlog.core.tablekey import quote_value
from eventlog.core.view_columns import read_column_name


class Reference(Struct, frozen=True):
    """The table whose objects a column's values name, by a key of one column."""

    table: Table
    spell: Callable[[str], str]

    def row(self, text: str) -> RowId:
        """Name the object of a value."""
        return RowId(self.table.schema, self.table.name, f"{self.table.key[0]}={quote_value(self.spell(text))}")


LooseReferences = Mapping[tuple[str | None, str], Mapping[str, Reference]]
"""By table, its attributes that name objects of whose key several texts are one value."""


def find_referenced(catalog: Catalog, table: Table, column: Column) -> Table | None:
    """Find the class whose objects the column's values name; None if it is no reference or its class is
    unknown.

    A table's column says it by its foreign key, a view's column by its name: `fk__idu__manager`
    holds an `idu`.
    """
    if column.references is not None:
        other = catalog.class_named(table.schema, column.references)
        if other is not None and column.referenced_column is not None and not _is_key_of(other, table, column):
            return None
        return other
    if not table.view:
        return None
    key = read_column_name(column.name).refers_to
    if key is None:
        return None
    owners = _by_key(catalog).get(catalog.fold(key), ())
    # A view's column names a key and no schema: its own comes first.
    near = [owner for owner in owners if owner.schema == table.schema] or owners
    if len(near) != 1:  # of several nobody can tell which is meant
        return None
    return near[0]


def _is_key_of(other: Table, table: Table, column: Column) -> bool:
    """Return True if a foreign key refers to the key of this table, and neither to another unique column nor to
    its namesake in another schema.
    """
    is_meant = other.schema == table.schema or other.whole == column.references
    return is_meant and [(column.referenced_column or "").casefold()] == [name.casefold() for name in other.key]


def make_reference(table: Table, column: Column) -> Reference:
    """Make what names the objects of a table, whose key has one column, by the values of `column`.

    The values are spelled as the key is: 1.00 names the row 1.
    """
    form = forms_of(table).get(table.key[0])
    # Blanks at the end of a CHAR are none of its value, also where the key is of another type.
    is_padded = bare_type(column.type) in PADDED_TYPES
    if form is None:
        return Reference(table, _without_blanks if is_padded else str)
    is_spelled, spell = re.compile(form.spelled, re.ASCII).fullmatch, form.spell

    def spell_value(text: str) -> str:
        text = _without_blanks(text) if is_padded else text
        return text if is_spelled(text) else spell(text)

    return Reference(table, spell_value)


def _without_blanks(text: str) -> str:
    return text.rstrip(" ")


# The same tables come with each batch.
@lru_cache(maxsize=16)
def find_loose_references(catalog: Catalog) -> LooseReferences:
    """Find the references of a catalog of which only the row that they name tells how its key is spelled."""
    found: dict[tuple[str | None, str], dict[str, Reference]] = {}
    if not any(table.loose_key for table in catalog):
        return found
    for table in catalog:
        own = chain(table.columns, *(child.columns for child in table.children))
        # What a table's attributes are takes longer to find out, and there may be thousands of tables.
        if not table.view and all(column.references is None for column in own):
            continue
        for name, attribute in table.loggable.items():
            other = find_referenced(catalog, table, attribute.column)
            if other is not None and other.loose_key and len(other.key) == 1:
                reference = make_reference(other, attribute.column)
                found.setdefault((table.schema, table.name), {})[name] = reference
    return found


# The same tables come with each batch.
@lru_cache(maxsize=16)
def _by_key(catalog: Catalog) -> Mapping[str, Sequence[Table]]:
    """Map classes by the single column of their key."""
    owners: dict[str, list[Table]] = {}
    for table in catalog:
        if len(table.bare_key) == 1:
            owners.setdefault(catalog.fold(table.bare_key[0]), []).append(table)
    return owners
