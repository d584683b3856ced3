"""Points about what is captured, and who captures.

Triggers, each as it would be made today, and the command that mends it; whole rows and
transactions, where an output has them.

Owners: whose code could run with whose rights, because a database lets the owner of a table bring
some. Loopback: whether the publisher's own user changes captured tables, which is not published.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace
from sqlalchemy import Connection, Engine

from eventlog.capture.installed import TriggerCondition, TriggerState, states
from eventlog.capture.rights import list_held_rights
from eventlog.check.point import Point, PointLevel, findings, ok, points, warning
from eventlog.config.settings import Config
from eventlog.core.errors import EX_CONFIG, SourceError
from eventlog.core.plural import count_words
from eventlog.sources.marks import NOT_FOLLOWED, Marks, value_of
from eventlog.sql.access import answers, fetch, transaction, verbatim
from eventlog.sql.connect import read_url
from eventlog.sql.dialect import Dialect, dialect_of, offers, statement
from eventlog.sql.findlog import locate_log, with_schema
from eventlog.sql.history import latest, read_history
from eventlog.sql.log import Log
from eventlog.sql.loose_keys import find_loose_key
from eventlog.sql.names import LogNames
from eventlog.tracked.classes import list_tracked, list_tracked_tables
from eventlog.tracked.options import TriggerOptions, words
from eventlog.tracked.registry import read_log_owner, read_registry, read_relation

LOSES = {TriggerCondition.MISSING, TriggerCondition.DISABLED}
"""States in which changes go by unseen.

