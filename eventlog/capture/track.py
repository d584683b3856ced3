"""Makes triggers stand as planned, takes them off, and prints the statements for a DBA instead.

What they need is tried before one is touched. A log that does not take what they write would fail
every writer; a trigger that was taken off and cannot be made again would lose changes.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from eventlog.capture.class_selection import Note, WantedClass, is_pattern, plan_wanted_classes
from eventlog.capture.clauses import image_columns
from eventlog.capture.follower import drop_follower, explain_refusal
from eventlog.capture.installed import TriggerCondition, TriggerState, compare, similar_triggers, states
from eventlog.capture.log_tables import ddl_transaction
from eventlog.capture.preflight import try_log, try_triggers
from eventlog.capture.registry_writer import RegistryWriter
from eventlog.capture.render import render
from eventlog.capture.statements import drop_triggers, refuse_taken, write_needed
from eventlog.core.errors import InstallError
from eventlog.core.schema import Table
from eventlog.core.table_names import read_name, write_name
from eventlog.sql.access import hint_of, is_denied, run_verbatim, words_of
from eventlog.sql.clocks import zone_of
from eventlog.sql.dialect import Dialect, dialect_of, offers, statement
from eventlog.sql.findlog import locate_log, with_schema
from eventlog.sql.history import Images, write_versions
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import Classes
from eventlog.tracked.classes import Installed, RegistryState, read_capture
from eventlog.tracked.options import OPTIONS, Style, TrackRequest, TriggerOptions, keep_captured_columns
from eventlog.tracked.registry import TrackedClass, require_registry
from eventlog.tracked.stamp import note_current, read_stamp

_is_owners = re.compile(
    r"(?:INSERT INTO|UPDATE|DELETE FROM) \S*_(?:tracked|trigger|relation|column)\S* |ALTER FUNCTION \S+ OWNER TO"
)
"""Statements that only the log's owner may run."""

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
    """Make or replace the triggers of these classes, all or none; leave current ones alone.

    A request changes a class's former options, None keeps them; options replace them all. `note`
    hears about kept and changed options, `leave` why a table of a pattern cannot be tracked: an
    error without it. `since` is the newest row of the log while tables still looked as their
    triggers know them, if these follow later.
    """
    notes: list[str] = []  # what is so only when everything is made
    with ddl_transaction(engine) as connection:
        log, dialect = locate_log(connection, names), dialect_of(connection)
        # Our triggers write UTC: in a log of another clock, rows of two clocks could not be told
        # apart.
        if zone_of(log.clock) is not None:
            clocks = f"The times in {log.whole} are those of {log.clock}"
            raise InstallError(
                f"{clocks}, and triggers of eventlog write UTC.",
                hint="Give these tables a log of their own: `eventlog install --log NAME`.",
            )
        require_registry(connection, log)
        try_triggers(connection)
        try_log(connection, log)
        try:
            plan_classes = partial(plan_wanted_classes, connection, tables, _request(options), log, schema)
            wanted = _lock_as_planned(connection, plan_classes, notes.append, leave)
            # All of it is known before the first of it runs, for not every database takes back what
            # ran before a refusal.
            for statement_text in list(write_needed(connection, wanted, log)):
                _make(connection, statement_text)
            for statement_text in list(write_versions(connection, log, *_definitions(dialect, wanted), since)):
                run_verbatim(connection, statement_text)
            _notify_publisher(connection, engine, log)
        finally:
            for query in ("restore_session", "release_table"):
                run_verbatim(connection, statement(dialect, query))
        capture, states = read_capture(connection, log), []
        for planned in wanted:
            triggers, tracked = render(planned.plan, dialect, log), capture.classes[planned.owner]
            # Somebody may have made one since it was looked for.
            refuse_taken(connection, log, triggers)
            states += compare(triggers, capture.of(planned.owner), tracked)
        follows = any(planned.plan.options.follow_ddl for planned in wanted)
        if {planned.owner for planned in wanted} == {*capture.classes} and not follows:
            _note_current(connection, engine, log, states, capture.triggers)
    for text in notes:
        note(text)
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
    """Write the statements `track` would run now, as a script."""
    with engine.connect() as connection:
        log, dialect = locate_log(connection, names), dialect_of(connection)
        require_registry(connection, log)
        wanted = plan_wanted_classes(connection, tables, _request(options), log, schema, note, leave)
        texts = [*write_needed(connection, wanted, log)]
        texts += write_versions(connection, log, *_definitions(dialect, wanted), is_script=True)
        return script(texts, dialect)


