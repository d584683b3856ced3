"""Puts the log table and its companions into a database, by migration; what it runs it can also
print for a DBA.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

from alembic import command, context, op
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from msgspec import Struct
from sqlalchemy import Connection, Engine, column, select, table

from eventlog.capture.given_rights import has_setup, take_back, taking_back
from eventlog.capture.log_tables import UNSAID, Storage, ddl_transaction, refuse_sorted, storing, writing
from eventlog.capture.track import all_drops
from eventlog.capture.uninstall import Leaving, refuse_waiting, what_goes
from eventlog.core.errors import ConfigError, UsageError
from eventlog.sql.access import verbatim
from eventlog.sql.connect import read_url
from eventlog.sql.dialect import Dialect, dialect_of, offers, statement
from eventlog.sql.findlog import has_log, log_columns
from eventlog.sql.names import NEW_ORDER, NEWEST_MIGRATION, STANDARD, LogNames, no_log, refuse_newer

ADOPTED = "log adopted"
"""The note that says: somebody else made this log, it is not ours to drop."""
MADE = "log made"
"""The note that says: this log is ours, or will be; it stands before the log does."""
MIGRATIONS = "eventlog.capture:migrations"
"""Where Alembic finds the steps from one version of the log to the next."""
SEQUENCE = "log sequence"
"""The note that names the sequence that was made with the log."""
TABLESPACE = "log tablespace"
"""The note that names the tablespace that was asked for, so that an upgrade's tables lie there too.
"""
UNSEEN = """\
-- Without a database to look at. Take the triggers off first: `eventlog triggers` lists them, `eventlog untrack`\
 removes them.
-- If {log} was there before eventlog, leave out the statement that drops it.

"""


def install(
    engine: Engine,
    names: LogNames | None = None,
    order: Sequence[str] = NEW_ORDER,
    columns: str | Sequence[str] = "auto",
    storage: Storage = UNSAID,
) -> bool:
    """Create missing parts of a log; return True if the log itself was created. Repeatable.

    Somebody else's log gets state tables and is not altered. `columns` says how to find the columns
    of an existing log.
    """
    names = names or LogNames()
    writing(dialect_of(engine), storage)
    _check_sequence(dialect_of(engine), names)
    with ddl_transaction(engine) as connection:
        is_new = not has_log(connection, names)
        if is_new:
            refuse_sorted(columns)
        elif _check_revision(connection, names) is None:
            # Tried before anything is made: a log whose columns are not known gets no companions.
            log_columns(connection, names, columns if names.columns == STANDARD else names.columns)
        _run(connection, names, "upgrade", NEWEST_MIGRATION, tuple(order), storage=storage)
    return is_new


def install_sql(
    url: str,
    names: LogNames | None = None,
    order: Sequence[str] = NEW_ORDER,
    columns: str | Sequence[str] = "auto",
    storage: Storage = UNSAID,
) -> str:
    """Write the statements of `install` for the URL's database, without connecting to it."""
    names = names or LogNames()
    refuse_sorted(columns)
    _check_sequence(dialect_of(url), names)
    return _print_statements(url, names, NEWEST_MIGRATION, tuple(order), storage=storage)


class MigrationPlan(Struct, frozen=True, kw_only=True):
    """At which migration a log is, and to which it is to go."""

    existing: str
    goal: str


def upgrade(
    engine: Engine,
    names: LogNames | None = None,
    to: str | None = None,
    *,
    agree: Callable[[MigrationPlan], None] = lambda _plan: None,
) -> None:
    """Migrate an installed log to the newest migration, or `to` another, perhaps a former one.

    `agree` gets the plan before anything is done, and may raise.
    """
    names = names or LogNames()
    with engine.connect() as connection:
        agree(MigrationPlan(existing=_revision(connection, names), goal=_goal(to)))
    with ddl_transaction(engine) as connection:
        # Asked again: somebody else may have upgraded while this one made up their mind.
        revision = _revision(connection, names)
        goal = _goal(to)
        direction = "downgrade" if goal < revision else "upgrade"
        storage = Storage(tablespace=_setup(connection, names).get(TABLESPACE))
        _run(connection, names, direction, goal, storage=storage)


def upgrade_sql(engine: Engine, names: LogNames | None = None, to: str | None = None) -> str:
    """Write the statements `upgrade` would run now; none if the log is there already."""
    names = names or LogNames()
    with engine.connect() as connection:
        way = f"{_revision(connection, names)}:{_goal(to)}"
        marks = _setup(connection, names)
    url = engine.url.render_as_string(hide_password=False)
    return _print_statements(url, names, way, NEW_ORDER, storage=Storage(tablespace=marks.get(TABLESPACE)), marks=marks)


