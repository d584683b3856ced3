"""Makes triggers stand as planned, takes them off, and prints the statements for a DBA instead.

What they need is tried before one is touched. A log that does not take what they write would fail
every writer; a trigger that was taken off and cannot be made again would lose changes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Final

from msgspec.structs import replace
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from eventlog.capture.asked import (
    AskedClass,
    TrackRequest,
    asked_classes,
    asked_of,
    exactly,
    forgetting,
    has_marks,
    keeping,
)
from eventlog.capture.ddl import ddl_drops, ddl_needed, refused
from eventlog.capture.installed import (
    Installed,
    TriggerState,
    by_owner,
    compare,
    installed,
    is_current,
    states,
)
from eventlog.capture.log_tables import ddl_transaction
from eventlog.capture.plan import TriggerOptions, captured
from eventlog.capture.render import Trigger, dropping, function_name, render
from eventlog.capture.tried import refuse_unfit, try_log, try_triggers
from eventlog.capture.wanted import Note, WantedClass, is_pattern, wanted_classes
from eventlog.core.errors import InstallError
from eventlog.sql.access import is_denied, verbatim
from eventlog.sql.clocks import zone_of
from eventlog.sql.dialect import Dialect, dialect_of, offers, statement
from eventlog.sql.findlog import log_columns
from eventlog.sql.history import enter_versions
from eventlog.sql.log import Log
from eventlog.sql.names import STANDARD, LogNames
from eventlog.sql.reflect import Classes, parts_of
from eventlog.sql.shapes import Schema

STAMPS: Final = ("tracked", "holding")
"""The marks by which a publisher sees that what it knows of tables, and of the log, is old."""


def track(
    engine: Engine,
    tables: Sequence[str],
    options: TriggerOptions | TrackRequest | None = None,
    names: LogNames | None = None,
    schema: str | None = None,
    note: Note = lambda _text: None,
    leave: Note | None = None,
    since: int | None = None,
) -> list[TriggerState]:
    """Makes or replaces the triggers of these classes, all or none; what is current is left alone.

    A request is put over what a class was tracked with before, None asks for just that; options are
    all that is wanted. `note` hears what is kept and what is changed, `leave` why a table of a
    pattern cannot be tracked: an error without it. `since` is the newest row of the log while
    tables still looked as their triggers know them, where these follow later.
    """
    with ddl_transaction(engine) as connection:
        log = located(connection, names)
        # Our triggers write UTC: in a log of another clock, rows of two clocks could not be told
        # apart.
        if zone_of(log.clock) is not None:
            clocks = f"The times in {log.whole} are those of {log.clock}"
            raise InstallError(
                f"{clocks}, and triggers of eventlog write UTC.",
                hint="Give these tables a log of their own: `eventlog install --log NAME`.",
            )
        try_triggers(connection)
        try_log(connection, log)
        try:
            request = _request(options)
            wanted = _kept_as_planned(connection, tables, request, log, schema, note, leave)
            # All of it is known before the first of it runs, for not every database takes back what
            # ran before a refusal.
            for statement_text in list(_needed(connection, wanted, log)):
                _make(connection, statement_text)
            for statement_text in _to_keep(connection, log, wanted):
                _execute_if_may(connection, statement_text)
            _enter_definitions(connection, log, wanted, since)
            _tell_publisher(connection, engine, log)
        finally:
            for query in ("after_trigger", "release_table"):
                _execute(connection, statement(dialect_of(connection), query))
        standing, states = by_owner(installed(connection, log)), []
        for tracked_class in wanted:
            triggers = render(tracked_class.plan, dialect_of(connection), log)
            states += compare(triggers, standing.get(tracked_class.owner, []), tracked_class.owner)
        return states


def track_sql(
    engine: Engine,
    tables: Sequence[str],
    options: TriggerOptions | TrackRequest | None = None,
    names: LogNames | None = None,
    schema: str | None = None,
    note: Note = lambda _text: None,
    leave: Note | None = None,
) -> str:
    """The statements that `track` would run now, as a script."""
    with engine.connect() as connection:
        log = located(connection, names)
        wanted = wanted_classes(connection, tables, _request(options), log, schema, note, leave)
        needed = [*_needed(connection, wanted, log), *_to_keep(connection, log, wanted)]
        return script(needed, dialect_of(connection))


def untrack(
    engine: Engine,
    tables: Sequence[str],
    names: LogNames | None = None,
    schema: str | None = None,
    *,
    agree: Callable[[list[str]], None] = lambda _names: None,
) -> list[str]:
    """Takes the triggers of these classes off, and returns their names; InstallError where a class
    has none.

    `agree` gets the names before anything is done, and may raise.
    """
    with engine.connect() as connection:
        asked_about, _ = _of_owners(connection, located(connection, names), tables, schema)
        agree([trigger.name for trigger in asked_about])
    with ddl_transaction(engine) as connection:
        log = located(connection, names)
        # Looked up again: somebody may have taken long to agree.
        removed, owners = _of_owners(connection, log, tables, schema)
        for trigger in removed:
            for text in _drops(dialect_of(connection), log, trigger):
                _execute(connection, text)
        # The event trigger is one for the whole log, and goes with the last class that wants it.
        if not any(trigger.marker.options.follow_ddl for trigger in installed(connection, log)):
            for text in ddl_drops(connection, log):
                _execute(connection, text)
        for owner in owners:
            _execute_if_may(connection, forgetting(dialect_of(connection), log, owner))
        _tell_publisher(connection, engine, log)
        return [trigger.name for trigger in removed]


def _kept_as_planned(
    connection: Connection,
    tables: Sequence[str],
    request: TrackRequest,
    names: LogNames,
    schema: str | None,
    note: Note,
    leave: Note | None,
) -> list[WantedClass]:
    """The classes as they are, and stay while the transaction lasts, where the database can lock
    what tables look like.
    """
    # Planned from a catalog that somebody alters a moment later, a trigger would name a column that
    # is gone, and fail each writer: it would take the place of what an event trigger has just made
    # of it. So each table is locked, and looked at again, until no look brings a table that is not
    # locked.
    can_lock = offers(dialect_of(connection), "keep_shape")
    locked: set[tuple[str | None, str]] = set()
    while True:
        # Each round says the same again, so only the last one is heard.
        notes: list[str] = []
        left_out: list[str] = []
        leave_out = None if leave is None else left_out.append
        wanted = wanted_classes(connection, tables, request, names, schema, notes.append, leave_out)
        new = _tables_of(wanted) - locked
        if not (can_lock and new):
            break
        for table_schema, table in sorted(new, key=str):
            dialect = dialect_of(connection)
            target = dialect.qualified(table_schema, table)
            try:
                with connection.begin_nested():
                    _execute(connection, statement(dialect, "keep_shape", target=target))
            except DBAPIError as error:
                # Who may make triggers on a table, and not read it, makes them without the lock.
                if not is_denied(dialect, error.orig):
                    raise
        locked |= new
    for text in notes:
        note(text)
    for text in left_out:
        (leave or note)(text)
    return wanted


def _tables_of(wanted: Sequence[WantedClass]) -> set[tuple[str | None, str]]:
    """The tables that triggers would name; a view that others replace keeps its columns."""
    tables = set()
    for planned in wanted:
        table = planned.plan.table
        if not table.view:
            tables.add((table.schema, table.name))
            tables |= {(table.schema, child.child.name) for child in planned.plan.children}
    return tables


def _of_owners(
    connection: Connection,
    log: LogNames,
    tables: Sequence[str],
    schema: str | None,
) -> tuple[list[Installed], list[str]]:
    """The triggers of the classes that are named, and the classes as they were tracked."""
    standing = by_owner(installed(connection, log))
    classes = Classes(connection, schema)
    class_of_table = {}
    for triggers in standing.values():
        for trigger in triggers:
            table = trigger.table
            if trigger.schema:
                table = f"{trigger.schema}.{table}"
            class_of_table[table.casefold()] = trigger.marker.table
    owners: dict[str, None] = {}
    # A class whose triggers are all gone is still in the marks, and is untracked by them.
    known = {**standing, **asked_of(connection, log)}
    for name in tables:
        owners |= dict.fromkeys(_owners(classes, name, known, class_of_table, log.table))
    removed = [trigger for owner in owners for trigger in standing.get(owner, [])]
    return removed, [*owners]


def _request(options: TriggerOptions | TrackRequest | None) -> TrackRequest:
    if isinstance(options, TriggerOptions):
        return exactly(options)
    return options or TrackRequest()


def trigger_states(engine: Engine, names: LogNames | None = None) -> list[TriggerState]:
    with engine.connect() as connection:
        return states(connection, located(connection, names))


def all_drops(connection: Connection, names: LogNames) -> list[str]:
    """The statements that take off every trigger of a log."""
    log = with_schema(connection, names)
    dialect = dialect_of(connection)
    drops: list[str] = []
    for trigger in installed(connection, log):
        drops += _drops(dialect, log, trigger)
    # The event trigger first, which would follow what is dropped.
    return ddl_drops(connection, log) + drops


def located(connection: Connection, names: LogNames | None) -> LogNames:
    """The log with the schema and the columns that it has in this database; InstallError when it is
    not there.
    """
    log = with_schema(connection, names or LogNames())
    columns = log.columns
    if columns == STANDARD:
        return log_columns(connection, log, "auto")
    return log_columns(connection, log, columns)


def with_schema(connection: Connection, names: LogNames) -> LogNames:
    """The log with the schema that its bare name means, because a trigger runs in another search
    path.
    """
    return replace(names, schema=Schema(connection, names.schema).name)


def script(statements: Sequence[str], dialect: Dialect) -> str:
    """Statements one after another, each ended as the database's own shell expects."""
    if not statements:
        return ""
    head = dialect.script_head + dialect.script_start
    return head + "".join(f"{text}{dialect.script_end}\n\n" for text in statements)


