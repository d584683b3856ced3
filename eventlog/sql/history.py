"""What captured tables looked like, version by version: a companion table of the log."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, TableClause, column, func, literal_column, null, select
from sqlalchemy import table as clause_of

from eventlog.core.errors import SourceError
from eventlog.core.rules.definitions import Definition
from eventlog.core.schema import Catalog, Table
from eventlog.sql.access import answers
from eventlog.sql.definitions import (
    Described,
    Shape,
    ShapeVersion,
    chains_of,
    definitions_of,
    derive_table,
    describe,
    find_known_number,
    find_known_types,
    limit_seen,
)
from eventlog.sql.dialect import dialect_of, log_holes, long_literal, statement
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames

Images = Mapping[str, tuple[int, tuple[str, ...]]]
"""The number that images of a class begin with, and their columns."""


def shape_of(table: Table) -> Shape:
    """List the columns of a class and of its child tables."""
    own = {column.name: column.type for column in table.columns}
    of_children = {}
    for child in table.children:
        for column_of_child in child.columns:
            of_children[f"{child.name}.{column_of_child.name}"] = column_of_child.type
    return own | of_children


def differing(before: Shape, now: Shape) -> dict[str, list[str]]:
    """List added, removed and retyped columns."""
    differences = {
        "added": [name for name in now if name not in before],
        "gone": [name for name in before if name not in now],
        "retyped": [name for name in now if name in before and before[name] != now[name]],
    }
    return {what: names for what, names in differences.items() if names}


def read_owned(connection: Connection, names: LogNames) -> list[ShapeVersion]:
    """Read the versions entered by the log's owner, in time: decisions go by these alone."""
    return _complete(_read(connection, names, by_owner=True))


def read_history(connection: Connection, names: LogNames) -> list[ShapeVersion]:
    """Read every version, by table and in time.

    Those a publisher saw in between count only for columns and types.
    """
    versions = [*_read(connection, names, by_owner=True), *_read(connection, names, by_owner=False)]
    return sorted(_complete(versions), key=lambda version: (version.table, version.version))


def _read(connection: Connection, names: LogNames, *, by_owner: bool) -> Iterator[ShapeVersion]:
    kept = _define_history(names.history if by_owner else names.seen, names)
    query = select(*kept.c).order_by(kept.c.table_name, kept.c.table_version)
    if not by_owner:
        # A publisher may write what it wants there; nobody reads more than a table needs.
        query = query.where(func.coalesce(func.length(kept.c.described), 0) <= SEEN_CHARACTERS)
        query = query.where(func.coalesce(func.length(kept.c.definition), 0) <= SEEN_CHARACTERS)
    for row in connection.execute(query):
        version = _decode(row, by_owner=by_owner)
        if version is not None:
            yield version


SEEN_CHARACTERS: Final = 1_000_000
"""How long a description of a table may be that a publisher wrote."""


def _decode(row: Any, *, by_owner: bool) -> ShapeVersion | None:
    table_name, version, seen_at, changed, columns, first, described = row
    try:
        # As text, or as what the driver makes of a number: databases differ.
        return ShapeVersion(
            table=str(table_name),
            number=int(version),
            seen_at=str(seen_at),
            changed=msgspec.json.decode(changed, type=dict[str, list[str]]) if changed else {},
            columns=msgspec.json.decode(columns, type=dict[str, str]) if columns else {},
            first=None if first is None else int(first),
            details=msgspec.json.decode(described, type=Described) if described else Described(),
            # Only a database that follows DDL enters one without columns.
            noted=by_owner and not columns,
            by_owner=by_owner,
        )
    except (msgspec.DecodeError, RecursionError):
        if by_owner:
            raise
        return None


NOTHING_KNOWN: Final = ShapeVersion(table="", number=0, seen_at="")
"""What comes before the first version of a class."""


def _in_time(version: ShapeVersion) -> tuple[int, bool, int]:
    """Return the sort key of versions in order of entry.

    A publisher's own come after as many of the owner's as they state, and before the next.
    """
    return version.details.place, version.by_owner, version.number


