"""What triggers stand in a database, and how they compare with what would be made today."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from eventlog.capture.follower import FOLLOWED, name_follower, read_follower
from eventlog.capture.plan import Style, TriggerOptions, keep_captured_columns, plan
from eventlog.capture.registry import TrackedClass, read_registry, read_relation, registry_place
from eventlog.capture.render import Trigger, render
from eventlog.capture.requests import words
from eventlog.capture.table_needs import TableNeeds
from eventlog.core.errors import EventlogError, InstallError
from eventlog.core.schema import Table
from eventlog.core.table_names import read_name, write_name
from eventlog.sql.access import answers, is_denied
from eventlog.sql.definitions import ShapeVersion
from eventlog.sql.dialect import Dialect, dialect_of, log_holes
from eventlog.sql.findlog import log_columns
from eventlog.sql.history import as_logged, read_history
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import Classes


class TriggerCondition(StrEnum):
    """How a trigger stands to what would be made today."""

    CURRENT = "CURRENT"
    OUTDATED = "OUTDATED"
    MISSING = "MISSING"
    STRAY = "STRAY"
    DISABLED = "DISABLED"


class Installed(Struct, frozen=True, kw_only=True):
    """A trigger of the registry as the catalog has it.

    `name` and `table` are what the catalog says, `entered` and `owner` what the registry says: the
    trigger's name, and the class that it belongs to. `unchanged` says that its text is the one that
    was kept when it was made.
    """

    name: str
    schema: str | None
    table: str
    entered: str
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


class TriggerState(Struct, frozen=True, kw_only=True):
    """One line of `eventlog triggers`: the trigger, the table it stands on, the class it belongs
    to, and how it is.

    `fails` says that it names a column which is gone: whoever writes to the table meets an error.
    `asked` is what the class was tracked with, in the words of `eventlog track`. `entered` says
    that the registry names it.
    """

    name: str
    table: str
    owner: str
    state: TriggerCondition
    schema: str | None = None
    style: Style | None = None
    note: str | None = None
    fails: bool = False
    asked: str | None = None
    entered: bool = True


def read_capture(connection: Connection, names: LogNames) -> RegistryState:
    """Read the registry and its triggers; names need the log's schema if the database has schemas."""
    dialect = dialect_of(connection)
    classes = read_registry(connection, names)
    if not classes:
        return RegistryState(classes={}, triggers=())
    by_number = {tracked.id: tracked for tracked in classes.values()}
    triggers = []
    place = {"place": registry_place(dialect, names)}
    for row in answers(connection, "standing_triggers", place, **log_holes(dialect, names)):
        tracked = by_number.get(row.tracked)
        if tracked is None:
            continue
        trigger = Installed(
            name=row.trigger_name,
            schema=row.table_schema,
            table=row.table_name,
            entered=row.entered,
            owner=tracked,
            source=str(row.source or ""),
            fires=row.fires,
            unchanged=bool(row.unchanged),
            relation=row.relation,
        )
        triggers.append(trigger)
    return RegistryState(classes=classes, triggers=triggers)


def similar_triggers(connection: Connection, names: LogNames) -> list[TriggerState]:
    """Find triggers similar to ours but missing from the registry: a hundred at most."""
    dialect = dialect_of(connection)
    asked = {
        "prefix": f"{names.table}_",
        "writes": f"INSERT INTO {dialect.qualify(names.schema, names.table)} (",
        "place": registry_place(dialect, names),
    }
    return [
        TriggerState(
            name=row.trigger_name,
            table=row.table_name,
            schema=row.table_schema,
            owner=write_name(row.table_schema, row.table_name),
            state=TriggerCondition.STRAY,
            note="the registry does not name it",
            entered=False,
        )
        for row in answers(connection, "similar_triggers", asked, **log_holes(dialect, names))
    ]


def compare(
    wanted: Sequence[Trigger],
    standing: Sequence[Installed],
    owner: str,
    options: TriggerOptions,
) -> list[TriggerState]:
    """Compare a class's planned triggers with those there."""
    there = {(trigger.table, trigger.entered): trigger for trigger in standing}
    states = []
    for trigger in wanted:
        its_own = there.pop((trigger.table, trigger.name), None)
        states.append(_state(trigger, its_own, owner, options))
    # Those that nobody wants are left.
    return states + [_describe_trigger(trigger, TriggerCondition.STRAY) for trigger in there.values()]