def _needed(
    connection: Connection,
    wanted: Sequence[WantedClass],
    names: LogNames,
) -> Iterator[str]:
    """What has to run so that the classes are tracked as planned."""
    standing = by_owner(installed(connection, names))
    dialect = dialect_of(connection)
    for planned in wanted:
        refuse_unfit(connection, planned.plan, names)
        # A trigger that went along with its renamed table still says its class's former name.
        mine = {trigger.name: trigger for trigger in standing.get(planned.former or "", ())}
        mine |= {trigger.name: trigger for trigger in standing.get(planned.owner, ())}
        for trigger in render(planned.plan, dialect, names):
            there = mine.pop(trigger.name, None)
            if there is None:
                yield from filter(None, trigger.create)
            elif not is_current(trigger, there) or there.marker.options != planned.plan.options:
                target = dialect.qualified(planned.plan.table.schema, trigger.table)
                yield from _replacing(dialect, names, trigger, there, target)
        for stray in mine.values():
            yield from _drops(dialect, names, stray)
    owners = {planned.owner for planned in wanted}
    followed = any(planned.plan.options.follow_ddl for planned in wanted)
    for owner, triggers in standing.items():
        # Of classes that are not planned now, the triggers tell whether they want the event
        # trigger.
        if owner not in owners and any(trigger.marker.options.follow_ddl for trigger in triggers):
            followed = True
    yield from ddl_needed(connection, names, followed=followed)


