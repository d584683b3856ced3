"""What captured tables looked like, version by version: a companion table that whoever publishes
adds to.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, TableClause, column, select, table
from sqlalchemy.exc import SQLAlchemyError

from eventlog.core.errors import SourceError
from eventlog.core.rules.definitions import Definition
from eventlog.core.schema import Catalog, Table
from eventlog.sql.access import answers
from eventlog.sql.definitions import Described, Version, definitions_of, derived, describe, known_types
from eventlog.sql.dialect import dialect_of, log_holes
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames

Shape = Mapping[str, str]
"""The columns of a class and of its child tables, with their types."""


class ShapeVersion(Struct, frozen=True, kw_only=True):
    """One version of a table: since when it is known (UTC), what differs from the one before, and
    its columns.

    `first` is the number of a row of the log: those above were written under this version. One that
    the database entered itself, as it followed DDL, is only `noted` until somebody has seen the
    table.
    """

    table: str
    version: int
    seen_at: str
    changed: Mapping[str, Sequence[str]] = {}
    columns: Shape = {}
    first: int | None = None
    described: Described | None = None
    noted: bool = False

    def fits(self, shape: Shape) -> bool:
        """Whether a table that looks so has this version; the database itself may call types
        otherwise.
        """
        # The database notes columns in its own words for types, so only their names are compared.
        if self.noted:
            return [*self.columns] == [*shape]
        return self.columns == shape


def shape_of(table: Table) -> Shape:
    """The columns of a class and of its child tables."""
    own = {column.name: column.type for column in table.columns}
    of_children = {}
    for child in table.children:
        for column_of_child in child.columns:
            of_children[f"{child.name}.{column_of_child.name}"] = column_of_child.type
    return own | of_children


def differing(before: Shape, now: Shape) -> dict[str, list[str]]:
    """Columns that came, that went, and that have another type."""
    differences = {
        "added": [name for name in now if name not in before],
        "gone": [name for name in before if name not in now],
        "retyped": [name for name in now if name in before and before[name] != now[name]],
    }
    return {what: names for what, names in differences.items() if names}


def read_history(connection: Connection, names: LogNames) -> list[ShapeVersion]:
    """Every version that is known, by table and version."""
    kept = _kept(names)
    query = select(*kept.c).order_by(kept.c.table_name, kept.c.table_version)
    versions: list[ShapeVersion] = []
    for row in connection.execute(query):
        table_name, version, seen_at, changed, columns, first, described = row
        # As text, or as what the driver makes of a number: databases differ.
        known = ShapeVersion(
            table=str(table_name),
            version=int(version),
            seen_at=str(seen_at),
            changed=msgspec.json.decode(changed, type=dict[str, list[str]]) if changed else {},
            columns=msgspec.json.decode(columns, type=dict[str, str]) if columns else {},
            first=None if first is None else int(first),
            described=msgspec.json.decode(described, type=Described) if described else None,
            # Only a database that follows DDL enters one without columns.
            noted=not columns,
        )
        versions.append(known)
    return _completed(versions)


def _in_time(version: ShapeVersion) -> tuple[int, int]:
    """Versions of all classes in the order in which they were entered."""
    if version.described is None:  # from before places were counted
        return 0, version.version
    return version.described.place, version.version


def _completed(versions: Sequence[ShapeVersion]) -> list[ShapeVersion]:
    """The versions, those that are only noted with the tables that they describe."""
    if not any(version.noted for version in versions):
        return [*versions]
    types = known_types(version.described for version in versions)
    former: dict[int | str, ShapeVersion] = {}
    completed: dict[tuple[str, int], ShapeVersion] = {}
    # In time, across classes: a class that got another name goes on under that.
    for version in sorted(versions, key=_in_time):
        known, described = version, version.described
        chain: int | str = version.table
        if described is not None and described.raw:
            chain = described.raw[0].relation
        before = former.get(chain) or former.get(version.table)
        if version.noted and described is not None and described.raw:
            former_described: Described | None = None
            former_columns: Shape = {}
            if before is not None:
                former_described, former_columns = before.described, before.columns
            described = derived(described, former_described, types)
            assert described.table is not None
            columns = shape_of(described.table)
            changed = differing(former_columns, columns)
            known = replace(version, described=described, columns=columns, changed=changed)
        former[chain] = former[version.table] = known
        completed[version.table, version.version] = known
    return [completed[version.table, version.version] for version in versions]


def definitions_in(connection: Connection, names: LogNames, catalog: Catalog) -> list[Definition]:
    """All definitions of captured tables that the history knows, and what they are today."""
    versions = [
        Version(
            table=version.table,
            number=version.version,
            first=version.first,
            described=version.described,
        )
        for version in sorted(read_history(connection, names), key=_in_time)
        if version.described is not None and version.described.table is not None
    ]
    return definitions_of(versions, catalog)


def history_stamp(engine: Engine, names: LogNames) -> int | None:
    """What grows when a version is entered: asked before tables are looked at, and after rows were
    read. None where there is no history to be read.
    """
    log = Log(engine, names)
    try:
        with log.transaction(lone=True) as connection:
            [(count,)] = log.rows(connection, log.query("history_stamp"))
    except SourceError:
        return None
    return int(count)


def counted(connection: Connection, names: LogNames, tables: Sequence[Table]) -> list[Table]:
    """The tables with the versions that the history counts; all are the first one where there is
    none to be read.
    """
    try:
        known = latest(read_history(connection, names))
    # Who may read the log and not its companions has no history: that is no reason to fail.
    except SQLAlchemyError:
        return list(tables)
    return [replace(table, version=version_of(table, known.get(table.whole))) for table in tables]


def version_of(table: Table, known: ShapeVersion | None) -> int:
    """The table's version; one that nobody has entered into the history yet is the next."""
    if known is None:
        return 1
    return known.version + (not known.fits(shape_of(table)))