def _goal(to: str | None) -> str:
    """Return the wanted migration; raise UsageError for an unknown one."""
    if to is None:
        return NEWEST_MIGRATION
    # All have the same length, so that they compare as texts.
    known = len(to) == len(NEWEST_MIGRATION) and "0001" <= to <= NEWEST_MIGRATION
    if not (to.isdecimal() and known):
        hint = f"They are called 0001 to {NEWEST_MIGRATION}."
        raise UsageError(f"There is no migration {to}.", hint=hint)
    return to


def uninstall(
    engine: Engine,
    names: LogNames | None = None,
    *,
    purge: bool = False,
    agree: Callable[[Leaving], None] = lambda _leaving: None,
) -> list[str]:
    """Takes off triggers, functions, tables and rights; refuses while rows wait, unless they are to
    be thrown away.

    An adopted log stays. `agree` gets what goes before anything does, and may raise. Returns the
    grants that stay, because whoever uninstalls may not take them back.
    """
    names = names or LogNames()
    with engine.connect() as connection:
        leaving = _leaving(connection, names, purge=purge)
    agree(leaving)
    with ddl_transaction(engine) as connection:
        # Between the question and the answer rows may have come.
        leaving = _leaving(connection, names, purge=purge)
        for text in all_drops(connection, names):
            connection.execute(verbatim(text))
        # The drops waited for writers, whose rows have come meanwhile; now no more come.
        if not purge:
            refuse_waiting(connection, names, off=not dialect_of(connection).ddl.transactional_ddl)
        _run(connection, names, "downgrade", "base")
        connection.execute(verbatim(_version_drop(dialect_of(connection), names)))
        # Last, for who uninstalls may need them; those on the log's own tables have gone with these
        # on most databases.
        left = take_back(connection, leaving.grants)
        return [grant for grant in left if not _is_own(leaving, grant)]


def _leaving(connection: Connection, names: LogNames, *, purge: bool) -> Leaving:
    _revision(connection, names)
    if not purge:
        refuse_waiting(connection, names)
    return what_goes(connection, names, adopted=ADOPTED in _setup(connection, names))


def _is_own(leaving: Leaving, grant: str) -> bool:
    """Return True if a grant was on a dropped table."""
    # Databases show the grant with other blanks than it was written with.
    written = " ".join(grant.split())
    return any(f" ON {table} TO " in written for table in leaving.tables)


def uninstall_sql(
    where: str | Engine,
    names: LogNames | None = None,
    *,
    purge: bool = False,
) -> str:
    """Write the statements `uninstall` would run now; with only a dialect's URL, those for a log as
    requested.

    Only the database knows its triggers, and if somebody else made the log.
    """
    names = names or LogNames()
    if isinstance(where, str):
        _check_sequence(dialect_of(where), names)
        made = {SEQUENCE: names.sequence} if names.sequence else {}
        last, way = [_version_drop(dialect_of(where), names)], f"{NEWEST_MIGRATION}:base"
        script = _print_statements(where, names, way, NEW_ORDER, marks=made, after=last)
        return UNSEEN.format(log=names.table) + script
    with where.connect() as connection:
        revision = _revision(connection, names)
        leaving = _leaving(connection, names, purge=purge)
        drops = all_drops(connection, names)
        marks = _setup(connection, names)
        last = [_version_drop(dialect_of(connection), names)]
        kept = [grant for grant in leaving.grants if not _is_own(leaving, grant)]
        last += [text for text in map(taking_back, kept) if text]
    url = where.url.render_as_string(hide_password=False)
    known: dict[str, Any] = {"marks": marks, "before": drops, "after": last}
    return _print_statements(url, names, f"{revision}:base", NEW_ORDER, **known)


def find_migration(engine: Engine, names: LogNames) -> str | None:
    """Find the log's migration; None without state tables."""
    with engine.connect() as connection:
        return _check_revision(connection, names)


def _check_sequence(dialect: Dialect, names: LogNames) -> None:
    if names.sequence and dialect.ddl.next_number is None:
        numbers = f"{dialect.name} numbers the rows of a log itself"
        message = f"{numbers}, so source.sequence has no meaning there."
        raise ConfigError(message, hint="Leave it out.")


def _version_drop(dialect: Dialect, names: LogNames) -> str:
    # Alembic keeps its table when nothing is left to keep a version of.
    return f"DROP TABLE {dialect.qualify(names.schema, names.version)}"