def _replacing(
    dialect: Dialect,
    names: LogNames,
    trigger: Trigger,
    there: Installed,
    target: str,
) -> Iterator[str]:
    """What puts a trigger in the place of one that stands: what is in the way goes before what is
    new comes.
    """
    # Keeps writers from the table while its trigger is replaced, where that is not one transaction.
    held = statement(dialect, "hold_table", target=target)
    if held:
        yield held
        # Made under another name and taken off again first: who may not make it has not lost the
        # former one.
        schema = trigger.schema if dialect.triggers_in_schemas else None
        name = dialect.qualified(schema, trigger.name)
        tried_name = dialect.qualified(schema, dialect.shortened(f"{trigger.name}_tried"))
        for text in filter(None, (*trigger.create, *trigger.drop)):
            yield text.replace(name, tried_name, 1)
    # Where CREATE OR REPLACE puts one trigger in the place of another, the former function goes
    # after it.
    if not dialect.procedural_triggers:
        yield from filter(None, trigger.drop)
    yield from filter(None, trigger.create)
    former = _function_of(dialect, names, there)
    if dialect.procedural_triggers and former != trigger.function:
        yield statement(dialect, "drop_function", **dropping(dialect, former))
    if held:
        yield statement(dialect, "release_table")


def _to_keep(connection: Connection, names: LogNames, wanted: Sequence[WantedClass]) -> list[str]:
    """The statements that note what the classes are tracked with, where it is not noted so yet."""
    # Who may make triggers, and not write marks, has the triggers to tell.
    if not has_marks(connection, names):
        return []
    kept, dialect = asked_classes(connection, names), dialect_of(connection)
    forgotten, noted = [], []
    for planned in wanted:
        if planned.former is not None and planned.former in kept:
            forgotten.append(forgetting(dialect, names, planned.former))
        asked = AskedClass(
            table=planned.owner,
            options=planned.asked,
            watched=planned.plan.remembered,
        )
        if kept.get(planned.owner) != asked:
            noted.append(keeping(dialect, names, asked))
    return forgotten + noted


