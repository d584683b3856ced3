"""Which table a label of the stream means, and what it looks like: from the stream, the settings and a schema file."""

from __future__ import annotations

from msgspec.structs import replace

from eventlog.core.schema import Catalog, Column, Table
from eventlog.sources.gbase.layout import Layout
from eventlog.sources.gbase.settings import GbaseSettings


def table_of(label: int, layout: Layout | None, settings: GbaseSettings, known: Catalog | None) -> Table:
    """The table with that label; its columns are those that are known, and those that only the stream names."""
    table = _named(label, settings, known)
    spelled = {column.name.casefold() for column in table.columns}
    added = [
        Column(name=column.name, type=column.type.sql)
        for column in (layout.columns if layout is not None else ())
        if column.name.casefold() not in spelled
    ]
    return _with_key(replace(table, columns=(*table.columns, *added)), settings)


def spelled_as(layout: Layout, table: Table) -> Layout:
    """The layout with the column names that the table has, whatever their case in the stream."""
    names = {column.name.casefold(): column.name for column in table.columns}
    exact = {column.name for column in table.columns}
    columns = [
        column if column.name in exact else replace(column, name=names.get(column.name.casefold(), column.name))
        for column in layout.columns
    ]
    return replace(layout, columns=tuple(columns))


def _named(label: int, settings: GbaseSettings, known: Catalog | None) -> Table:
    """The table of a schema file that has the label's name or number; else an empty one of that name."""
    given = settings.tables.get(str(label))
    if given is None:
        numbered = [table for table in known or () if table.number == label]
        return numbered[0] if numbered else Table(name=f"table_{label}", columns=(), number=label)
    name = given.rpartition(":")[2]
    found = known.find(name) if known is not None else None
    if found is not None:
        return found.table
    schema, _, bare = name.rpartition(".")
    return Table(name=bare, schema=schema or None, columns=(), number=label)


def _with_key(table: Table, settings: GbaseSettings) -> Table:
    keys = {name.rpartition(":")[2].casefold(): key for name, key in settings.keys.items()}
    key = keys.get(table.whole.casefold()) or keys.get(table.name.casefold())
    if key is None:
        return table
    places = {name.casefold(): place for place, name in enumerate(key, start=1)}
    columns = [replace(column, key=places.get(column.name.casefold())) for column in table.columns]
    missing = places.keys() - {column.name.casefold() for column in columns}
    unseen = [Column(name=name, key=places[name.casefold()]) for name in key if name.casefold() in missing]
    return replace(table, columns=(*columns, *unseen))
