"""Which object a log row speaks of: table_name and table_key as they were written become one RowId.

With a catalog, names are those of the database and the parts of a key stand in the order of the table's primary key;
without one they stay as they were written, and only the case of names is overlooked.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from eventlog.core.errors import DataError
from eventlog.core.model import RowId
from eventlog.core.schema import Catalog, Child, Found, Table
from eventlog.core.tablekey import TableKey, arranged, format_parts, parse, simple, written
from eventlog.core.view_columns import read_column_name


class Naming:
    """What one table_name of the log means, and what key and column names under it mean."""

    __slots__ = ("_meant", "_spelled", "child", "child_key", "folded", "known", "name", "own_key", "plain", "table")

    def __init__(self, name: str, found: Found | None, catalog: Catalog | None) -> None:
        self.name = name
        self.table: Table | None = found.table if found else None
        self.child: Child | None = found.child if found else None
        self.known: dict[str | None, str] = {}
        self._meant: list[tuple[Callable[[str], str], dict[str, str]]] = []
        self._spelled = fold = catalog.fold if catalog is not None else str.casefold
        view = self.table is not None and self.table.view
        self.folded = (lambda column: fold(read_column_name(column).column)) if view else fold
        key = self.table.key if self.table else ()
        self.own_key = {self.folded(column): column for column in key}
        self.plain = f"{key[0]}=" if len(key) == 1 and self.child is None else None
        spelled = self.child.parent_key if self.child else ()
        self.child_key = dict(zip(map(self.folded, spelled), key or spelled, strict=False))

    def attribute(self, column: str | None) -> str:
        """The attribute that a column_name means; DataError when it is missing or the class has no such attribute."""
        if column is None or not column.strip(" "):
            raise DataError("column_name is missing; types 1, 2, 3, 7 and 8 speak of one column.")
        if column not in self.known:
            self.known[column] = self._look_up(column.strip(" "))
        return self.known[column]

    def _look_up(self, column: str) -> str:
        if self.table is None:
            return column
        if not self._meant:
            # Two columns of a view may differ in their prefixes only.
            folds = dict.fromkeys((self._spelled, self.folded))
            self._meant = [(fold, _by_spelling(self.table, fold)) for fold in folds]
        named = f"{self.child.name}.{column}" if self.child else column
        for fold, meant in self._meant:
            if (name := meant.get(fold(named))) is not None:
                return name
        raise DataError(f"column_name {column} is not a column of {self.name}; is the catalog up to date?")


def _by_spelling(table: Table, fold: Callable[[str], str]) -> dict[str, str]:
    """Attributes by whatever a column_name may call them; of two with one spelling the first is meant."""
    found: dict[str, str] = {}
    for name, attribute in table.loggable.items():
        found.setdefault(fold(name), name)
        if attribute.child is None:
            # A child's column is only found with its table's name before it; bare, it would be the parent's.
            found.setdefault(fold(attribute.column.name), name)
    return found


class Identities:
    """Finds the object of a table_name and a table_key, each pair of texts once."""

    def __init__(self, catalog: Catalog | None) -> None:
        self._catalog = catalog
        self._namings: dict[str, Naming] = {}

    def row_id(self, table: str | None, key: str | None, *, row_event: bool = False) -> RowId | None:
        """The identity of the object, for telling objects apart; None when the texts name none."""
        try:
            return self.identify(table, key, row_event=row_event)[2]
        except DataError:
            return None

    def identify(self, table: str | None, key: str | None, *, row_event: bool) -> tuple[Naming, RowId, RowId]:
        """What the table_name means, the object as documents name it, and what it is told apart by."""
        naming = self.naming(table)
        if key is None:
            raise DataError("table_key is NULL; it must name the row.")
        if naming.plain is not None and naming.table is not None and key.startswith(naming.plain) and simple(key):
            row = RowId(naming.table.schema, naming.table.name, key)
            return naming, row, row
        parsed = parse(key)
        if naming.table is None:
            row = RowId(None, naming.name, parsed.canonical)
            folded, name = _folded_key(parsed, naming.folded), naming.name.casefold()
            return naming, row, row if folded == row.key and name == row.table else RowId(None, name, folded)
        if naming.child is not None:
            canonical = self._parents_key(naming, parsed, row_event=row_event)
        else:
            canonical = self._own_key(naming, parsed)
        row = RowId(naming.table.schema, naming.table.name, canonical)
        if naming.table.key or naming.child is not None:
            return naming, row, row
        return naming, row, replace(row, key=_folded_key(parsed, naming.folded))

    def naming(self, table: str | None) -> Naming:
        """What a table_name means; DataError when it is missing or unknown."""
        name = (table or "").strip(" ")
        if not name:
            raise DataError("table_name is missing; it must name a table or view.")
        if name not in self._namings:
            found = self._catalog.find(name) if self._catalog is not None else None
            if self._catalog is not None and found is None:
                raise DataError(f"table_name {name} is not among the captured tables.")
            self._namings[name] = Naming(name, found, self._catalog)
        return self._namings[name]

    def _own_key(self, naming: Naming, key: TableKey) -> str:
        if not naming.own_key:
            return key.canonical
        canonical = arranged(key, naming.own_key, naming.folded)
        if canonical is None:
            names = " and ".join(naming.own_key.values())
            raise DataError(f"table_key {key.text} does not name the key of {naming.name}, which is {names}.")
        return canonical

    def _parents_key(self, naming: Naming, key: TableKey, *, row_event: bool) -> str:
        """A child's row counts to its parent: field rows carry the parent's key, others must at least contain it."""
        canonical = arranged(key, naming.own_key, naming.folded) or arranged(key, naming.child_key, naming.folded)
        if canonical is None and row_event:
            contained = tuple(part for part in key.parts if naming.folded(part[0]) in naming.child_key)
            canonical = arranged(written(contained), naming.child_key, naming.folded)
        if canonical is None:
            names = " and ".join((naming.own_key or naming.child_key).values())
            parent = naming.table.name if naming.table is not None else ""
            raise DataError(
                f"table_key {key.text} stands with the child table {naming.name} and does not name its parent"
                f" {parent} by {names}."
            )
        return canonical


def _folded_key(key: TableKey, fold: Callable[[str], str]) -> str:
    """What tells objects apart where nobody knows the key's columns: how a name was written does not."""
    if all(fold(name) == name for name, _ in key.parts):
        return key.canonical
    return format_parts((fold(name), value) for name, value in key.parts)