def _complete(versions: Iterable[ShapeVersion]) -> list[ShapeVersion]:
    """Order and number versions, and complete those only noted with their tables.

    Those seen by a publisher are reduced to columns and types.
    """
    in_time = sorted(versions, key=_in_time)
    types = find_known_types(in_time)
    owned: dict[str, ShapeVersion] = {}
    counts: Counter[str] = Counter()
    completed: list[ShapeVersion] = []
    # Across classes: a class that got another name goes on under that.
    for version in in_time:
        counts[version.table] += 1
        known = replace(version, version=counts[version.table])
        if not version.by_owner:
            before = owned.get(version.table, NOTHING_KNOWN)
            completed.append(replace(known, details=limit_seen(version.details, before.details)))
            continue
        before = owned.pop(version.follows, NOTHING_KNOWN)
        if version.noted and version.details.raw:
            described = derive_table(version.details, before.details, types)
            assert described.table is not None
            columns = shape_of(described.table)
            changed = differing(before.columns, columns)
            known = replace(known, details=described, columns=columns, changed=changed)
        owned[version.table] = known
        completed.append(known)
    return completed


def as_logged(table: Table, names: LogNames) -> Table:
    """Describe a captured class by its name in the log.

    `names` need the log's schema if the database has schemas.
    """
    return replace(table, bare=table.schema in (None, names.schema))


def definitions_in(connection: Connection, names: LogNames, catalog: Catalog) -> list[Definition]:
    """Read all definitions of captured tables from the history, with their forms of today; names must
    carry the log's schema where the database has schemas.
    """
    described = []
    for version in sorted(read_history(connection, names), key=_in_time):
        details = version.details
        if details.table is not None:
            details = replace(details, table=as_logged(details.table, names))
            described.append(replace(version, details=details))
    return definitions_of(described, catalog)


def history_stamp(engine: Engine, names: LogNames) -> int | None:
    """Read a number that grows with each version; None without a readable history.

    Read before looking at tables, and after reading rows.
    """
    log = Log(engine, names)
    try:
        with log.transaction(lone=True) as connection:
            [(count,)] = log.rows(connection, log.query("history_stamp"))
    except SourceError:
        return None
    return int(count)


def number_tables(connection: Connection, names: LogNames, tables: Sequence[Table]) -> list[Table]:
    """Give the tables their versions in the history; without one each is the first."""
    known = latest(read_history(connection, names))
    versions = []
    for table in tables:
        version, former = 1, known.get(table.whole)
        if former is not None:
            # What nobody has entered into the history yet is the next.
            version = former.version + (not former.fits(shape_of(table)))
        versions.append(replace(table, version=version))
    return versions


def image_number(connection: Connection, owned: Sequence[ShapeVersion], table: Table, image: tuple[str, ...]) -> int:
    """Find the number of a class's images: one in the owner's versions, or the next."""
    _, by_name = chains_of(owned)
    now = ShapeVersion(table=table.whole, number=0, seen_at="", details=describe(connection, table))
    number = find_known_number(by_name.get(table.whole, []), now, image)
    return number or _newest_number(owned, table.whole) + 1


def _newest_number(versions: Iterable[ShapeVersion], table: str) -> int:
    return max((version.number for version in versions if version.table == table), default=0)


def latest(versions: Iterable[ShapeVersion]) -> dict[str, ShapeVersion]:
    """Find the newest version of each class, of versions in time."""
    return {version.table: version for version in versions}


def _by_name_now(versions: Iterable[ShapeVersion]) -> dict[str, ShapeVersion]:
    """Find the newest version of each class by present name: former names are free."""
    newest: dict[str, ShapeVersion] = {}
    for version in sorted(versions, key=_in_time):
        newest.pop(version.follows, None)
        newest[version.table] = version
    return newest


