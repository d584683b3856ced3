"""Answers read-backs of one bucket: from a database, or from the bucket's part of a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eventlog.convert.settings import Conversion, DatabaseRows
from eventlog.convert.sheaf import Sheaf
from eventlog.convert.snapshot import KEY
from eventlog.core.model import Cell, ReadBack, RowId
from eventlog.core.rules.prefer import NOBODY_READS
from eventlog.core.schema import Attribute, Catalog, Table
from eventlog.core.seams import RowReader

Found = dict[str, dict[str, Cell]]
"""Objects of one table by key."""


class PlacedTable(Struct, frozen=True, kw_only=True):
    """A table of the snapshot, or a child table, over the buckets."""

    table: int
    child: int | None = None
    sheaf: Sheaf | None = None
    """None: the table has no rows."""


class SnapshotReader:
    """Answers from one bucket of a snapshot."""

    def __init__(self, catalog: Catalog, placed: Sequence[PlacedTable], bucket: int) -> None:
        self._catalog = catalog
        self._bucket = bucket
        self._placed = {(one.table, one.child): one for one in placed}
        self._places = {(table.schema, table.name): place for place, table in enumerate(catalog)}

    def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
        """The wanted attributes of the objects that exist; of those whose table the snapshot has not, that nobody reads it."""
        found: dict[RowId, ReadBack] = {}
        by_table: dict[tuple[str | None, str], dict[str, frozenset[str]]] = {}
        for row, attributes in wanted.items():
            by_table.setdefault((row.schema, row.table), {})[row.key] = attributes
        for (schema, name), keys in by_table.items():
            place = self._places.get((schema, name))
            answer: Mapping[str, ReadBack]
            if place is None or (place, None) not in self._placed:
                answer = dict.fromkeys(keys, NOBODY_READS)
            else:
                answer = self._table(place, keys)
            found |= {RowId(schema, name, key): values for key, values in answer.items()}
        return found

    def _table(self, place: int, keys: Mapping[str, frozenset[str]]) -> Found:
        table = self._catalog.tables[place]
        found = {key: _own(table, rows) for key, rows in self._of(place, None, keys).items()}
        for number, child in enumerate(table.children):
            if (place, number) not in self._placed:
                continue  # nothing is said of it, rather than that it is empty
            attributes = [one for one in table.attributes.values() if one.child == child.name]
            rows = self._of(place, number, found)
            for key in found:
                found[key] |= _childrens(attributes, rows.get(key, []))
        return {
            key: {name: values[name] for name in table.loggable if name in keys[key] and name in values}
            for key, values in found.items()
        }

    def _of(self, place: int, child: int | None, keys: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """The rows of the bucket that have these keys."""
        placed = self._placed.get((place, child))
        found: dict[str, list[dict[str, Any]]] = {}
        if placed is None or placed.sheaf is None:
            return found
        chosen = pa.array(keys, pa.string())
        for batch in placed.sheaf.read(self._bucket):
            for row in batch.filter(pc.is_in(batch.column(KEY), value_set=chosen)).to_pylist():
                found.setdefault(row[KEY], []).append(row)
        return found


@contextmanager
def reader_of(
    conversion: Conversion, placed: Sequence[PlacedTable] = (), bucket: int = 0
) -> Iterator[RowReader | None]:
    """What answers read-backs in a bucket; None where nobody can."""
    if conversion.read_back is None or conversion.catalog is None:
        yield None
    elif isinstance(conversion.read_back, DatabaseRows):
        from eventlog.sql.connect import connect
        from eventlog.sql.rows import SqlRowReader

        engine = connect(conversion.read_back.url)
        try:
            yield SqlRowReader(engine, conversion.catalog)
        finally:
            engine.dispose()
    else:
        yield SnapshotReader(conversion.catalog, placed, bucket)


def _own(table: Table, rows: list[dict[str, Any]]) -> dict[str, Cell]:
    """The object of a table's rows: there is one, but a view may have several for attributes with several values."""
    attributes = [one for one in table.loggable.values() if one.child is None]
    ordered = _ordered(rows, attributes)
    return {
        one.name: tuple(dict.fromkeys(_values(ordered, one))) if one.multiple else ordered[0][one.column.name]
        for one in attributes
    }


def _childrens(attributes: Sequence[Attribute], rows: list[dict[str, Any]]) -> dict[str, Cell]:
    ordered = _ordered(rows, attributes)
    return {one.name: tuple(_values(ordered, one)) for one in attributes}


def _values(rows: list[dict[str, Any]], attribute: Attribute) -> list[Any]:
    return [row[attribute.column.name] for row in rows if row[attribute.column.name] is not None]


def _ordered(rows: list[dict[str, Any]], attributes: Sequence[Attribute]) -> list[dict[str, Any]]:
    """Rows in the order of their values, so that it does not matter how the snapshot's files were cut."""
    if len(rows) < 2:
        return rows

    def values(row: dict[str, Any]) -> list[tuple[bool, Any]]:
        found = [row[one.column.name] for one in attributes]
        return [(value is None, "" if value is None else value) for value in found]

    return sorted(rows, key=values)
