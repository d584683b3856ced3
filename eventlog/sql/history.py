"""What captured tables looked like, version by version: a companion table of the log."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, TableClause, column, select
from sqlalchemy import table as clause_of
from sqlalchemy.exc import SQLAlchemyError

from eventlog.core.errors import SourceError
from eventlog.core.rules.definitions import Definition
from eventlog.core.schema import Catalog, Table
from eventlog.sql.access import answers
from eventlog.sql.definitions import (
    Described,
    Shape,
    ShapeVersion,
    definitions_of,
    derived,
    describe,
    known_types,
)
from eventlog.sql.dialect import dialect_of, log_holes
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames


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
            details=msgspec.json.decode(described, type=Described) if described else Described(),
            # Only a database that follows DDL enters one without columns.
            noted=not columns,
        )
        versions.append(known)
    return _completed(versions)


NOTHING_KNOWN: Final = ShapeVersion(table="", version=0, seen_at="")
"""What comes before the first version of a class."""


def _in_time(version: ShapeVersion) -> tuple[int, int]:
    """Versions of all classes in the order in which they were entered."""
    return version.details.place, version.version


def _completed(versions: Sequence[ShapeVersion]) -> list[ShapeVersion]:
    """The versions, those that are only noted with the tables that they describe."""
    if not any(version.noted for version in versions):
        return [*versions]
    types = known_types(versions)
    newest: dict[str, ShapeVersion] = {}
    completed: dict[tuple[str, int], ShapeVersion] = {}
    # In time, across classes: a class that got another name goes on under that.
    for version in sorted(versions, key=_in_time):
        known = version
        before = newest.pop(version.follows, NOTHING_KNOWN)
        if version.noted and version.details.raw:
            described = derived(version.details, before.details, types)
            assert described.table is not None
            columns = shape_of(described.table)
            changed = differing(before.columns, columns)
            known = replace(version, details=described, columns=columns, changed=changed)
        newest[version.table] = known
        completed[version.table, version.version] = known
    return [completed[version.table, version.version] for version in versions]


def as_logged(table: Table, names: LogNames) -> Table:
    """A class that our triggers capture, with what it is called in the log, whose schema is known
    where the database has schemas.
    """
    return replace(table, bare=table.schema in (None, names.schema))


def definitions_in(connection: Connection, names: LogNames, catalog: Catalog) -> list[Definition]:
    """All definitions of captured tables that the history knows, and what they are today; names
    must carry the log's schema where the database has schemas.
    """
    described = []
    for version in sorted(read_history(connection, names), key=_in_time):
        details = version.details
        if details.table is not None:
            details = replace(details, table=as_logged(details.table, names))
            described.append(replace(version, details=details))
    return definitions_of(described, catalog)


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
    """The tables with the versions that the history counts; without one each is the first."""
    try:
        known = latest(read_history(connection, names))
    # Who may read the log and not its companions has no history: that is no reason to fail.
    except SQLAlchemyError:
        return list(tables)
    versions = []
    for table in tables:
        version, former = 1, known.get(table.whole)
        if former is not None:
            # What nobody has entered into the history yet is the next.
            version = former.version + (not former.fits(shape_of(table)))
        versions.append(replace(table, version=version))
    return versions


def latest(versions: Iterable[ShapeVersion]) -> dict[str, ShapeVersion]:
    in_order = sorted(versions, key=lambda version: version.version)
    return {version.table: version for version in in_order}


def _by_name_now(versions: Iterable[ShapeVersion]) -> dict[str, ShapeVersion]:
    """The newest version of each class by the name that it has now: former ones are free."""
    newest: dict[str, ShapeVersion] = {}
    for version in sorted(versions, key=_in_time):
        newest.pop(version.follows, None)
        newest[version.table] = version
    return newest


def enter_versions(
    connection: Connection,
    names: LogNames,
    tables: Sequence[Table],
    former_names: Mapping[str, str] = {},
    since: int | None = None,
    *,
    remade: bool = False,
) -> None:
    """Enters how these classes look into the history, where it does not say so yet, in the caller's
    transaction.

    That is of tables that are new here, look otherwise than before, or have got another name; if
    `remade`, also of those that a migration or a restore has made anew. A new version begins behind
    the newest row of the log; `since` is the newest that there was when the tables still looked as
    before, where triggers follow later.
    """
    versions, kept, now = read_history(connection, names), _kept(names), moment_text()
    known, last, entered = _by_name_now(versions), latest(versions), len(versions)
    for owner, table in {table.whole: table for table in tables}.items():
        former, shape = known.get(owner, NOTHING_KNOWN), shape_of(table)
        is_entered = owner in known and former.fits(shape) and owner not in former_names
        if is_entered and remade:
            is_entered = describe(connection, table).relation == former.details.relation
        if is_entered:
            if former.noted:
                # The database has noted it as it followed DDL; now somebody has seen the table.
                seen = _written(former.changed, shape, replace(former.details, table=table))
                which = (kept.c.table_name == owner) & (kept.c.table_version == former.version)
                connection.execute(kept.update().where(which).values(**seen))
            continue
        changed: dict[str, list[str]] = {}
        if owner in known:
            changed = differing(former.columns, shape)
        described = describe(connection, table, former_names.get(owner))
        # Only a column that came can have been written to before the triggers knew it.
        gap = since if changed.get("added") else None
        described = replace(described, place=entered, unlogged_from=gap)
        entered += 1
        row: dict[str, Any] = {
            "table_name": owner,
            "table_version": last.get(owner, NOTHING_KNOWN).version + 1,
            "seen_at": now,
            "first_record": newest_number(connection, names),
        }
        connection.execute(kept.insert(), row | _written(changed, shape, described))


def moment_text() -> str:
    """Now, as the history has it."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def newest_number(connection: Connection, names: LogNames) -> int | None:
    """The number of the newest row of the log; None where it has none."""
    [(number,)] = answers(connection, "newest_number", **log_holes(dialect_of(connection), names))
    if number is None:
        return None
    return int(number)


def _written(changed: Mapping[str, Sequence[str]], columns: Shape, described: Described) -> dict[str, str]:
    texts = {"changed": changed, "definition": columns, "described": described}
    return {column: msgspec.json.encode(value).decode() for column, value in texts.items()}


def _kept(names: LogNames) -> TableClause:
    columns = ("table_name", "table_version", "seen_at", "changed", "definition")
    further = ("first_record", "described")
    return clause_of(names.history, *map(column, (*columns, *further)), schema=names.schema)
