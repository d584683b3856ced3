"""What triggers stand in a database, and how they compare with what would be made today."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine

from eventlog.capture.asked import AskedClass, Marker, asked_classes, asked_of, read_marker, same, words
from eventlog.capture.ddl import ddl_trigger_name, standing_ddl
from eventlog.capture.plan import Style, TriggerOptions, captured, plan
from eventlog.capture.render import Trigger, render
from eventlog.capture.table_needs import TableNeeds
from eventlog.capture.words import as_in_catalog
from eventlog.core.errors import EventlogError, InstallError
from eventlog.core.schema import Table
from eventlog.sql.access import answers, verbatim
from eventlog.sql.definitions import ShapeVersion
from eventlog.sql.dialect import Dialect, dialect_of, statement
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
    """A trigger of ours as the catalog has it."""

    name: str
    schema: str | None
    table: str
    marker: Marker
    source: str
    enabled: bool


class TriggerState(Struct, frozen=True, kw_only=True):
    """One line of `eventlog triggers`: the trigger, the table it stands on, the class it belongs
    to, and how it is.

    `fails` says that it names a column which is gone: whoever writes to the table meets an error.
    `asked` is what the class was tracked with, in the words of `eventlog track`.
    """

    name: str
    table: str
    owner: str
    state: TriggerCondition
    style: Style | None = None
    note: str | None = None
    fails: bool = False
    asked: str | None = None


def installed(connection: Connection, names: LogNames) -> list[Installed]:
    """Our triggers that write to this log; names must carry the log's schema where the database has
    schemas.
    """
    dialect = dialect_of(connection)
    triggers = []
    for row in answers(connection, "our_triggers"):
        marker = read_marker(row.marker)
        if marker is None or marker.log != names.whole:
            continue
        trigger = Installed(
            name=row.trigger_name,
            schema=row.table_schema,
            table=row.table_name,
            marker=marker,
            source=as_in_catalog(dialect, _exact(connection, dialect, row)),
            enabled=bool(row.enabled),
        )
        triggers.append(trigger)
    return triggers


def by_owner(triggers: Iterable[Installed]) -> dict[str, list[Installed]]:
    """Triggers by the class that they belong to."""
    owners: dict[str, list[Installed]] = {}
    for trigger in triggers:
        owners.setdefault(trigger.marker.table, []).append(trigger)
    return owners


def _exact(connection: Connection, dialect: Dialect, row: Any) -> str:
    # The catalog may give quoted names in another spelling; then the text would look OUTDATED, so
    # it is asked for itself.
    if not dialect.tells_roughly or "`" not in row.source:
        return str(row.source)
    name = dialect.qualified(row.table_schema, row.trigger_name)
    query = statement(dialect, "trigger_text", trigger=name)
    definition = str(connection.execute(verbatim(query)).one()[2])
    return definition.partition("FOR EACH ROW ")[2]


def compare(
    wanted: Sequence[Trigger],
    standing: Sequence[Installed],
    owner: str,
    options: TriggerOptions | None = None,
) -> list[TriggerState]:
    """The state of every trigger that is wanted or there, for one class that was tracked with these
    options.
    """
    there = {(trigger.table, trigger.name): trigger for trigger in standing}
    states = []
    for trigger in wanted:
        its_own = there.pop((trigger.table, trigger.name), None)
        states.append(_state(trigger, its_own, owner, options))
    # Those that nobody wants are left.
    return states + [_described(trigger, TriggerCondition.STRAY) for trigger in there.values()]


def states(connection: Connection, names: LogNames) -> list[TriggerState]:
    """The state of every trigger of the log, each class planned again from its table of now."""
    asked = asked_of(connection, names)
    by_class = by_owner(installed(connection, names))
    # All triggers of a class may be gone, and the mark still says that it is tracked.
    by_class |= {owner: [] for owner in asked if owner not in by_class and _sees(connection, owner)}
    classes, needs, dialect = Classes(connection), TableNeeds(connection), dialect_of(connection)
    classes.read(by_class)
    states: list[TriggerState] = []
    following = None
    for owner, standing in by_class.items():
        states += _class_states(classes, needs, dialect, names, owner, standing, asked.get(owner))
        if following is None and any(trigger.marker.options.follow_ddl for trigger in standing):
            following = owner
    if following is not None:
        # A log has one event trigger. It is listed as one of the first class's, which makes it
        # stand when it is tracked anew.
        ddl_trigger = standing_ddl(connection, names)
        if ddl_trigger is None:
            state = TriggerCondition.MISSING
        elif not ddl_trigger.enabled:
            state = TriggerCondition.DISABLED
        elif not ddl_trigger.current:
            state = TriggerCondition.OUTDATED
        else:
            state = TriggerCondition.CURRENT
        name = ddl_trigger_name(dialect_of(connection), names)
        event_trigger = TriggerState(
            name=name,
            table="ALTER TABLE",
            owner=following,
            state=state,
            note=_ddl_notes.get(state),
        )
        states.append(event_trigger)
    return states


_ddl_notes = {
    TriggerCondition.MISSING: "nothing follows ALTER TABLE in its transaction",
    TriggerCondition.DISABLED: "nothing follows ALTER TABLE in its transaction",
}


def _sees(connection: Connection, owner: str) -> bool:
    """Whether triggers of a class that are not seen are not there; some databases hide those of
    others' tables.
    """
    schema, _, table = owner.rpartition(".")
    asked = {"schema": schema or None, "table": table}
    return all(seen for (seen,) in answers(connection, "sees_triggers", asked))


def unseen(connection: Connection, names: LogNames, seen: Collection[str]) -> dict[str, AskedClass]:
    """The classes that somebody tracks and whose triggers the database does not tell the connected
    user of.

    What was left out there, nobody is to read back.
    """
    classes = asked_classes(connection, names)
    others = {owner: asked for owner, asked in classes.items() if owner not in seen}
    return {owner: asked for owner, asked in others.items() if not _sees(connection, owner)}


def tracked(connection: Connection, names: LogNames) -> list[Table]:
    """The classes that have triggers of the log, with the columns that are captured; what `eventlog
    catalog` shows.
    """
    triggers = installed(connection, names)
    known: dict[str, Marker | AskedClass] = {}
    for trigger in triggers:
        known[trigger.marker.table] = trigger.marker
    known |= unseen(connection, names, known)
    tables, classes = [], Classes(connection)
    classes.read(known)
    for name, witness in known.items():
        options = witness.options
        try:
            table = _present(classes, name, options.children, options.key)
            tables.append(as_logged(captured(table, options, witness.watched), names))
        except EventlogError:  # the table is gone; its triggers are STRAY
            continue
    return tables


def _present(classes: Classes, name: str, children: Sequence[str], key: Sequence[str] = ()) -> Table:
    """A class by its name, with those of these children that it still has."""
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
    owner: str,
    standing: Sequence[Installed],
    asked: TriggerOptions | None,
) -> Iterable[TriggerState]:
    options = asked or TriggerOptions()
    if standing:
        options = standing[0].marker.options
    if asked is not None:
        # What was asked is in the mark; what the table needed when it was tracked is in the
        # triggers alone.
        options = replace(asked, rows=options.rows, foreign=options.foreign)
    try:
        table = _present(classes, owner, options.children)
    except EventlogError as error:
        return [_described(trigger, TriggerCondition.STRAY, str(error)) for trigger in standing]
    try:
        table = classes.one(owner, options.children, options.key)
        wanted = render(needs.numbered(plan(table, needs.needed(table, options))), dialect, names)
    except EventlogError as error:
        problem = str(error)
        states = [_described(trigger, TriggerCondition.OUTDATED, problem) for trigger in standing]
    else:
        others = [trigger for trigger in standing if not same(trigger.marker.options, options)]
        differing = {trigger.name for trigger in others}
        states = []
        for state in compare(wanted, standing, owner, options):
            if state.name in differing:
                state = _differing(state, options)  # noqa: PLW2901  # as it is shown
            states.append(state)
    # The event trigger leaves a marker without a hash. After a renaming its triggers stand under
    # the former name, so they are not strays, and those that would be made now are not missing.
    if any(not trigger.marker.hash for trigger in standing):
        states = [_renamed(state) for state in states if state.state is not TriggerCondition.STRAY]
    texts = {trigger.name: trigger.source for trigger in standing if trigger.enabled}
    return [with_failure(state, texts.get(state.name, ""), table, dialect) for state in states]


def _renamed(state: TriggerState) -> TriggerState:
    if state.state is not TriggerCondition.MISSING:
        return state
    return replace(state, state=TriggerCondition.OUTDATED, note="it has the old name of its table")


def _differing(state: TriggerState, options: TriggerOptions) -> TriggerState:
    """A trigger that says of itself that something else was asked for."""
    if state.state in (TriggerCondition.STRAY, TriggerCondition.DISABLED):
        return state
    return replace(state, state=TriggerCondition.OUTDATED, note=f"it was asked for {words(options)}")


def with_failure(state: TriggerState, text: str, table: Table, dialect: Dialect) -> TriggerState:
    """The state, with the columns that the trigger's text reads and the table no longer has."""
    if state.state is not TriggerCondition.OUTDATED:
        return state
    columns = {child.name: child.columns for child in table.children} | {table.name: table.columns}
    if state.table not in columns:
        return state
    gone = gone_columns(text, [column.name for column in columns[state.table]], dialect)
    if not gone:
        return state
    note = f"every write fails, for the column {', '.join(gone)} is gone"
    if state.note is not None:
        note = f"{note}. {state.note}"
    return replace(state, fails=True, note=note)


