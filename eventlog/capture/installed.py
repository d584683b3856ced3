"""What triggers stand in a database, and how they compare with what would be made today."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine

from eventlog.capture.follower import FOLLOWED, name_follower, read_follower
from eventlog.capture.render import Trigger, render
from eventlog.capture.table_needs import TableNeeds
from eventlog.core.errors import EventlogError
from eventlog.core.schema import Table
from eventlog.core.table_names import read_name, write_name
from eventlog.sql.access import answers
from eventlog.sql.definitions import ShapeVersion
from eventlog.sql.dialect import Dialect, dialect_of
from eventlog.sql.findlog import log_columns
from eventlog.sql.history import read_history
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import Classes
from eventlog.tracked.classes import Installed, find_present, read_capture, read_visible, sees_triggers
from eventlog.tracked.options import Style, words
from eventlog.tracked.registry import TrackedClass


class TriggerCondition(StrEnum):
    """How a trigger stands to what would be made today."""

    CURRENT = "CURRENT"
    OUTDATED = "OUTDATED"
    MISSING = "MISSING"
    STRAY = "STRAY"
    DISABLED = "DISABLED"


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

    @property
    def place(self) -> str:
        """Name its table, with the schema where the class is named with one."""
        return write_name(self.schema if read_name(self.owner)[0] else None, self.table)


MOST_SIMILAR_ROWS: Final = 100
"""Rows of the list of triggers that look like ours."""


def similar_triggers(connection: Connection, names: LogNames, ours: Sequence[Installed]) -> list[TriggerState]:
    """Find triggers similar to ours but missing from the registry."""
    dialect, known = dialect_of(connection), {(own.schema, own.table, own.name) for own in ours}
    asked = {
        "most": MOST_SIMILAR_ROWS + len(known),
        "prefix": f"{names.table}_",
        "writes": f"INSERT INTO {dialect.qualify(names.schema, names.table)} (",
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
        for row in answers(connection, "similar_triggers", asked)
        if (row.table_schema, row.table_name, row.trigger_name) not in known
    ]


def compare(wanted: Sequence[Trigger], existing: Sequence[Installed], tracked: TrackedClass) -> list[TriggerState]:
    """Compare a class's planned triggers with those there."""
    there = {(trigger.table, trigger.entry.name): trigger for trigger in existing}
    states = [_compare_trigger(trigger, there.pop((trigger.table, trigger.name), None), tracked) for trigger in wanted]
    # Those that nobody wants are left.
    return states + [_describe(trigger, tracked, TriggerCondition.STRAY) for trigger in there.values()]


def states(connection: Connection, names: LogNames) -> list[TriggerState]:
    """Compare every trigger of the log, each class planned again from its table of now."""
    capture = read_capture(connection, names)
    # All triggers of a class may be gone, and the registry still says that it is tracked.
    owners = [
        owner for owner in capture.classes if capture.of(owner) or sees_triggers(connection, capture.classes[owner])
    ]
    classes, needs, dialect = Classes(connection), TableNeeds(connection, names), dialect_of(connection)
    owners = read_visible(connection, classes, owners)
    found: list[TriggerState] = []
    for owner in owners:
        tracked, existing = capture.classes[owner], capture.of(owner)
        found += _class_states(classes, needs, dialect, names, tracked, existing)
    following = [owner for owner in owners if capture.classes[owner].options.follow_ddl]
    if following:
        # A log has one event trigger. It is listed as one of the first class's, which makes it
        # stand when it is tracked anew.
        found.append(_ddl_state(connection, names, following[0]))
    return [*found, *similar_triggers(connection, names, capture.triggers)]


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


def _class_states(
    classes: Classes,
    needs: TableNeeds,
    dialect: Dialect,
    names: LogNames,
    tracked: TrackedClass,
    existing: Sequence[Installed],
) -> Iterable[TriggerState]:
    owner, options = tracked.whole, tracked.options

    def state_all(state: TriggerCondition, note: str) -> list[TriggerState]:
        return [_describe(trigger, tracked, state, note) for trigger in existing]

    if tracked.fault is not None:
        outdated, note = TriggerCondition.OUTDATED, tracked.fault
        entry = TriggerState(name=owner, table=tracked.table, owner=owner, state=outdated, note=note)
        return state_all(outdated, note) or [entry]
    try:
        table = find_present(classes, owner, options.children)
    except EventlogError as error:
        return state_all(TriggerCondition.STRAY, str(error))
    try:
        table = classes.one(owner, options.children, options.key)
        wanted = render(needs.plan(table, options), dialect, names)
    except EventlogError as error:
        states = state_all(TriggerCondition.OUTDATED, str(error))
    else:
        states = compare(wanted, existing, tracked)
    # After a renaming the triggers stand under the former name: they are no strays, and those that
    # would be made now are not missing.
    if any(trigger.entry.digest == FOLLOWED for trigger in existing):
        note, missing = "it has the old name of its table", TriggerCondition.MISSING
        states = [
            replace(state, state=TriggerCondition.OUTDATED, note=note) if state.state is missing else state
            for state in states
            if state.state is not TriggerCondition.STRAY
        ]
    texts = {trigger.name: trigger.source for trigger in existing if trigger.enabled}
    return [with_failure(state, texts.get(state.name, ""), table, dialect) for state in states]


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
    rows = "|".join((*dialect.ddl.row_names, "o", "n"))
    name = r'"(?:[^"]|"")+"|`(?:[^`]|``)+`|[^\W\d][\w$#]*'
    # Behind nothing that could make another table's alias of it.
    read = re.findall(rf"""(?<![\w"`.])(?:{rows})\.({name})""", text)
    gone = []
    for written in dict.fromkeys(read):
        quote = written[0]
        # What nobody quoted has any case.
        name = written[1:-1].replace(quote * 2, quote) if quote in '"`' else written
        is_there = name in exact if quote in '"`' else name.casefold() in known
        if not is_there and name not in gone:
            gone.append(name)
    return gone


def _compare_trigger(trigger: Trigger, existing: Installed | None, tracked: TrackedClass) -> TriggerState:
    if existing is None:
        return _describe(trigger, tracked, TriggerCondition.MISSING)
    if not existing.enabled:
        return _describe(existing, tracked, TriggerCondition.DISABLED)
    if is_current(trigger, existing):
        return _describe(existing, tracked, TriggerCondition.CURRENT)
    note = None if existing.unchanged else "somebody has changed it"
    if existing.entry.digest == FOLLOWED:
        note = "its table was altered, and the follower logs it in its style since"
        if tracked.options.children:
            note = "its table was altered, and it logs rows to be read back since"
    return _describe(existing, tracked, TriggerCondition.OUTDATED, note)


def is_current(trigger: Trigger, existing: Installed | None) -> bool:
    """Return True if a trigger was planned as it would be now, on that table, and is unchanged."""
    if existing is None or existing.table != trigger.table:
        return False
    return existing.enabled and existing.unchanged and existing.entry.digest == trigger.hash


def _describe(
    trigger: Trigger | Installed, tracked: TrackedClass, state: TriggerCondition, note: str | None = None
) -> TriggerState:
    return TriggerState(
        name=trigger.name,
        table=trigger.table,
        schema=trigger.schema,
        owner=tracked.whole,
        state=state,
        style=tracked.options.style,
        note=note,
        asked=words(tracked.options),
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