def _enter_definitions(
    connection: Connection, names: LogNames, wanted: Sequence[WantedClass], since: int | None
) -> None:
    """Enters how the classes look for which triggers were made: what they write from now on is read
    so.
    """
    tables, former = [], {}
    for planned in wanted:
        tables.append(captured(planned.plan.table, planned.plan.options, planned.plan.remembered))
        if planned.former is not None:
            former[planned.owner] = planned.former
    # Who may make triggers, and not write there, leaves it to the publisher, which enters it when
    # it looks.
    # In a savepoint: on PostgreSQL what fails would spoil the whole transaction.
    with suppress(SQLAlchemyError), connection.begin_nested():
        enter_versions(connection, names, tables, former, since, remade=True)


def _drops(dialect: Dialect, names: LogNames, trigger: Installed) -> Iterator[str]:
    schema = trigger.schema if dialect.triggers_in_schemas else None
    holes = dropping(dialect, _function_of(dialect, names, trigger)) | {
        "trigger": dialect.qualified(schema, trigger.name),
        "target": dialect.qualified(trigger.schema, trigger.table),
    }
    for query in ("drop_trigger", "drop_function"):
        text = statement(dialect, query, **holes)
        if text:
            yield text


def _function_of(dialect: Dialect, names: LogNames, trigger: Installed) -> str:
    """What a trigger that stands runs."""
    return function_name(dialect, names, trigger.schema, trigger.name, trigger.marker.hash)


def _tell_publisher(connection: Connection, engine: Engine, names: LogNames) -> None:
    """Lets a publisher look at the tables again; who may make triggers, and not write marks,
    restarts it.
    """
    log = Log(engine, names)
    with suppress(SQLAlchemyError), connection.begin_nested():
        for name in STAMPS:
            stamp = {"name": name, "value": secrets.token_hex(8)}
            connection.execute(log.query("mark_write"), stamp)


def _owners(
    classes: Classes,
    name: str,
    known: Iterable[str],
    children: Mapping[str, str],
    log: str,
) -> list[str]:
    """The tracked classes that a name or a pattern means, in the case in which it is written, else
    in any; InstallError when there is none.

    `children` are the tables on which triggers stand, with the class that they belong to.
    """
    first, last = parts_of(name)
    schema = classes.schema(first or classes.default)
    # A table that is gone is taken by its word, so that strays can be taken off.
    table = schema.find(last) or last
    exact = f"{schema.name}.{table}" if schema.name else table
    if exact in known:
        return [exact]
    meant = exact.casefold()
    matching = [owner for owner in known if owner.casefold() == meant]
    if not matching and is_pattern(last):
        matching = [owner for owner in known if fnmatchcase(owner.casefold(), meant)]
    if not matching and meant in children:
        parent = children[meant]
        hint = f"`eventlog untrack {parent}` removes the triggers of both."
        raise InstallError(
            f"{name} is not tracked by itself, but as a part of {parent}.",
            hint=hint,
        )
    if not matching:
        raise InstallError(
            f"{name} is not tracked for {log}.",
            hint="`eventlog triggers` lists what is.",
        )
    return matching


def _execute_if_may(connection: Connection, sql: str) -> None:
    """Runs what a right may be missing for, without which the rest stands."""
    with suppress(SQLAlchemyError), connection.begin_nested():
        connection.execute(verbatim(sql))


def _make(connection: Connection, sql: str) -> None:
    try:
        _execute(connection, sql)
    except DBAPIError as error:
        why = refused(dialect_of(connection), sql, error.orig)
        if why is None:
            raise
        raise why from None


def _execute(connection: Connection, sql: str) -> None:
    if sql:
        connection.execute(verbatim(sql))
