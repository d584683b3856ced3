"""What captured tables looked like, version by version: a companion table that whoever publishes adds to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, TableClause, column, select, table
from sqlalchemy.exc import SQLAlchemyError

from eventlog.core.errors import EventlogError
from eventlog.core.schema import Table
from eventlog.sql.findlog import log_columns
from eventlog.sql.names import LogNames

Shape = Mapping[str, str]
"""The columns of a class and of its child tables, with their types."""


class ShapeVersion(Struct, frozen=True, kw_only=True):
    """One version of a table: since when it is known (UTC), what differs from the one before, and its columns."""

    table: str
    version: int
    seen_at: str
    changed: Mapping[str, Sequence[str]] = {}
    columns: Shape = {}


def shape_of(table: Table) -> Shape:
    """The columns of a class and of its child tables."""
    own = {column.name: column.type for column in table.columns}
    return own | {f"{child.name}.{column.name}": column.type for child in table.children for column in child.columns}


def differing(before: Shape, now: Shape) -> dict[str, list[str]]:
    """Columns that came, that went, and that have another type."""
    found = {
        "added": [name for name in now if name not in before],
        "gone": [name for name in before if name not in now],
        "retyped": [name for name in now if name in before and before[name] != now[name]],
    }
    return {what: names for what, names in found.items() if names}


def history(engine: Engine, names: LogNames, tables: Sequence[str] = ()) -> list[ShapeVersion]:
    """Every version that is known of these tables, or of all, the oldest first."""
    with engine.connect() as connection:
        found = read_history(connection, log_columns(connection, names, names.columns))
    asked = {name.casefold() for name in tables}
    unknown = asked - {called for one in found for called in _called(one.table)}
    if unknown:
        raise EventlogError(
            f"No history of {min(unknown)} is known.",
            hint="The publisher begins it when it first sees a tracked table.",
        )
    return [one for one in found if not asked or asked & _called(one.table)]


def _called(table: str) -> set[str]:
    return {table.casefold(), table.rpartition(".")[2].casefold()}


def read_history(connection: Connection, names: LogNames) -> list[ShapeVersion]:
    """Every version that is known, by table and version."""
    kept = _kept(names)
    query = select(*kept.c).order_by(kept.c.table_name, kept.c.table_version)
    return [
        ShapeVersion(
            table=str(table),
            version=int(version),
            seen_at=str(seen_at),
            changed=msgspec.json.decode(changed, type=dict[str, list[str]]) if changed else {},
            columns=msgspec.json.decode(columns, type=dict[str, str]) if columns else {},
        )
        for table, version, seen_at, changed, columns in connection.execute(query)
    ]


def counted(connection: Connection, names: LogNames, tables: Sequence[Table]) -> list[Table]:
    """The tables with the versions that the history counts; all are the first one where there is none to be read."""
    try:
        known = latest(read_history(connection, names))
    except SQLAlchemyError:
        return list(tables)
    return [replace(table, version=version_of(table, known.get(table.whole))) for table in tables]


def version_of(table: Table, known: ShapeVersion | None) -> int:
    """The table's version; one that nobody has entered into the history yet is the next."""
    if known is None:
        return 1
    return known.version + (known.columns != shape_of(table))


def latest(versions: Iterable[ShapeVersion]) -> dict[str, ShapeVersion]:
    return {one.table: one for one in sorted(versions, key=lambda one: one.version)}


def add_version(connection: Connection, names: LogNames, version: ShapeVersion) -> None:
    """Enters another version in the caller's transaction."""
    row: dict[str, Any] = {
        "table_name": version.table,
        "table_version": version.version,
        "seen_at": version.seen_at,
        "changed": msgspec.json.encode(version.changed).decode(),
        "definition": msgspec.json.encode(version.columns).decode(),
    }
    connection.execute(_kept(names).insert(), row)


def _kept(names: LogNames) -> TableClause:
    columns = ("table_name", "table_version", "seen_at", "changed", "definition")
    return table(names.history, *map(column, columns), schema=names.schema)