def states(connection: Connection, names: LogNames) -> list[TriggerState]:
    """Compare every trigger of the log, each class planned again from its table of now."""
    capture = read_capture(connection, names)
    # All triggers of a class may be gone, and the registry still says that it is tracked.
    owners = [owner for owner in capture.classes if capture.of(owner) or _sees(connection, capture.classes[owner])]
    classes, needs, dialect = Classes(connection), TableNeeds(connection, names), dialect_of(connection)
    owners = _readable(connection, classes, owners)
    found: list[TriggerState] = []
    for owner in owners:
        found += _class_states(classes, needs, dialect, names, capture.classes[owner], capture.of(owner))
    following = [owner for owner in owners if capture.classes[owner].options.follow_ddl]
    if following:
        # A log has one event trigger. It is listed as one of the first class's, which makes it
        # stand when it is tracked anew.
        found.append(_ddl_state(connection, names, following[0]))
    return [*found, *similar_triggers(connection, names)]


def _ddl_state(connection: Connection, names: LogNames, owner: str) -> TriggerState:
    ddl_trigger = read_follower(connection, names)
    note = None
    if ddl_trigger is None or not ddl_trigger.enabled:
        state = TriggerCondition.MISSING if ddl_trigger is None else TriggerCondition.DISABLED
        note = "nothing follows ALTER TABLE in its transaction"
    else:
        state = TriggerCondition.CURRENT if ddl_trigger.current else TriggerCondition.OUTDATED
    name = name_follower(dialect_of(connection), names)
    return TriggerState(name=name, table="ALTER TABLE", owner=owner, state=state, note=note)


def _sees(connection: Connection, tracked: TrackedClass) -> bool:
    """Return True if missing triggers of a class are really missing: some databases hide others'."""
    asked = {"schema": tracked.schema, "table": tracked.table}
    return all(seen for (seen,) in answers(connection, "sees_triggers", asked))


def find_unseen(connection: Connection, names: LogNames) -> set[str]:
    """Find classes whose triggers the database hides from the connected user."""
    capture = read_capture(connection, names)
    return {
        owner for owner, tracked in capture.classes.items() if not capture.of(owner) and not _sees(connection, tracked)
    }


def list_tracked(connection: Connection, names: LogNames) -> list[Table]:
    """Return the tracked classes with captured columns; shown by `eventlog catalog`."""
    return [table for table, _ in list_tracked_tables(connection, names)]


def list_tracked_tables(connection: Connection, names: LogNames) -> list[tuple[Table, TrackedClass]]:
    """Return the tracked classes still there, each with its registry entry."""
    capture = read_capture(connection, names)
    classes = Classes(connection)
    tables = []
    for owner in _readable(connection, classes, capture.classes):
        tracked = capture.classes[owner]
        options = tracked.options
        try:
            table = _present(classes, owner, options.children, options.key)
            table = as_logged(keep_captured_columns(table, options, tracked.watched), names)
            if tracked.fault is not None or not _is_confirmed(connection, tracked, capture.of(owner)):
                table = replace(table, unconfirmed=True)
        except EventlogError:  # the table is gone; its triggers are STRAY
            continue
        tables.append((table, tracked))
    return tables


def _is_confirmed(connection: Connection, tracked: TrackedClass, standing: Sequence[Installed]) -> bool:
    """Return True if the table with a class's name is the tracked one.

    It has its number; or, in a restored database, its triggers with the kept texts. A table dropped
    and created again has neither.
    """
    if tracked.relation is None:
        return True
    own = [trigger for trigger in standing if (trigger.schema, trigger.table) == (tracked.schema, tracked.table)]
    if own:
        return all(trigger.relation == tracked.relation or trigger.unchanged for trigger in own)
    return read_relation(connection, tracked.schema, tracked.table) == tracked.relation


def _readable(connection: Connection, classes: Classes, owners: Iterable[str]) -> list[str]:
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


def _present(classes: Classes, name: str, children: Sequence[str], key: Sequence[str] = ()) -> Table:
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


def _class_states(
    classes: Classes,
    needs: TableNeeds,
    dialect: Dialect,
    names: LogNames,
    tracked: TrackedClass,
    standing: Sequence[Installed],
) -> Iterable[TriggerState]:
    owner, options = tracked.whole, tracked.options
    if tracked.fault is not None:
        state = TriggerCondition.OUTDATED
        if not standing:
            return [TriggerState(name=owner, table=tracked.table, owner=owner, state=state, note=tracked.fault)]
        return [_describe_trigger(trigger, state, tracked.fault) for trigger in standing]
    try:
        table = _present(classes, owner, options.children)
    except EventlogError as error:
        return [_describe_trigger(trigger, TriggerCondition.STRAY, str(error)) for trigger in standing]
    try:
        table = classes.one(owner, options.children, options.key)
        wanted = render(needs.number_images(plan(table, needs.fit_options(table, options))), dialect, names)
    except EventlogError as error:
        problem = str(error)
        states = [_describe_trigger(trigger, TriggerCondition.OUTDATED, problem) for trigger in standing]
    else:
        states = compare(wanted, standing, owner, options)
    # After a renaming the triggers stand under the former name: they are no strays, and those that
    # would be made now are not missing.
    if any(trigger.owner.triggers[trigger.entered].digest == FOLLOWED for trigger in standing):
        states = [_note_rename(state) for state in states if state.state is not TriggerCondition.STRAY]
    texts = {trigger.name: trigger.source for trigger in standing if trigger.enabled}
    return [with_failure(state, texts.get(state.name, ""), table, dialect) for state in states]


