"""Which object a log row speaks of: table_name and table_key as they were written become one RowId.

With a catalog, names are those of the database and the parts of a key stand in the order of the table's primary key;
without one they stay as they were written, and only the case of names is overlooked.
"""

from __future__ import annotations

from collections.abc import Callable

from eventlog.columnnames import read_column_name
from eventlog.errors import DataError
from eventlog.model import RowId
from eventlog.schema import Catalog, Child, Found, Table
from eventlog.tablekey import TableKey, arranged, format_parts, parse


class Naming:
    """What one table_name of the log means, and what the column names under it mean."""

    __slots__ = ("_fold", "child", "known", "name", "table")

    def __init__(self, name: str, found: Found | None, catalog: Catalog | None) -> None:
        self.name = name
        self.table: Table | None = found.table if found else None
        self.child: Child | None = found.child if found else None
        self.known: dict[str | None, str] = {}
        self._fold = catalog.fold if catalog is not None else str

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
        wanted = self._fold(f"{self.child.name}.{column}" if self.child else column)
        for name, attribute in self.table.attributes.items():
            if wanted in (self._fold(name), self._fold(attribute.column.name)) and self._own(attribute.child, wanted):
                return name
        if not self.child:
            for name, attribute in self.table.attributes.items():
                if self.table.view and wanted == self._fold(read_column_name(attribute.column.name).column):
                    return name
        if wanted in map(self._fold, self.table.key):
            raise DataError(f"column_name {column} is part of the key of {self.table.name}, which is never published.")
        raise DataError(f"column_name {column} is not a column of {self.name}; is the catalog up to date?")

    def _own(self, child: str | None, wanted: str) -> bool:
        """A child's column is only found with its table's name before it; bare, it would be the parent's."""
        return child is None or wanted.startswith(self._fold(child) + ".")


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
        parsed = parse(key)
        if naming.table is None:
            row = RowId(None, naming.name, parsed.canonical)
            return naming, row, RowId(None, naming.name.casefold(), _folded_key(parsed, str.casefold))
        if naming.child is not None:
            canonical = self._parents_key(naming.table, naming.child, parsed, row_event=row_event)
        else:
            canonical = self._own_key(naming.table, parsed)
        row = RowId(naming.table.schema, naming.table.name, canonical)
        if naming.table.key or naming.child is not None:
            return naming, row, row
        return naming, row, row._replace(key=_folded_key(parsed, self._folded))

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

    def _own_key(self, table: Table, key: TableKey) -> str:
        if not table.key:
            return key.canonical
        canonical = self._arranged(table, key, table.key)
        if canonical is None:
            raise DataError(
                f"table_key {key.text} does not name the key of {table.name}, which is {' and '.join(table.key)}."
            )
        return canonical

    def _parents_key(self, table: Table, child: Child, key: TableKey, *, row_event: bool) -> str:
        """A child's row counts to its parent: field rows carry the parent's key, others must at least contain it."""
        canonical = self._arranged(table, key, table.key) or self._arranged(table, key, child.parent_key)
        if canonical is None and row_event:
            contained = tuple(
                part for part in key.parts if self._folded(part[0]) in map(self._folded, child.parent_key)
            )
            canonical = self._arranged(table, TableKey(key.text, contained), child.parent_key)
        if canonical is None:
            raise DataError(
                f"table_key {key.text} stands with the child table {child.name} and does not name its parent"
                f" {table.name} by {' and '.join(table.key or child.parent_key)}."
            )
        return canonical

    def _arranged(self, table: Table, key: TableKey, spelled: tuple[str, ...]) -> str | None:
        """The key with the parent's column names in their order, when it names exactly the `spelled` columns."""
        folded = TableKey(key.text, tuple((self._bare(table, name), value) for name, value in key.parts))
        found = arranged(folded, [self._bare(table, name) for name in spelled])
        if found is None or len(spelled) != len(table.key or spelled):
            return None
        values = [value for _, value in parse(found).parts]
        return format_parts(zip(table.key or spelled, values, strict=True))

    def _bare(self, table: Table, name: str) -> str:
        return self._folded(read_column_name(name).column if table.view else name)

    def _folded(self, name: str) -> str:
        return self._catalog.fold(name) if self._catalog is not None else name


def _folded_key(key: TableKey, fold: Callable[[str], str]) -> str:
    """What tells objects apart where nobody knows the key's columns: how a name was written does not."""
    return format_parts((fold(name), value) for name, value in key.parts)
