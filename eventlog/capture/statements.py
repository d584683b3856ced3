"""Writes the statements that make triggers stand as planned, and enter them into the registry; what
runs them, or prints them for a DBA, is `track`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection

from eventlog.capture.class_selection import WantedClass
from eventlog.capture.follower import write_follower
from eventlog.capture.installed import is_current, similar_triggers
from eventlog.capture.preflight import refuse_unfit
from eventlog.capture.registry_writer import RegistryWriter
from eventlog.capture.render import Trigger, dropping, qualify_program, render
from eventlog.core.errors import InstallError
from eventlog.sql.access import answers
from eventlog.sql.dialect import Dialect, dialect_of, log_holes, statement
from eventlog.sql.error_codes import NAME_IS_TAKEN
from eventlog.sql.names import LogNames
from eventlog.tracked.classes import Installed, RegistryState, read_capture


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
    similar = {(state.table, state.name) for state in similar_triggers(connection, names, capture.triggers)}
    for planned in wanted:
        known = capture.classes.get(planned.former or planned.owner)
        refuse_unfit(connection, planned.plan, names, None if known is None else known.options)
        yield from _class_needed(connection, names, planned, capture, similar)
    owners = {planned.former or planned.owner for planned in wanted}
    # Of classes that are not planned now, the registry tells whether they want the event trigger.
    others = [tracked.options for owner, tracked in capture.classes.items() if owner not in owners]
    followed = any(options.follow_ddl for options in (*others, *(planned.plan.options for planned in wanted)))
    yield from write_follower(connection, names, followed=followed)


def _class_needed(
    connection: Connection,
    names: LogNames,
    planned: WantedClass,
    capture: RegistryState,
    similar: set[tuple[str, str]],
) -> Iterator[str]:
    """Write the statements for one class; none if it is complete."""
    dialect, known = dialect_of(connection), capture.classes.get(planned.former or planned.owner)
    # A trigger that went along with its renamed table still belongs to the class's former name.
    mine = {} if known is None else {trigger.entry.name: trigger for trigger in capture.of(known.whole)}
    table = planned.plan.table
    writer = RegistryWriter(dialect=dialect, names=names, schema=table.schema, table=table.name, known=known)
    triggers = {trigger.name: trigger for trigger in render(planned.plan, dialect, names)}
    for trigger in triggers.values():
        if (trigger.table, name_trial(dialect, trigger)) in similar:
            # Left of an attempt that was broken off.
            target = dialect.qualify(trigger.schema, trigger.table)
            trial = dialect.trigger_name(trigger.schema, name_trial(dialect, trigger))
            yield statement(dialect, "drop_trigger", trigger=trial, target=target)
    outdated = [trigger for trigger in triggers.values() if not is_current(trigger, mine.get(trigger.name))]
    stray = [trigger for trigger in mine.values() if trigger.entry.name not in triggers]
    is_entered = (
        known is not None
        and known.fault is None
        and not planned.former
        and (known.options, known.watched) == (planned.asked, planned.plan.remembered)
        and known.relation == planned.relation
        and known.triggers.keys() == triggers.keys()
    )
    if is_entered and not (outdated or stray):
        return
    refuse_taken(connection, names, outdated)
    if known is None:
        yield from writer.enter_class(planned.asked, planned.plan)
    for trigger in outdated:
        there = mine.get(trigger.name)
        is_known = known is not None and trigger.name in known.triggers
        # What stands already is entered when it has been replaced: one that cannot be stays as it is
        # said.
        if not is_known:
            yield writer.enter_trigger(trigger)
        if there is not None or (trigger.table, trigger.name) in similar:
            yield from _replace(dialect, names, trigger, there)
        else:
            # Another one of the log's owner may have its name, if it was lost.
            is_in_the_way = is_known and not dialect.ddl.procedural_triggers
            yield from filter(None, trigger.drop[:1] if is_in_the_way else ())
            yield from filter(None, trigger.create)
        if is_known:
            yield writer.enter_trigger(trigger)
        yield writer.keep_trigger_text(trigger)
    for gone in stray:
        yield from drop_trigger(dialect, names, gone)
    if known is not None:
        yield from writer.enter_class(planned.asked, planned.plan)
        for name in known.triggers:
            if name not in triggers:
                yield writer.remove_trigger(name)
    yield from writer.enter_relations(planned.plan)
    if planned.plan.options.follow_ddl:
        yield from writer.enter_columns(planned.plan)


def refuse_taken(connection: Connection, names: LogNames, triggers: Sequence[Trigger]) -> None:
    """Refuse to replace somebody else's trigger, and to make one run a function that somebody else owns."""
    programs, dialect = [trigger.program for trigger in triggers], dialect_of(connection)
    log = log_holes(dialect, names)
    for trigger in triggers:
        for name in (trigger.name, name_trial(dialect, trigger)):
            asked = {"schema": trigger.schema, "name": name}
            for table, definer in answers(connection, "taken_triggers", asked, **log):
                problem = f"The trigger {name} on {table} belongs to {definer}, and the registry does not name it"
                raise InstallError(f"{problem}.", hint=NAME_IS_TAKEN)
    for function, owner in answers(connection, "taken_functions", {"functions": programs}, **log):
        problem = f"The function {function} beside the log belongs to {owner}, who could change what it does"
        raise InstallError(
            f"{problem}.",
            hint=f"Drop it (DROP FUNCTION {function}), and let nobody but the log's owner create in that schema.",
        )


def name_trial(dialect: Dialect, trigger: Trigger) -> str:
    """Name the trigger made and dropped first, if replacing takes two steps."""
    return dialect.shorten_name(f"{trigger.name}_tried")


def _replace(dialect: Dialect, names: LogNames, trigger: Trigger, there: Installed | None) -> Iterator[str]:
    """Replace a trigger; a conflicting one is dropped before the new one is made."""
    # Keeps writers from the table while its trigger is replaced, where that is not one transaction.
    held = statement(dialect, "hold_table", target=dialect.qualify(trigger.schema, trigger.table))
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
    existing = {(trigger.owner.id, trigger.entry.name) for trigger in capture.triggers}
    for tracked in capture.classes.values():
        for entered in tracked.triggers.values():
            if entered.function is not None and (tracked.id, entered.name) not in existing:
                yield qualify_program(dialect, names, tracked.schema, entered.function)


def drop_trigger(dialect: Dialect, names: LogNames, trigger: Installed) -> Iterator[str]:
    holes = dropping(dialect, _function_of(dialect, names, trigger)) | {
        "trigger": dialect.trigger_name(trigger.schema, trigger.name),
        "target": dialect.qualify(trigger.schema, trigger.table),
    }
    yield from filter(None, (statement(dialect, query, **holes) for query in ("drop_trigger", "drop_function")))


def _function_of(dialect: Dialect, names: LogNames, trigger: Installed) -> str:
    """Name the function of an existing trigger, as in SQL."""
    return qualify_program(dialect, names, trigger.schema, trigger.entry.function or trigger.name)
