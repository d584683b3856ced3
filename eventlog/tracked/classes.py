"""What is tracked for a log: its classes as the registry and the catalog have them, and their triggers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from eventlog.core.errors import EventlogError, InstallError
from eventlog.core.schema import Table
from eventlog.core.table_names import read_name
from eventlog.sql.access import answers, is_denied
from eventlog.sql.dialect import dialect_of, log_holes
from eventlog.sql.history import as_logged
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import Classes
from eventlog.tracked.options import keep_captured_columns
from eventlog.tracked.registry import EnteredTrigger, TrackedClass, read_registry, read_relation


class Installed(Struct, frozen=True, kw_only=True):
    """A trigger of the registry as the catalog has it.

    `name` and `table` are what the catalog says, `entry` and `owner` what the registry says of the
    trigger, and of the class that it belongs to. `unchanged` says that its text is the one that was
    kept when it was made.
    """

    name: str
    schema: str | None
    table: str
    entry: EnteredTrigger
    owner: TrackedClass
    source: str
    fires: str
    unchanged: bool
    relation: int | None = None

    @property
    def enabled(self) -> bool:
        """Return True if it fires for all events it should."""
        if self.owner.options.always:
            return self.fires == "A"
        return self.fires in "OA"


class RegistryState(Struct, frozen=True, kw_only=True):
    """What the registry says is tracked, by the name of the class, and the triggers that stand."""

    classes: Mapping[str, TrackedClass]
    triggers: Sequence[Installed]

    def of(self, owner: str) -> list[Installed]:
        """Return the triggers of one class."""
        return [trigger for trigger in self.triggers if trigger.owner.whole == owner]

    def part(self, owners: Collection[str]) -> RegistryState:
        """Return the state of some classes."""
        classes = {owner: tracked for owner, tracked in self.classes.items() if owner in owners}
        return RegistryState(classes=classes, triggers=[own for own in self.triggers if own.owner.whole in classes])

    def table_today(self, owner: str) -> tuple[str | None, str] | None:
        """Return schema and name of the table with the class's triggers.

        They move along when it is renamed; child tables keep their names and have triggers of the
        class too.
        """
        children = {read_name(child)[1] for child in self.classes[owner].options.children}
        tables = {(trigger.schema, trigger.table) for trigger in self.of(owner) if trigger.table not in children}
        return tables.pop() if len(tables) == 1 else None


def read_capture(connection: Connection, names: LogNames) -> RegistryState:
    """Read the registry and its triggers; names need the log's schema if the database has schemas."""
    classes = read_registry(connection, names)
    if not classes:
        return RegistryState(classes={}, triggers=())
    entries = {
        (tracked.id, entry.name): (tracked, entry)
        for tracked in classes.values()
        for entry in tracked.triggers.values()
    }
    rows = answers(connection, "standing_triggers", **log_holes(dialect_of(connection), names))
    triggers = [
        Installed(
            name=row.trigger_name,
            schema=row.table_schema,
            table=row.table_name,
            entry=known[1],
            owner=known[0],
            source=str(row.source or ""),
            fires=row.fires,
            unchanged=bool(row.unchanged),
            relation=row.relation,
        )
        for row in rows
        if (known := entries.get((row.tracked, row.entered))) is not None
    ]
    return RegistryState(classes=classes, triggers=triggers)


def list_tracked(connection: Connection, names: LogNames) -> list[Table]:
    """Return the tracked classes with captured columns; shown by `eventlog catalog`."""
    return [table for table, _ in list_tracked_tables(connection, names)]


def list_tracked_tables(connection: Connection, names: LogNames) -> list[tuple[Table, TrackedClass]]:
    """Return the tracked classes still there, each with its registry entry."""
    capture = read_capture(connection, names)
    classes = Classes(connection)
    tables = []
    for owner in read_visible(connection, classes, capture.classes):
        tracked = capture.classes[owner]
        options = tracked.options
        try:
            table = find_present(classes, owner, options.children, options.key)
            table = as_logged(keep_captured_columns(table, options, tracked.watched), names)
            if tracked.fault is not None or not _is_confirmed(connection, tracked, capture.of(owner)):
                table = replace(table, unconfirmed=True)
        except EventlogError:  # the table is gone; its triggers are STRAY
            continue
        tables.append((table, tracked))
    return tables


def _is_confirmed(connection: Connection, tracked: TrackedClass, existing: Sequence[Installed]) -> bool:
    """Return True if the table with a class's name is the tracked one.

    It has its number; or, in a restored database, its triggers with the kept texts. A table dropped
    and created again has neither.
    """
    if tracked.relation is None:
        return True
    own = [trigger for trigger in existing if (trigger.schema, trigger.table) == (tracked.schema, tracked.table)]
    if own:
        return all(trigger.relation == tracked.relation or trigger.unchanged for trigger in own)
    return read_relation(connection, tracked.schema, tracked.table) == tracked.relation


def find_unseen(connection: Connection, names: LogNames) -> set[str]:
    """Find classes whose triggers the database hides from the connected user."""
    capture = read_capture(connection, names)
    return {
        owner
        for owner, tracked in capture.classes.items()
        if not capture.of(owner) and not sees_triggers(connection, tracked)
    }


def sees_triggers(connection: Connection, tracked: TrackedClass) -> bool:
    """Return True if missing triggers of a class are really missing: some databases hide others'."""
    asked = {"schema": tracked.schema, "table": tracked.table}
    return all(seen for (seen,) in answers(connection, "sees_triggers", asked))


def read_visible(connection: Connection, classes: Classes, owners: Iterable[str]) -> list[str]:
    """Read the columns of classes at once; return the classes visible to the connected user.

    Some databases hide a table from users who may not read it.
    """
    owners = list(owners)
    try:
        classes.read(owners)
        return owners
    except SQLAlchemyError as error:
        if not is_denied(dialect_of(connection), error):
            raise
    seen = []
    for owner in owners:
        with suppress(SQLAlchemyError):
            classes.read([owner])
            seen.append(owner)
    return seen


def find_present(classes: Classes, name: str, children: Sequence[str], key: Sequence[str] = ()) -> Table:
    """Return a class by name, with those of these children still there."""
    try:
        return classes.one(name, children, key)
    except InstallError:
        there = []
        for child in children:
            with suppress(InstallError):
                classes.one(name, [child], key)
                there.append(child)
        return classes.one(name, there, key)
