"""Points about the log: its tables and their version, what the connected user may do, its triggers,
its rows and its numbers.

Numbers are the order of an object's changes, unless sessions keep some in hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from eventlog.capture.install import find_migration
from eventlog.care.flow import backlog, unread_tables, waiting_reasons
from eventlog.check.indexes import index_points, newest_points
from eventlog.check.journal import journal_points
from eventlog.check.point import Point, failure, findings, ok, points, warning
from eventlog.check.server import time_points
from eventlog.check.triggers import (
    gap_points,
    image_points,
    is_superuser,
    key_points,
    loopback_points,
    owner_points,
    transaction_points,
    trigger_points,
    unseen_points,
)
from eventlog.config.settings import Config
from eventlog.core.errors import EventlogError, InstallError, SinkError, SourceError
from eventlog.core.model import Status
from eventlog.core.plural import count_words, duration
from eventlog.core.schema import WHOLE_ROW
from eventlog.delivery.output import failing, read_output_states
from eventlog.publisher.flow import read_flow
from eventlog.sources.marks import OUTPUTS, Marks
from eventlog.sql.access import fetch, in_our_words, transaction, verbatim
from eventlog.sql.connect import reading_engine
from eventlog.sql.dialect import Dialect, dialect_of, log_holes, statement
from eventlog.sql.findlog import log_columns, present_companions, with_schema
from eventlog.sql.history import newest_number
from eventlog.sql.log import Log
from eventlog.sql.names import STANDARD, LogNames
from eventlog.tracked.classes import list_tracked
from eventlog.tracked.registry import MADE, read_setup

TABLE = "The table "


MANY_VERSIONS: Final = 10_000
"""From so many versions of rows on that nobody needs it is said who has the server keep them."""
OLD_TRANSACTIONS: Final = 1_000
"""So many transactions ago a snapshot is old."""


def log_points(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    """Yield the points of one log; without the log itself there is nothing more to ask."""
    try:
        with in_our_words(engine, f"The log {names.whole}"):
            log = log_columns(engine, names, config.source.columns)
    except InstallError as error:
        yield failure("log", error)
        return
    except SourceError as error:
        hint = error.hint or gives_rights(engine)
        yield failure("log", SourceError(error.message, hint=hint))
        return
    # Their names are worth a long line only where somebody else chose them.
    names_of_columns = ""
    if set(log.columns) != set(STANDARD):
        names_of_columns = f": {', '.join(log.columns)}"
    yield ok("log", f"{config.source.log} has its ten columns{names_of_columns}")
    tables = list(points("state tables", lambda: [_companions(engine, log)]))
    yield from tables
    if not _is_adopted(engine, log):
        # All that is asked of our tables would only say so in other words.
        yield from points("index", lambda: index_points(engine, log))
        yield from number_points(engine, log, config)
        return
    newest: int | None = None
    with suppress(SourceError), transaction(engine, "The event log") as connection:
        newest = newest_number(connection, log)
    # Without its tables the journal would only say in other words that they are missing.
    if not any(point.exit_code for point in tables):
        yield from points("journal", lambda: journal_points(engine, log, config))
    yield from points("index", lambda: index_points(engine, log))
    yield from points("newest rows", lambda: newest_points(engine, log))
    yield from number_points(engine, log, config)
    yield from snapshot_points(engine, log)
    yield from points("rights", lambda: _rights(engine, log, config))
    yield from owner_points(engine, log, config)
    yield from unseen_points(engine, log)
    yield from points("loopback", lambda: loopback_points(engine, log, config))
    yield from points("triggers", lambda: trigger_points(engine, log))
    yield from points("triggers", lambda: gap_points(engine, log))
    yield from points("keys", lambda: key_points(engine, log))
    future = config.publisher.handle_future_events
    yield from points("images", lambda: image_points(engine, log, config))
    yield from transaction_points(dialect_of(engine), log, config)
    yield from points("times", lambda: time_points(engine, log, newest, future=future))
    yield from points("rows", lambda: _rows(engine, log, config))


def _is_adopted(engine: Engine, log: LogNames) -> bool:
    """Return False if nobody has made the tables beside the log yet."""
    try:
        return find_migration(engine, log) is not None
    except (EventlogError, SQLAlchemyError):
        return True  # which right is missing, the points say


def gives_rights(engine: Engine, *, other: bool = False) -> str:
    """Write the command granting the connected user its missing rights.

    Another login than the publisher's only reads.
    """
    kind = "reader" if other else "publisher"
    role = engine.url.username or "ROLE"
    return f"`eventlog rights --{kind} {role}` gives what a {kind} needs; a superuser or the tables' owner runs it."


def _companions(engine: Engine, names: LogNames) -> Point:
    current = find_migration(engine, names)
    if current is None:
        message = f"The log {names.table} has no migration version."
        hint = f"`eventlog install --log {names.whole}` adopts it, run by a login that may create tables there."
        raise InstallError(message, hint=hint)
    with engine.connect() as connection:
        present = present_companions(connection, names)
    for table in names.beside:
        if table not in present:
            message = f"The table {table} beside the event log {names.whole} is not there, or not for this login."
            raise InstallError(
                message,
                hint=f"{gives_rights(engine)} Else restore it from a backup.",
            )
    return ok("state tables", f"all {len(names.beside)} are there, at migration {current}")


def _rights(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    """Try every kind of statement a publisher runs, on no row."""
    dialect = dialect_of(engine)
    missing: set[str] = set()
    reading = reading_engine(engine, config.source.reader)
    if reading is not engine:
        try:
            # To begin it shows whether that login gets in at all.
            with transaction(reading, "The database as the reader sees it (source.reader)"):
                pass
        except SourceError as error:  # reported once, and not for each table
            missing.add(TABLE)
            yield failure("rights", error)
    for what, sql in _attempts(engine, dialect, names, config):
        reader = reading if what.startswith(TABLE) else engine
        if reader is reading and TABLE in missing:
            continue
        try:
            with transaction(reader, what) as connection:
                connection.execute(verbatim(sql))
        except SourceError as error:
            if error.message not in missing:  # a database names the table, and not always the right
                missing.add(error.message)
                hint = error.hint or gives_rights(reader, other=reader is not engine)
                yield failure("rights", InstallError(error.message, hint=hint))
    for table, note in _unread(engine, names).items():
        missing.add(table)
        yield warning("rights", f"Rows of {table} wait: {note}", "The table is tried again now and then.")
    if not missing:
        yield ok("rights", "the connected user may do all that a publisher does")


def _unread(engine: Engine, names: LogNames) -> dict[str, str]:
    """Map tables a publisher could not read to the messages; empty if the journal is unreadable."""
    log = Log(engine, names)
    try:
        with log.moment() as connection:
            return unread_tables(connection, log)
    except SourceError:
        return {}


def _attempts(
    engine: Engine,
    dialect: Dialect,
    names: LogNames,
    config: Config,
) -> Iterator[tuple[str, str]]:
    """Yield each attempt with its statement."""
    log_queries = ["attempt_read", "attempt_mark"]
    if config.publisher.delete_from_log:
        # A publisher that marks rows needs no right to delete them.
        log_queries.append("attempt_delete")
    own = {
        "The event log": log_queries,
        f"The state table {names.outcomes}": ["attempt_outcome"],
        f"The state table {names.marks}": ["attempt_mark_write"],
        f"The state table {names.seen}": ["attempt_seen"],
        "The registry": ["attempt_registry"],
    }
    holes = log_holes(dialect, names)
    for what, queries in own.items():
        for query in queries:
            # Drivers take one statement each time.
            for part in statement(dialect, query, **holes).split(";\n"):
                yield what, part
    try:
        with engine.connect() as connection:
            if not config.source.reader and is_superuser(connection, engine.url.username):
                return  # who may read all, and would run what owners have put into their tables
            # The tables that have our triggers are the ones that read-backs ask.
            classes = list_tracked(connection, with_schema(connection, names))
    except SQLAlchemyError:
        return  # the registry cannot be read, which was said before
    for table in classes:
        tables = {table.name: table.columns} | {child.name: child.columns for child in table.children}
        for name, columns in tables.items():
            target = dialect.qualify(table.schema, name)
            read = ", ".join(dialect.quote(column.name) for column in columns if column.name != WHOLE_ROW)
            yield f"{TABLE}{target}", statement(dialect, "attempt_table", target=target, columns=read)


def _rows(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    log = Log(engine, names)
    rows = backlog(log)
    with log.moment() as connection:
        outputs = read_output_states(Marks(log).get(connection, OUTPUTS))
        flow = read_flow(connection, log, config.publisher, failing=failing(outputs))
    waiting = count_words(flow.parts.total, "row waits", "rows wait")
    age = duration(flow.lag or 0.0)
    if flow.state == "stuck":
        message = f"{waiting}; row {flow.oldest} has waited for {age}."
        yield warning("rows", message, "See that `eventlog run` runs; `eventlog status` says what is stuck.")
    elif flow.state == "retrying":
        message = f"{waiting} because a receiver did not take a row; row {flow.oldest} has waited for {age}."
        yield warning("rows", message, "`eventlog status` shows the receiver's answer; the rows are offered again.")
    elif flow.oldest is None:
        yield ok("rows", waiting)
    else:
        yield ok("rows", f"{waiting}, the oldest that nobody holds for {age}")
    for sentence in waiting_reasons(flow):
        yield ok("rows", sentence.removesuffix("."))
    for name, lag in flow.lags.items():
        resume = f"`eventlog outputs resume {name!r}` continues it, `eventlog outputs forget {name!r}` gives it up."
        if lag.overdue:
            far = f"or {count_words(lag.rows)} behind: more than publisher.max_paused_seconds or max_paused_rows say."
            message = f"{name} is paused {(lag.pause or '').rstrip('.')}, for too long, {far}"
            yield failure("outputs", SinkError(message, hint=resume))
        elif lag.paused:
            yield warning("outputs", f"{name} is paused {(lag.pause or '').rstrip('.')}.", resume)
    for status, number in rows.other.items():
        mend = "Set their status to N to have them published."
        yield warning(
            "rows", f"{count_words(number, 'row')} with the status {status!r}, which no publisher reads.", mend
        )
    bad = rows.by_status[Status.ERROR] + rows.by_status[Status.FATAL]
    if bad:
        mend = "`eventlog log --status E` lists them, `eventlog requeue` offers them again."
        yield warning("rows", f"{count_words(bad, 'row ended as an error', 'rows ended as errors')}.", mend)


def snapshot_points(engine: Engine, names: LogNames) -> Iterator[Point]:
    """Name the holders of old snapshots, for whom the server keeps former rows."""
    log = dialect_of(engine).qualify(names.schema, names.table)
    known = {"log": log, "dead": MANY_VERSIONS, "transactions": OLD_TRANSACTIONS}
    nothing = "nobody has the server keep many old versions of the log's rows"
    yield from findings(engine, "snapshots", "old_snapshots", nothing, known)


def number_points(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    """Check that each row has its own number, and later changes of an object higher ones.

    Where times order the log, the second is not checked.
    """
    yield from points("numbers", lambda: _odd(engine, names))
    if config.publisher.handle_future_events:
        yield ok("numbers", "changes are ordered by their times")
        return
    known = {
        "log": dialect_of(engine).qualify(names.schema, names.table),
        "log_schema": names.schema,
        "log_table": names.table,
        "record_id": names.column("record_id"),
        "log_sequence": config.source.sequence,
    }
    nothing = "nothing is known that would give a later change of an object a lower number"
    yield from findings(engine, "numbers", "numbers", nothing, known)


def _odd(engine: Engine, names: LogNames) -> Iterator[Point]:
    """Yield rows whose number a mark could confuse; of our own logs only waiting rows."""
    dialect = dialect_of(engine)
    holes = log_holes(dialect, names)
    with transaction(engine, "The event log") as connection:
        adopted = MADE not in read_setup(connection, names)
        among = "1 = 1" if adopted else statement(dialect, "only_waiting", **holes)
        (row,) = fetch(connection, verbatim(statement(dialect, "odd_numbers", **holes, among=among)))
    missing, low, doubled = (int(number) for number in row)
    if missing:
        message = f"{count_words(missing, 'row')} without a record_id: the publisher cannot mark them, and stops."
        yield failure("numbers", InstallError(message, hint="Give them numbers, or take them away."))
    if doubled:
        message = (
            f"{count_words(doubled, 'row')} with a record_id that another row has:"
            " while several with one number wait, all end as E, and none is published."
        )
        yield warning("numbers", message, "Number them again, requeue them, and make a unique index on the column.")
    if low:
        message = f"{count_words(low, 'row')} with a record_id that is not positive; such rows come before all others."
        yield warning("numbers", message, "Number them again; the format asks for positive numbers.")