def latest(versions: Iterable[ShapeVersion]) -> dict[str, ShapeVersion]:
    in_order = sorted(versions, key=lambda version: version.version)
    return {version.table: version for version in in_order}


def newer(
    shapes: Mapping[str, Shape],
    known: Mapping[str, ShapeVersion],
    now: str,
    renamed: Collection[str] = (),
) -> Iterator[tuple[ShapeVersion, ShapeVersion | None]]:
    """The versions that are to be entered, each with the one before: of tables that are new here,
    and of those that look otherwise than before, or that have got another name. One that the
    database noted itself is entered again, as it was seen.
    """
    for owner, shape in shapes.items():
        former = known.get(owner)
        if former is None:
            yield ShapeVersion(table=owner, version=1, seen_at=now, columns=shape), None
        elif former.noted and former.fits(shape) and owner not in renamed:
            yield replace(former, columns=shape, noted=False), former
        elif owner in renamed or not former.fits(shape):
            version = ShapeVersion(
                table=owner,
                version=former.version + 1,
                seen_at=now,
                changed=differing(former.columns, shape),
                columns=shape,
            )
            yield version, former


def enter_versions(
    connection: Connection,
    names: LogNames,
    tables: Sequence[Table],
    former_names: Mapping[str, str] | None = None,
    since: int | None = None,
) -> None:
    """Enters how these classes look into the history, where it does not say so yet, in the caller's
    transaction. A new version begins behind the newest row of the log; `since` is the newest that
    there was when the tables still looked as before, where triggers follow later.
    """
    versions = read_history(connection, names)
    known = latest(versions)
    by_name = {table.whole: table for table in tables}
    shapes = {owner: shape_of(table) for owner, table in by_name.items()}
    entered = 0
    for version, former in newer(shapes, known, moment_text(), former_names or ()):
        if former is None or version.version != former.version:
            former_name = (former_names or {}).get(version.table)
            described = describe(connection, by_name[version.table], former_name)
            # Only a column that came can have been written to before the triggers knew it.
            gap = None
            if version.changed.get("added"):
                gap = since
            described = replace(described, place=len(versions) + entered, unlogged_from=gap)
            entered += 1
            first = newest_number(connection, names)
            add_version(connection, names, replace(version, first=first, described=described))
        else:
            # The database has noted it as it followed DDL; now somebody has seen the table.
            described = replace(former.described or Described(), table=by_name[version.table])
            settled = replace(version, described=described)
            kept = _kept(names)
            which = (kept.c.table_name == version.table) & (kept.c.table_version == version.version)
            connection.execute(kept.update().where(which).values(**_written(settled)))


def moment_text() -> str:
    """Now, as the history has it."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def newest_number(connection: Connection, names: LogNames) -> int | None:
    """The number of the newest row of the log; None where it has none."""
    [(number,)] = answers(connection, "newest_number", **log_holes(dialect_of(connection), names))
    if number is None:
        return None
    return int(number)


def add_version(connection: Connection, names: LogNames, version: ShapeVersion) -> None:
    """Enters another version in the caller's transaction."""
    row: dict[str, Any] = {
        "table_name": version.table,
        "table_version": version.version,
        "seen_at": version.seen_at,
        **_written(version),
        "first_record": version.first,
    }
    connection.execute(_kept(names).insert(), row)


def _written(version: ShapeVersion) -> dict[str, Any]:
    described = None
    if version.described is not None:
        described = msgspec.json.encode(version.described).decode()
    return {
        "changed": msgspec.json.encode(version.changed).decode(),
        "definition": msgspec.json.encode(version.columns).decode(),
        "described": described,
    }


def _kept(names: LogNames) -> TableClause:
    columns = ("table_name", "table_version", "seen_at", "changed", "definition")
    further = ("first_record", "described")
    return table(names.history, *map(column, (*columns, *further)), schema=names.schema)