def _note_rename(state: TriggerState) -> TriggerState:
    if state.state is not TriggerCondition.MISSING:
        return state
    return replace(state, state=TriggerCondition.OUTDATED, note="it has the old name of its table")


def with_failure(state: TriggerState, text: str, table: Table, dialect: Dialect) -> TriggerState:
    """Add to the state the columns read by the trigger's text but gone from the table."""
    if state.state is not TriggerCondition.OUTDATED:
        return state
    columns = {child.name: child.columns for child in table.children} | {table.name: table.columns}
    if state.table not in columns:
        return state
    gone = find_gone_columns(text, [column.name for column in columns[state.table]], dialect)
    if not gone:
        return state
    note = f"every write fails, for the column {', '.join(gone)} is gone"
    if state.note is not None:
        note = f"{note}. {state.note}"
    return replace(state, fails=True, note=note)


def find_gone_columns(text: str, columns: Iterable[str], dialect: Dialect) -> list[str]:
    """Find the columns of its own row a trigger's text reads, other than these."""
    exact = set(columns)
    known = {name.casefold() for name in exact}
    rows = "|".join((*dialect.row_names, "o", "n"))
    name = r'"(?:[^"]|"")+"|`(?:[^`]|``)+`|[^\W\d][\w$#]*'
    # Behind nothing that could make another table's alias of it.
    read = re.findall(rf"""(?<![\w"`.])(?:{rows})\.({name})""", text)
    gone = []
    for written in dict.fromkeys(read):
        quote = written[0]
        if quote in '"`':
            name = written[1:-1].replace(quote * 2, quote)
            is_there = name in exact
        else:
            name = written
            is_there = name.casefold() in known  # nobody quoted it, so its case does not matter
        if not is_there and name not in gone:
            gone.append(name)
    return gone


def _state(
    trigger: Trigger,
    standing: Installed | None,
    owner: str,
    options: TriggerOptions,
) -> TriggerState:
    if standing is None:
        return TriggerState(
            name=trigger.name,
            table=trigger.table,
            schema=trigger.schema,
            owner=owner,
            state=TriggerCondition.MISSING,
            style=options.style,
            asked=words(options),
        )
    if not standing.enabled:
        return _describe_trigger(standing, TriggerCondition.DISABLED)
    if is_current(trigger, standing):
        return _describe_trigger(standing, TriggerCondition.CURRENT)
    note = None if standing.unchanged else "somebody has changed it"
    if standing.owner.triggers[standing.entered].digest == FOLLOWED:
        note = "its table was altered, and the follower logs it in its style since"
        if standing.owner.options.children:
            note = "its table was altered, and it logs rows to be read back since"
    return _describe_trigger(standing, TriggerCondition.OUTDATED, note)


def is_current(trigger: Trigger, standing: Installed) -> bool:
    """Return True if a trigger was planned as it would be now and is unchanged."""
    entered = standing.owner.triggers[standing.entered]
    return standing.enabled and standing.unchanged and entered.digest == trigger.hash


def _describe_trigger(
    trigger: Installed,
    state: TriggerCondition,
    note: str | None = None,
) -> TriggerState:
    return TriggerState(
        name=trigger.name,
        table=trigger.table,
        schema=trigger.schema,
        owner=trigger.owner.whole,
        state=state,
        style=trigger.owner.options.style,
        note=note,
        asked=words(trigger.owner.options),
    )


def history(engine: Engine, names: LogNames, tables: Sequence[str] = ()) -> list[ShapeVersion]:
    """Read every known version of these tables, or of all, the oldest first."""
    with engine.connect() as connection:
        versions = read_history(connection, log_columns(connection, names, names.columns))
    asked = {name.casefold() for name in tables}
    unknown = asked - {name for version in versions for name in _list_spellings(version.table)}
    if unknown:
        raise EventlogError(
            f"No history of {min(unknown)} is known.",
            hint="The publisher begins it when it first sees a tracked table.",
        )
    return [version for version in versions if not asked or asked & _list_spellings(version.table)]


def _list_spellings(table: str) -> set[str]:
    """List the names people may use for a table: with its schema, or without."""
    return {table.casefold(), read_name(table)[1].casefold()}