def untrack(
    engine: Engine,
    tables: Sequence[str],
    names: LogNames | None = None,
    schema: str | None = None,
    *,
    agree: Callable[[list[str]], bool] = lambda _names: True,
) -> list[str]:
    """Takes the triggers of these classes off, and returns their names; InstallError where a class
    has none.

    `agree` gets the names before anything is done, and nothing is done without its consent.
    """
    with engine.connect() as connection:
        log = locate_log(connection, names)
        leaving, _ = _find_leaving(connection, log, tables, schema)
        triggers = [trigger.name for trigger in leaving.triggers]
    if not agree(triggers):
        return triggers
    with ddl_transaction(engine) as connection:
        # Looked up again: somebody may have taken long to agree.
        leaving, others = _find_leaving(connection, log, tables, schema)
        dialect = dialect_of(connection)
        # The event trigger is one for the whole log, and goes with the last class that wants it.
        follows = any(tracked.options.follow_ddl for tracked in others)
        drops = [] if follows else drop_follower(connection, log)
        for text in [*drops, *drop_triggers(dialect, log, leaving)]:
            run_verbatim(connection, text)
        # Last: a trigger that stands is always one that the registry names.
        for known in leaving.classes.values():
            writer = RegistryWriter(dialect=dialect, names=log, schema=known.schema, table=known.table, known=known)
            for text in writer.remove_class():
                _make(connection, text)
        _notify_publisher(connection, engine, log)
        return [trigger.name for trigger in leaving.triggers]


def _lock_as_planned(
    connection: Connection,
    plan_classes: Callable[[Note, Note | None], list[WantedClass]],
    note: Note,
    leave: Note | None,
) -> list[WantedClass]:
    """Plan the classes as they are, and keep them so while the transaction lasts, where the database can
    lock definitions.
    """
    # Planned from a catalog that somebody alters a moment later, a trigger would name a column that
    # is gone, and fail each writer: it would take the place of what an event trigger has just made
    # of it. So each table is locked, and looked at again, until no look brings a table that is not
    # locked.
    dialect = dialect_of(connection)
    locked: set[str] = set()
    while True:
        # Each round says the same again, so only the last one is heard.
        notes: list[str] = []
        left_out: list[str] = []
        wanted = plan_classes(notes.append, None if leave is None else left_out.append)
        # A view that is replaced by another one keeps its columns.
        new = set[str]()
        for plan in (planned.plan for planned in wanted if not planned.plan.table.view):
            names = (plan.table.name, *(part.child.name for part in plan.children))
            new |= {dialect.qualify(plan.table.schema, name) for name in names} - locked
        if not (new and offers(dialect, "keep_shape")):
            break
        for target in sorted(new):
            try:
                with connection.begin_nested():
                    run_verbatim(connection, statement(dialect, "keep_shape", target=target))
            except DBAPIError as error:
                # Who may make triggers on a table, and not read it, makes them without the lock.
                if not is_denied(dialect, error.orig):
                    raise
        locked |= new
    for hear, texts in ((note, notes), (leave or note, left_out)):
        for text in texts:
            hear(text)
    return wanted


def _find_leaving(
    connection: Connection, log: LogNames, tables: Sequence[str], schema: str | None
) -> tuple[RegistryState, list[TrackedClass]]:
    """Find the tracked classes that names or patterns mean, each in its case, else in any, and the
    others; raise InstallError if there is none.
    """
    classes, capture = Classes(connection, schema), read_capture(connection, log)
    class_of_table = {}
    for trigger in capture.triggers:
        class_of_table[write_name(trigger.schema, trigger.table).casefold()] = trigger.owner.whole
    owners: dict[str, None] = {}
    for name in tables:
        first, last = read_name(name)
        home = classes.schema(first or classes.default)
        # A table that is gone is taken by its word, so that strays can be taken off.
        exact = write_name(home.name, home.find(last) or last)
        meant = exact.casefold()
        matching = [exact] if exact in capture.classes else []
        matching = matching or [owner for owner in capture.classes if owner.casefold() == meant]
        if not matching and is_pattern(last):
            matching = [owner for owner in capture.classes if fnmatchcase(owner.casefold(), meant)]
        if not matching and meant in class_of_table:
            parent = class_of_table[meant]
            message = f"{name} is not tracked by itself, but as a part of {parent}."
            raise InstallError(message, hint=f"`eventlog untrack {parent}` removes the triggers of both.")
        if not matching:
            message = f"{name} is not tracked for {log.table}."
            raise InstallError(message, hint="`eventlog triggers` lists what is.")
        owners |= dict.fromkeys(matching)
    return capture.part(owners), [tracked for owner, tracked in capture.classes.items() if owner not in owners]