def gone_columns(text: str, columns: Iterable[str], dialect: Dialect) -> list[str]:
    """The columns of its own row that a trigger's text reads, and that are not among these."""
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
    options: TriggerOptions | None,
) -> TriggerState:
    if standing is None:
        missing = TriggerState(
            name=trigger.name,
            table=trigger.table,
            owner=owner,
            state=TriggerCondition.MISSING,
        )
        if options is not None:
            missing = replace(missing, style=options.style, asked=words(options))
        return missing
    if not standing.enabled:
        return _described(standing, TriggerCondition.DISABLED)
    if is_current(trigger, standing):
        return _described(standing, TriggerCondition.CURRENT)
    return _described(standing, TriggerCondition.OUTDATED)


def is_current(trigger: Trigger, standing: Installed) -> bool:
    """Whether marker and text are what would be made now."""
    # Databases give the text whole or without its head. An empty text is a part of every other, and
    # proves nothing.
    text = standing.source.strip()
    is_same = bool(text) and text in trigger.source
    return standing.enabled and standing.marker.hash == trigger.hash and is_same


def _described(
    trigger: Installed,
    state: TriggerCondition,
    note: str | None = None,
) -> TriggerState:
    return TriggerState(
        name=trigger.name,
        table=trigger.table,
        owner=trigger.marker.table,
        state=state,
        style=trigger.marker.options.style,
        note=note,
        asked=words(trigger.marker.options),
    )


def history(engine: Engine, names: LogNames, tables: Sequence[str] = ()) -> list[ShapeVersion]:
    """Every version that is known of these tables, or of all, the oldest first."""
    with engine.connect() as connection:
        versions = read_history(connection, log_columns(connection, names, names.columns))
    asked = {name.casefold() for name in tables}
    unknown = asked - {name for version in versions for name in _called(version.table)}
    if unknown:
        raise EventlogError(
            f"No history of {min(unknown)} is known.",
            hint="The publisher begins it when it first sees a tracked table.",
        )
    if not asked:
        return versions
    return [version for version in versions if asked & _called(version.table)]


def _called(table: str) -> set[str]:
    """The names by which people may ask for a table: with its schema, or without."""
    return {table.casefold(), table.rpartition(".")[2].casefold()}
