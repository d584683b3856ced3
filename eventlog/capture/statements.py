"""Writes the statements that make triggers stand as planned, and enter them into the registry; what
runs them, or prints them for a DBA, is `track`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Connection

from eventlog.capture.class_selection import WantedClass
from eventlog.capture.follower import write_follower
from eventlog.capture.installed import TriggerState, is_current, similar_triggers
from eventlog.capture.preflight import refuse_unfit
from eventlog.capture.registry_writer import RegistryWriter
from eventlog.capture.render import Trigger, dropping, render
from eventlog.sql.dialect import Dialect, dialect_of, statement
from eventlog.sql.names import LogNames
from eventlog.tracked.classes import Installed, RegistryState, read_capture
from eventlog.tracked.registry import EnteredTrigger, TrackedClass


def write_needed(
    connection: Connection,
    wanted: Sequence[WantedClass],
    names: LogNames,
) -> Iterator[str]:
    """Write the statements for tracking the classes as planned.

    Each trigger is entered before it is made and confirmed afterwards, so that the registry names
    all of them, wherever it ends between two statements.
    """
    capture = read_capture(connection, names)
    similar = {(state.table, state.name): state for state in similar_triggers(connection, names)}
    dialect = dialect_of(connection)
    for planned in wanted:
        known = capture.classes.get(planned.former or planned.owner)
        refuse_unfit(connection, planned.plan, names, None if known is None else known.options)
        yield from _class_needed(dialect, names, planned, capture, similar)
    owners = {planned.former or planned.owner for planned in wanted}
    followed = any(planned.plan.options.follow_ddl for planned in wanted)
    # Of classes that are not planned now, the registry tells whether they want the event trigger.
    others = [tracked for owner, tracked in capture.classes.items() if owner not in owners]
    followed = followed or any(tracked.options.follow_ddl for tracked in others)
    yield from write_follower(connection, names, followed=followed)


def _class_needed(
    dialect: Dialect,
    names: LogNames,
    planned: WantedClass,
    capture: RegistryState,
    similar: Mapping[tuple[str, str], TriggerState],
) -> Iterator[str]:
    """Write the statements for one class; none if it is complete."""
    known = capture.classes.get(planned.former or planned.owner)
    table = planned.plan.table
    # A trigger that went along with its renamed table still belongs to the class's former name.
    mine = {} if known is None else {trigger.entered: trigger for trigger in capture.of(known.whole)}
    writer = RegistryWriter(dialect=dialect, names=names, schema=table.schema, table=table.name, known=known)
    triggers = render(planned.plan, dialect, names)
    for trigger in triggers:
        if (trigger.table, name_trial(dialect, trigger)) in similar:
            # Left of an attempt that was broken off.
            target = dialect.qualify(table.schema, trigger.table)
            trial = dialect.trigger_name(table.schema, name_trial(dialect, trigger))
            yield statement(dialect, "drop_trigger", trigger=trial, target=target)
    outdated = [trigger for trigger in triggers if not _is_current(trigger, mine.get(trigger.name))]
    wanted_names = {trigger.name for trigger in triggers}
    stray = [trigger for trigger in mine.values() if trigger.entered not in wanted_names]
    if known is not None and not (outdated or stray or planned.former) and _is_entered(planned, known, wanted_names):
        return
    if known is None:
        yield from writer.enter_class(planned.asked, planned.plan)
    for trigger in outdated:
        takes_place = trigger.name in mine or (trigger.table, trigger.name) in similar
        yield from _make_trigger(dialect, names, writer, trigger, mine.get(trigger.name), replaces=takes_place)
    for gone in stray:
        yield from drop_trigger(dialect, names, gone)
    if known is not None:
        yield from writer.enter_class(planned.asked, planned.plan)
        for name in known.triggers:
            if name not in wanted_names:
                yield writer.remove_trigger(name)
    tables = {table.name: "table"} | {child.child.name: "child" for child in planned.plan.children}
    yield from writer.enter_relations(tables)
    if planned.plan.options.follow_ddl:
        yield from writer.enter_columns(planned.plan)


def _make_trigger(
    dialect: Dialect,
    names: LogNames,
    writer: RegistryWriter,
    trigger: Trigger,
    there: Installed | None,
    *,
    replaces: bool,
) -> Iterator[str]:
    """Enter a trigger, make it and keep its text.

    What stands already is entered when it has been replaced: one that cannot be stays as it is said.
    """
    entered = EnteredTrigger(
        name=trigger.name,
        table=trigger.table,
        function=trigger.program,
        digest=trigger.hash,
        part=trigger.part,
    )
    is_known = writer.known is not None and trigger.name in writer.known.triggers
    if not is_known:
        yield writer.enter_trigger(entered)
    if replaces:
        target = dialect.qualify(writer.schema, trigger.table)
        yield from _replace(dialect, names, trigger, there, target)
    else:
        # Another one may have its name, if it was lost.
        yield from filter(None, trigger.drop[:1] if is_known else ())
        yield from filter(None, trigger.create)
    if is_known:
        yield writer.enter_trigger(entered)
    yield writer.keep_trigger_text(entered, trigger.function)


def _is_entered(planned: WantedClass, known: TrackedClass, triggers: set[str]) -> bool:
    """Return True if the registry has the class exactly as planned."""
    options = known.fault is None and known.options == planned.asked
    return (
        options
        and known.watched == planned.plan.remembered
        and known.relation == planned.relation
        and {*known.triggers} == triggers
    )


def _is_current(trigger: Trigger, there: Installed | None) -> bool:
    return there is not None and there.table == trigger.table and is_current(trigger, there)


def name_trial(dialect: Dialect, trigger: Trigger) -> str:
    """Name the trigger made and dropped first, if replacing takes two steps."""
    return dialect.shorten_name(f"{trigger.name}_tried")


def _replace(
    dialect: Dialect,
    names: LogNames,
    trigger: Trigger,
    there: Installed | None,
    target: str,
) -> Iterator[str]:
    """Replace a trigger; a conflicting one is dropped before the new one is made."""
    # Keeps writers from the table while its trigger is replaced, where that is not one transaction.
    held = statement(dialect, "hold_table", target=target)
    if held:
        yield held
        # Made under another name and taken off again first: who may not make it has not lost the
        # former one.
        name, tried = (dialect.trigger_name(trigger.schema, n) for n in (trigger.name, name_trial(dialect, trigger)))
        for text in filter(None, (*trigger.create, *trigger.drop)):
            yield text.replace(name, tried, 1)
    # Where CREATE OR REPLACE puts one trigger in the place of another, the former function goes
    # after it.
    if not dialect.ddl.procedural_triggers:
        yield from filter(None, trigger.drop)
    yield from filter(None, trigger.create)
    former = None if there is None else _function_of(dialect, names, there)
    if dialect.ddl.procedural_triggers and former not in (None, trigger.function):
        yield statement(dialect, "drop_function", **dropping(dialect, str(former)))
    if held:
        yield statement(dialect, "release_table")


def drop_triggers(dialect: Dialect, names: LogNames, capture: RegistryState) -> Iterator[str]:
    """Write statements dropping triggers, and functions left behind by dropped tables."""
    for trigger in capture.triggers:
        yield from drop_trigger(dialect, names, trigger)
    for function in name_left_functions(dialect, names, capture):
        yield statement(dialect, "drop_function", **dropping(dialect, function))


def name_left_functions(dialect: Dialect, names: LogNames, capture: RegistryState) -> Iterator[str]:
    """Name the registry's functions no trigger runs any more, as in SQL."""
    existing = {(trigger.owner.id, trigger.entered) for trigger in capture.triggers}
    for tracked in capture.classes.values():
        for entered in tracked.triggers.values():
            if entered.function is not None and (tracked.id, entered.name) not in existing:
                yield _qualify(dialect, names, tracked.schema, entered.function)


def drop_trigger(dialect: Dialect, names: LogNames, trigger: Installed) -> Iterator[str]:
    holes = dropping(dialect, _function_of(dialect, names, trigger)) | {
        "trigger": dialect.trigger_name(trigger.schema, trigger.name),
        "target": dialect.qualify(trigger.schema, trigger.table),
    }
    for query in ("drop_trigger", "drop_function"):
        text = statement(dialect, query, **holes)
        if text:
            yield text


def _function_of(dialect: Dialect, names: LogNames, trigger: Installed) -> str:
    """Name the function of an existing trigger, as in SQL."""
    return _qualify(dialect, names, trigger.schema, trigger.owner.triggers[trigger.entered].function or trigger.name)


def _qualify(dialect: Dialect, names: LogNames, schema: str | None, function: str) -> str:
    return dialect.qualify(schema if dialect.ddl.procedural_triggers else names.schema, function)