def _setup(connection: Connection, names: LogNames) -> dict[str, str]:
    """Read the notes of the installation; without a registry a log counts as somebody else's."""
    if not has_setup(connection, names):
        return {ADOPTED: names.table}
    setup = table(names.registry["setup"], column("name"), column("value"), schema=names.schema)
    asked = setup.c.name.in_([ADOPTED, MADE, SEQUENCE, TABLESPACE])
    query = select(setup.c.name, setup.c.value).where(asked)
    return {str(row[0]): str(row[1]) for row in connection.execute(query)}


def recall_log(names: LogNames) -> dict[str, str]:
    """Read the notes about the log of a migration; offline, the earlier findings."""
    if context.is_offline_mode():
        marks: dict[str, str] = context.config.attributes.get("marks", {})
        return marks
    return _setup(op.get_bind(), names)


def _revision(connection: Connection, names: LogNames) -> str:
    revision = _check_revision(connection, names)
    if revision is None:
        raise no_log(names)
    return revision


def _check_revision(connection: Connection, names: LogNames) -> str | None:
    options = {"version_table": names.version, "version_table_schema": names.schema}
    revision = MigrationContext.configure(connection, opts=options).get_current_revision()
    refuse_newer(names, revision)
    return revision


def _run(
    connection: Connection,
    names: LogNames,
    direction: str,
    goal: str,
    order: tuple[str, ...] = NEW_ORDER,
    *,
    storage: Storage = UNSAID,
) -> None:
    dialect = dialect_of(connection)
    settings = {"connection": connection, "transactional": dialect.ddl.transactional_ddl}
    config = _config(names, order, storage=storage, **settings)
    with storing(connection, writing(dialect, storage)):
        getattr(command, direction)(config, goal)


def _print_statements(
    url: str, names: LogNames, goal: str, order: tuple[str, ...], *, storage: Storage = UNSAID, **known: Any
) -> str:
    """Write the statements of a way up, or down where the goal is the base; `known` has earlier answers of
    a database.
    """
    dialect = dialect_of(url)
    write = writing(dialect, storage)
    transactional = dialect.ddl.transactional_ddl
    settings = {"url": read_url(url), "transactional": transactional, "storage": storage}
    config = _config(names, order, **settings, **known)
    config.output_buffer = StringIO()
    first, _, last = goal.rpartition(":")
    # A single migration as the goal is a way up from nothing: `first` is empty then, and comes
    # first.
    if last == "base" or last < first:
        run_once = "run_down_once"
        command.downgrade(config, goal, sql=True)
    else:
        run_once = "run_once"
        command.upgrade(config, goal, sql=True)
    written = config.output_buffer.getvalue()
    if offers(dialect, "run_once"):
        written = _to_run_again(dialect, names, written, (first, last), run_once, write)
    return dialect.ddl.script_head + written + dialect.ddl.script_commit


_comments = re.compile(r"(?:\s*--.*\n)*\s*")


def _to_run_again(
    dialect: Dialect,
    names: LogNames,
    script: str,
    versions: tuple[str, str],
    query: str,
    write: Callable[[str], str],
) -> str:
    """Make a script repeatable after it failed half-way, for a database where each DDL is a transaction of
    its own.
    """
    table = dialect.qualify(names.schema, names.version)
    written = rf"(?:\S+\.)?\"?{re.escape(names.version)}\b"
    records = re.compile(rf"(?:INSERT INTO|UPDATE|DELETE FROM) {written}", re.IGNORECASE)
    parts = []
    for part in re.split(r"\n+/\n+", script):
        comments = _comments.match(part)
        end = 0
        if comments:
            end = comments.end()
        before, text = part[:end].strip(), part[end:].rstrip()
        # Alembic records the version after each step; a script that is run again would then begin
        # in the middle.
        if not text or records.match(text):
            continue
        # What stands there already, or is gone, is no error.
        if re.match(r"(?:CREATE (?!OR REPLACE)|ALTER TABLE|DROP|INSERT INTO) ?", text):
            text = statement(dialect, query, statement=dialect.literal(write(text)))
        parts.append(f"{before}\n\n{text}".strip())
    first, last = versions
    if last != "base":
        # Last of all, when all else is done.
        record = "version_update" if first else "version_insert"
        versions_written = {"first": dialect.literal(first), "last": dialect.literal(last)}
        parts.append(statement(dialect, record, version=table, **versions_written))
    return "".join(f"{part}\n\n/\n\n" for part in parts)


def _config(names: LogNames, order: tuple[str, ...], **settings: Any) -> Config:
    """Make Alembic's settings here, read from no file; silence its log."""
    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    config.set_main_option("path_separator", "os")
    config.attributes.update(names=names, order=order, **settings)
    return config
