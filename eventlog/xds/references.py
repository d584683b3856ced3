"""References: whose key the values of a column are, as associations name it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from eventlog.core.key_forms import forms_of
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.view_columns import read_column_name


def find_referenced(catalog: Catalog, table: Table, column: Column) -> Table | None:
    """Find the class whose objects the column's values name; None if it is no reference or its class is
    unknown.

    A table's column says it by its foreign key, a view's column by its name: `fk__idu__manager`
    holds an `idu`.
    """
    if column.references is not None:
        return catalog.class_named(table.schema, column.references)
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


def make_speller(table: Table) -> Callable[[str], str]:
    """Make a function that spells a value of a reference as the key of the table spells it: 1.00 names the row 1.

    How a text of another case is spelled in its row is not known here.
    """
    form = forms_of(table).get(table.key[0])
    if form is None:
        return str
    is_spelled, spell = re.compile(form.spelled, re.ASCII).fullmatch, form.spell
    return lambda text: text if is_spelled(text) else spell(text)


# The same tables come with each batch.
@lru_cache(maxsize=16)
def _by_key(catalog: Catalog) -> Mapping[str, Sequence[Table]]:
    """Map classes by the single column of their key."""
    owners: dict[str, list[Table]] = {}
    for table in catalog:
        if len(table.bare_key) == 1:
            owners.setdefault(catalog.fold(table.bare_key[0]), []).append(table)
    return owners