A trigger that fails the writers of its table is no better.
"""


def trigger_points(engine: Engine, names: LogNames) -> Iterator[Point]:
    """Yield a line for each outdated trigger, or one with the number of current ones."""
    with engine.connect() as connection:
        log = locate_log(connection, names)
        asked = {owner: tracked.options for owner, tracked in read_registry(connection, log).items()}
        triggers = states(connection, log)
    if not triggers:
        message = f"No trigger of eventlog that the connected user can see writes to {names.table}."
        yield warning("triggers", message, "If nobody else fills it, `eventlog track TABLE` makes some.")
    others = [trigger for trigger in triggers if trigger.state is not TriggerCondition.CURRENT]
    kept = {trigger.owner for trigger in triggers if trigger.state is not TriggerCondition.STRAY}
    for trigger in others:
        message = f"The trigger {trigger.name} on {trigger.table} is {trigger.state}"
        if trigger.note:
            message += f": {trigger.note}"
        if trigger.entered:
            mend = f"Run `{write_remedy(trigger, asked[trigger.owner], is_kept=trigger.owner in kept)}`."
        else:
            mend = "Drop it if nobody needs it: eventlog touches only what its registry names."
        point = warning("triggers", f"{message}.", mend)
        if trigger.state in LOSES or trigger.fails:
            point = replace(point, level=PointLevel.FAILURE, exit_code=EX_CONFIG)
        yield point
    yield from _report_unconfirmed(engine, log)
    for owner, why in not_followed(Log(engine, log)).items():
        message = f"The publisher could not track {owner} again: {why}"
        mend = "Run `eventlog track` as somebody who may; `eventlog rights --installer` gives the rights."
        yield warning("triggers", message, mend)
    if triggers and not others:
        yield ok(
            "triggers", f"{count_words(len(triggers), 'trigger')} on {count_words(len(asked), 'table')}, all current"
        )


def _report_unconfirmed(engine: Engine, log: LogNames) -> Iterator[Point]:
    """Report tables with another number than when tracked, as in a restored database."""
    with engine.connect() as connection:
        for table, known in list_tracked_tables(connection, log):
            if known.relation is None or read_relation(connection, table.schema, table.name) == known.relation:
                continue
            message = f"{table.whole} is another table by its number than the one that was tracked"
            mend = f"After a restore, or when it was made again, run `eventlog track {table.whole}`."
            if table.unconfirmed:
                point = warning("triggers", f"{message}: nothing of it is read back.", mend)
                yield replace(point, level=PointLevel.FAILURE, exit_code=EX_CONFIG)
            else:
                yield warning("triggers", f"{message}; its triggers confirm it.", mend)


def gap_points(engine: Engine, names: LogNames) -> Iterator[Point]:
    """Warn of each table whose triggers followed its last change late: changes of new columns may
    be missing.
    """
    with engine.connect() as connection:
        known = latest(read_history(connection, with_schema(connection, names)))
    for version in known.values():
        described = version.details
        if described.unlogged_from is None or version.first is None:
            continue
        if described.unlogged_from < version.first:
            columns = ", ".join(version.changed.get("added", ()))
            rows = f"rows {described.unlogged_from} and {version.first} of the log"
            message = (
                f"Triggers of {version.table} followed a change of the table later: between {rows},"
                f" changes of {columns} may not have been logged."
            )
            mend = f"`eventlog refresh {version.table}` publishes its rows again."
            if described.table is not None and described.table.whole_row:
                # A full load reads rows back by their keys.
                mend = "Make its mirrors again."
            yield warning("triggers", message, mend)


def not_followed(log: Log) -> dict[str, str]:
    """Map tables the publisher could not follow to the cause; empty if the log has no marks."""
    try:
        with log.transaction() as connection:
            noted = Marks(log).get(connection, NOT_FOLLOWED)
    except SourceError:
        return {}
    return value_of(noted, dict[str, str]) or {}


def write_remedy(trigger: TriggerState, options: TriggerOptions, *, is_kept: bool = False) -> str:
    """Write the command to make a class's triggers current, with their options.

    It also takes off a stray one of a class that is kept, for it has other triggers.
    """
    if trigger.state is TriggerCondition.STRAY and not is_kept:
        return shlex.join(["eventlog", "untrack", trigger.owner])
    # All options are named, so that a DBA sees what is asked for.
    return f"{shlex.join(['eventlog', 'track', trigger.owner])} {words(options)} --reset"


def transaction_points(dialect: Dialect, names: LogNames, config: Config) -> Iterator[Point]:
    """Report the transactions the log can tell, if an output asks for them."""
    if all(output.format == "xds" for output in config.output):
        return
    if names.transaction is not None:
        yield ok("transaction ids", f"each row says in {names.transaction} which transaction wrote it")
    elif dialect.transaction_guess is not None:
        yield ok("transaction ids", f"the log has no column for transactions; {dialect.transaction_guess}")
    else:
        message = "this database does not say which transaction wrote a row: transaction ids stay empty"
        yield ok("transaction ids", message)


def image_points(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    """Warn of each table whose style cannot give images, if change tables or messages need them."""
    # What SCIM tells of a row that is gone is its id, which the log keeps.
    formats = sorted({output.format for output in config.output} - {"xds", "scim"})
    if not formats:
        return
    with engine.connect() as connection:
        classes = list_tracked(connection, with_schema(connection, names))
    for table in classes:
        if not table.images:
            message = f"{' and '.join(formats)} of {table.whole} lack rows before a change, and the row of a delete."
            mend = f"`eventlog track {table.whole} --events image` logs whole rows."
            yield warning("images", message, mend)
    if classes and all(table.images for table in classes):
        yield ok("images", f"the triggers of {count_words(len(classes), 'table')} log whole rows")


def key_points(engine: Engine, names: LogNames) -> Iterator[Point]:
    """Report keys with several spellings for one row of a table: the log would have two objects.

    Our triggers write a key as the table has it; other writers of rows have to do so too.
    """
    with engine.connect() as connection:
        for table in list_tracked(connection, with_schema(connection, names)):
            types = {column.name.casefold(): column.type for column in table.columns}
            loose = find_loose_key(connection, table.name, table.schema, table.key, types)
            if loose is not None:
                column, collation = loose
                message = f"{table.whole}.{column} takes different texts for one row ({collation})"
                yield ok("keys", f"{message}: an object is called as its row is; a delete must spell it so")


def owner_points(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    """Report the remaining trust in owners of captured tables and of the log."""
    with engine.connect() as connection:
        log = with_schema(connection, names)
    reader = config.source.reader
    known = {
        "log": dialect_of(engine).qualify(log.schema, log.table),
        "reader": (read_url(reader).username or "") if reader else "",
    }
    nothing = "no owner of a captured table could have code run with more rights than theirs"
    yield from findings(engine, "owners", "owner_states", nothing, known, log)
    yield from points("owners", lambda: _member_points(engine, log, known["reader"]))


def _member_points(engine: Engine, log: LogNames, reader: str) -> Iterator[Point]:
    """Warn of each part in a powerful role: `rights` once made installers members of such."""
    with engine.connect() as connection:
        installer, _ = read_log_owner(connection, log)
        parts = (("installer", installer), ("publisher", engine.url.username), ("reader", reader))
        # One role may be several parts: it is asked for once, and named by all of them.
        for role in dict.fromkeys(role for _, role in parts if role):
            if is_superuser(connection, role):
                continue  # who gets nothing more by a membership
            powers = answers(connection, "role_powers", {"role": role})
            given = [power for power in powers if power.role not in {role, *WATCHING}]
            if given:
                called = " and ".join(part for part, other in parts if other == role)
                worst, through = given[0], ""
                if worst.through != worst.role:
                    through = f", by {worst.through}"
                message = f"The {called} {role} is a member of {worst.role}{through}, which {worst.power}."
                quoted = dialect_of(engine).quote
                revoke = f"REVOKE {quoted(worst.through)} FROM {quoted(role)};"
                yield warning("owners", message, f"Let a plain role own the captured tables, and run: {revoke}")


def is_superuser(connection: Connection, role: str | None) -> bool:
    """Return True if a role may do everything by itself, where a database tells."""
    powers = answers(connection, "role_powers", {"role": role})
    return any(power.role == role and power.power == "is a superuser" for power in powers)


WATCHING: Final = frozenset({"pg_monitor", "pg_read_all_settings", "pg_read_all_stats", "pg_stat_scan_tables"})
"""Roles of PostgreSQL's that only look at the server: a publisher may have them to see whom it
waits for.
"""


def unseen_points(engine: Engine, names: LogNames) -> Iterator[Point]:
    """Report changes that fired no trigger, as far as the catalog shows them."""
    fine = "no captured table was truncated since its last statistics, and no partition of one changed within 30 days"
    yield from findings(engine, "unseen", "unseen_states", f"{fine}; dropped partitions are not seen here", None, names)


WRITES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "INSERT ANY TABLE", "UPDATE ANY TABLE", "DELETE ANY TABLE"})
MOST_SHOWN_TABLES: Final = 5


def loopback_points(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    """Report tables the publisher's own user may write to.

    A trial of everything with one user sees no document otherwise.
    """
    user = config.source.user or engine.url.username
    # An embedded database knows no users.
    if dialect_of(engine).embedded or not user:
        return
    if config.publisher.allow_loopback:
        yield ok("loopback", f"changes that {user} makes are published too")
        return
    tables = _list_writable_tables(engine, names, config.source.user)
    if not tables:
        yield ok("loopback", f"{user} may not change captured tables")
        return
    listed = ", ".join(tables[:MOST_SHOWN_TABLES])
    if len(tables) > MOST_SHOWN_TABLES:
        listed += f" and {len(tables) - MOST_SHOWN_TABLES} more"
    message = f"{user} may change {listed}; what the publisher's own user changes is not published."
    mend = (
        "Give the publisher a user of its own (`eventlog rights --publisher`);"
        " to try with one user, set publisher.allow_loopback = true."
    )
    yield warning("loopback", message, mend)


def _list_writable_tables(engine: Engine, names: LogNames, user: str | None) -> list[str]:
    """List the captured tables a user may write to."""
    dialect = dialect_of(engine)
    written = []
    with transaction(engine, "The captured tables") as connection:
        role = user or engine.url.username
        if user is None and offers(dialect, "connected_account"):
            # Rights belong to the account that the server took the login for, with its host.
            role = str(fetch(connection, verbatim(statement(dialect, "connected_account")))[0][0])
        for table in list_tracked(connection, with_schema(connection, names)):
            if table.view:
                continue
            in_schema = replace(names, schema=table.schema)
            rights = list_held_rights(connection, in_schema, table.name, dialect.report_name(role or ""))
            if WRITES.intersection(rights):
                written.append(table.whole)
    return written