def _request(options: TriggerOptions | TrackRequest | None) -> TrackRequest:
    if isinstance(options, TriggerOptions):
        # All that is wanted, whatever there was before.
        return TrackRequest(**{name: getattr(options, name) for name in OPTIONS}, reset=True)
    return options or TrackRequest()


def trigger_states(engine: Engine, names: LogNames | None = None) -> list[TriggerState]:
    with engine.connect() as connection:
        return states(connection, locate_log(connection, names))


def all_drops(connection: Connection, names: LogNames) -> list[str]:
    """Write the statements dropping every trigger of a log."""
    log = with_schema(connection, names)
    # The event trigger first, which would follow what is dropped.
    return [*drop_follower(connection, log), *drop_triggers(dialect_of(connection), log, read_capture(connection, log))]


def script(statements: Sequence[str], dialect: Dialect) -> str:
    """Join statements, each ended for the database's own shell."""
    if not statements:
        return ""
    head = dialect.ddl.script_head + dialect.ddl.script_start
    return head + "".join(f"{text}{dialect.ddl.script_end}\n\n" for text in statements)


def _definitions(dialect: Dialect, wanted: Sequence[WantedClass]) -> tuple[list[Table], dict[str, str], Images]:
    """Find the shapes of tracked classes, their former names, and their images' columns.

    Rows written by the triggers from now on are read by these.
    """
    tables = [
        keep_captured_columns(planned.plan.table, planned.plan.options, planned.plan.remembered) for planned in wanted
    ]
    former = {planned.owner: planned.former for planned in wanted if planned.former is not None}
    images = {
        planned.owner: (planned.plan.number, image_columns(dialect, planned.plan))
        for planned in wanted
        if planned.plan.options.style == Style.IMAGE
    }
    return tables, former, images


def _notify_publisher(connection: Connection, engine: Engine, names: LogNames) -> None:
    """Tell a publisher to look at the tables again; an installer who may not write marks restarts
    it.
    """
    log = Log(engine, names)
    try:
        with connection.begin_nested():
            for name in STAMPS:
                stamp = {"name": name, "value": secrets.token_hex(8)}
                connection.execute(log.query("mark_write"), stamp)
    except SQLAlchemyError as error:
        if not is_denied(dialect_of(connection), error):
            # On a full disk SQLite has undone the whole transaction, and then knows no savepoint.
            first: BaseException = error
            while first.__context__ is not None:
                first = first.__context__
            raise InstallError(f"Nothing was tracked: {words_of(first)}.", hint=hint_of(engine, first)) from error


def _note_current(
    connection: Connection, engine: Engine, names: LogNames, states: Sequence[TriggerState], ours: Sequence[Installed]
) -> None:
    """Note for the publisher that the log's triggers are current: these, and no others. It looks itself where this
    role may not write marks, or something else follows DDL.
    """
    are_current = all(state.state is TriggerCondition.CURRENT for state in states)
    if not are_current or similar_triggers(connection, names, ours):
        return
    counts = {state.value: 0 for state in TriggerCondition} | {TriggerCondition.CURRENT.value: len(states)}
    with suppress(SQLAlchemyError), connection.begin_nested():
        note_current(connection, Log(engine, names), names, read_stamp(connection, names), counts)


def _make(connection: Connection, sql: str) -> None:
    try:
        run_verbatim(connection, sql)
    except DBAPIError as error:
        dialect = dialect_of(connection)
        why = explain_refusal(dialect, sql, error.orig)
        if why is None and is_denied(dialect, error.orig) and _is_owners.match(sql):
            message = "Only the log's owner says what is tracked: the registry belongs to another role."
            hint = "Run this as the role that ran `eventlog install`, or let it run what `--sql` prints."
            why = InstallError(message, hint=hint)
        if why is None:
            raise
        raise why from None