def write_versions(
    connection: Connection,
    names: LogNames,
    tables: Sequence[Table],
    former_names: Mapping[str, str],
    images: Images,
    since: int | None = None,
    *,
    is_script: bool = False,
) -> Iterator[str]:
    """Write the statements that enter how these classes look as the log's owner, where the history
    does not say so yet.

    That is of tables that are new here, look otherwise than before, have got another name, that a
    migration or a restore has made anew, or whose `images` have a number that the history has not:
    by the class, with their columns. `since` is the newest row of the log when the tables still
    looked as before, where triggers follow later. A script looks for the newest row when it runs.
    """
    dialect, kept, owned = dialect_of(connection), _define_history(names.history, names), read_owned(connection, names)
    known, first, place = _by_name_now(owned), newest_number(connection, names), len(owned)

    def constants(row: Mapping[str, Any]) -> dict[str, Any]:
        texts = {name: long_literal(dialect, value) for name, value in row.items() if isinstance(value, str)}
        return {
            name: null() if value is None else literal_column(texts.get(name, str(value)))
            for name, value in row.items()
        }

    for owner, table in {table.whole: table for table in tables}.items():
        former, newest, (number, image) = known.get(owner), _newest_number(owned, owner), images.get(owner, (0, ()))
        described = describe(connection, table, former_names.get(owner))
        fits = former is not None and former.fits(shape_of(table)) and owner not in former_names
        if former is None or not fits or described.relation != former.details.relation or number > newest:
            described = replace(described, place=place, image=image if number == newest + 1 else None)
            place += 1
            row = constants(_new_version(newest + 1, former, described, first, since))
            if is_script:
                sought = statement(dialect, "newest_number", **log_holes(dialect, names))
                row["first_record"] = literal_column(f"({sought})")
            yield dialect.write(kept.insert().values(row))
        elif former.noted:
            # The database has noted it as it followed DDL; now somebody has seen the table.
            seen = constants(_write_texts(former.changed, shape_of(table), replace(former.details, table=table)))
            which = constants({"table_name": owner, "table_version": former.number})
            changed = kept.update().where(*(kept.c[name] == value for name, value in which.items()))
            yield dialect.write(changed.values(seen))


def note_versions(connection: Connection, names: LogNames, tables: Sequence[Table]) -> None:
    """Note how these classes look to a publisher, if that is news.

    A publisher may not write the owner's entries, nor in their place.
    """
    versions = read_history(connection, names)
    known = _by_name_now(versions)
    changed = [table for table in tables if not known.get(table.whole, NOTHING_KNOWN).fits(shape_of(table))]
    kept, place = _define_history(names.seen, names), sum(version.by_owner for version in versions)
    for table in {table.whole: table for table in changed}.values():
        numbers = select(kept.c.table_version).where(kept.c.table_name == table.whole)
        taken = {int(number) for number in connection.execute(numbers).scalars()}
        number = next(number for number in count(1) if number not in taken)
        described = replace(describe(connection, table), place=place)
        first = newest_number(connection, names)
        connection.execute(kept.insert(), _new_version(number, known.get(table.whole), described, first))


def _new_version(
    number: int, before: ShapeVersion | None, described: Described, first: int | None, since: int | None = None
) -> dict[str, Any]:
    """Make a version beginning behind the row `first` of the log."""
    table = described.table
    assert table is not None
    shape = shape_of(table)
    changed = {} if before is None else differing(before.columns, shape)
    if changed.get("added"):
        # Only a column that came can have been written to before the triggers knew it.
        described = replace(described, unlogged_from=since)
    row = {"table_name": table.whole, "table_version": number, "seen_at": moment_text(), "first_record": first}
    return row | _write_texts(changed, shape, described)


def enter_image(
    connection: Connection, names: LogNames, table: Table, image: tuple[str, ...], first: int, *, case_sensitive: bool
) -> int:
    """Enter a streamed table as the owner of its log; return the number of its images: a known one
    or the next.
    """
    versions = read_history(connection, names)
    own = [version for version in versions if version.table == table.whole]
    for version in reversed(own):
        if version.details.table != table:
            break
        if version.details.image == image:
            return version.version
    newest = own[-1] if own else None
    number = 1 if newest is None else newest.version + 1
    details = Described(table=table, image=image, place=len(versions), case_sensitive=case_sensitive)
    row = _new_version(number, newest, details, first - 1)
    connection.execute(_define_history(names.history, names).insert(), row)
    return number


def moment_text() -> str:
    """Write the present time for the history."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def newest_number(connection: Connection, names: LogNames) -> int | None:
    """Read the number of the newest row of the log; None where it has none."""
    [(number,)] = answers(connection, "newest_number", **log_holes(dialect_of(connection), names))
    if number is None:
        return None
    return int(number)


def _write_texts(changed: Mapping[str, Sequence[str]], columns: Shape, described: Described) -> dict[str, str]:
    texts = {"changed": changed, "definition": columns, "described": described}
    return {column: msgspec.json.encode(value).decode() for column, value in texts.items()}


def _define_history(table: str, names: LogNames) -> TableClause:
    columns = ("table_name", "table_version", "seen_at", "changed", "definition")
    further = ("first_record", "described")
    return clause_of(table, *map(column, (*columns, *further)), schema=names.schema)
