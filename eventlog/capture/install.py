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
from sqlalchemy import Connection, Engine, func, select

from eventlog.capture.follower import name_follower, read_follower
from eventlog.capture.given_rights import list_kept_grants, take_back, taking_back
from eventlog.capture.log_tables import UNSAID, Storage, ddl_transaction, refuse_sorted, refuse_storage
from eventlog.capture.statements import name_left_functions
from eventlog.capture.track import all_drops
from eventlog.core.errors import ConfigError, InstallError, UsageError
from eventlog.core.plural import count_words
from eventlog.sql.access import answers, verbatim
from eventlog.sql.connect import read_url
from eventlog.sql.dialect import Dialect, dialect_of, log_holes, offers, statement
from eventlog.sql.findlog import has_log, log_columns, place_log, present_companions, refuse_lost, with_schema
from eventlog.sql.names import NEW_ORDER, NEWEST_MIGRATION, STANDARD, LogNames, no_log, refuse_newer
from eventlog.tracked.classes import read_capture
from eventlog.tracked.registry import MADE, read_setup

MIGRATIONS = "eventlog.capture:migrations"
"""Where Alembic finds the steps from one version of the log to the next."""
SEQUENCE = "log sequence"
"""The note that names the sequence that was made with the log."""
TABLESPACE = "log tablespace"
"""The note that names the tablespace that was asked for, so that an upgrade's tables lie there too.
"""
MOST_SHOWN_ROWS = 20
"""Rows of the list of triggers, and of that of functions."""
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
    refuse_storage(dialect_of(engine), storage)
    _check_sequence(dialect_of(engine), names)
    with ddl_transaction(engine) as connection:
        names = place_log(connection, names)
        _refuse_homeless(connection, names)
        _refuse_taken(connection, names)
        is_new = not has_log(connection, names)
        if is_new:
            refuse_sorted(columns)
        elif _check_revision(connection, names) is None:
            # Tried before anything is made: a log whose columns are not known gets no companions.
            log_columns(connection, names, columns if names.columns == STANDARD else names.columns)
        _Migrations(names=names, order=tuple(order), storage=storage).run(connection, "upgrade", NEWEST_MIGRATION)
        refuse_lost(connection, names)
    return is_new


def _refuse_homeless(connection: Connection, names: LogNames) -> None:
    """Refuse to make a log without a schema for a role that looks for names in none."""
    if names.schema is None and offers(dialect_of(connection), "searched_schemas"):
        message = f"{names.table} has no schema, and the search path of the connected user names none that is there."
        raise InstallError(message, hint=f"Give one, as in --log public.{names.table}.")


def _refuse_taken(connection: Connection, names: LogNames) -> None:
    """Refuse to make the rest of a log of which somebody else made a part: what stands in that would be believed."""
    others = _list_others(connection, names)
    if others and not {*names.beside} <= {*present_companions(connection, names)}:
        place, owner = others[0]
        message = f"The table {place} is there already, and belongs to {owner}: it would decide what is read."
        hint = f"Run this as {owner} if that role makes the log; else drop the table, or use --log with a schema"
        raise InstallError(message, hint=f"{hint} where nobody else creates.")


def is_adopted(engine: Engine, names: LogNames | None = None) -> bool:
    """Return True if somebody else made the log's table, and only the tables beside it are eventlog's."""
    with engine.connect() as connection:
        return MADE not in read_setup(connection, place_log(connection, names or LogNames()))


def find_other_owner(engine: Engine, names: LogNames | None = None) -> str | None:
    """Return who owns state tables of the log, where that is another role than this login and the database has owners
    of tables.
    """
    with engine.connect() as connection:
        others = _list_others(connection, place_log(connection, names or LogNames()))
    return others[0][1] if others else None


def _list_others(connection: Connection, names: LogNames) -> list[tuple[str, str]]:
    """List the state tables that belong to another role than this login, with their owners; none where tables have
    no owners, for there a login may not even see what others have.
    """
    dialect = dialect_of(connection)
    if not offers(dialect, "table_owner"):
        return []
    user = connection.scalar(select(func.current_user()))
    places = [dialect.qualify(names.schema, table) for table in present_companions(connection, names)]
    owners = [(place, owner) for place in places for (owner,) in answers(connection, "table_owner", {"place": place})]
    return [(place, owner) for place, owner in owners if owner != user]


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
    refuse_storage(dialect_of(url), storage)
    _check_sequence(dialect_of(url), names)
    return _Migrations(names=names, order=tuple(order), storage=storage).write(url, NEWEST_MIGRATION)


class MigrationPlan(Struct, frozen=True, kw_only=True):
    """At which migration a log is, and to which it is to go."""

    existing: str
    goal: str


def upgrade(
    engine: Engine,
    names: LogNames | None = None,
    to: str | None = None,
    *,
    agree: Callable[[MigrationPlan], bool] = lambda _plan: True,
) -> bool:
    """Migrate an installed log to the newest migration, or `to` another, perhaps a former one; return
    True if it was.

    `agree` gets the plan before anything is done, and nothing is done without its consent.
    """
    names = names or LogNames()
    with engine.connect() as connection:
        names = place_log(connection, names)
        plan = MigrationPlan(existing=_revision(connection, names), goal=_goal(to))
    if not agree(plan):
        return False
    with ddl_transaction(engine) as connection:
        # Asked again: somebody else may have upgraded while this one made up their mind.
        direction = "downgrade" if plan.goal < _revision(connection, names) else "upgrade"
        _recall_migrations(names, read_setup(connection, names)).run(connection, direction, plan.goal)
    return True


def upgrade_sql(engine: Engine, names: LogNames | None = None, to: str | None = None) -> str:
    """Write the statements `upgrade` would run now; none if the log is there already."""
    names = names or LogNames()
    with engine.connect() as connection:
        placed = place_log(connection, names)
        way = f"{_revision(connection, placed)}:{_goal(to)}"
        marks = read_setup(connection, placed)
    url = engine.url.render_as_string(hide_password=False)
    return _recall_migrations(names, marks).write(url, way, marks=marks)


def _recall_migrations(names: LogNames, marks: dict[str, str]) -> _Migrations:
    return _Migrations(names=names, storage=Storage(tablespace=marks.get(TABLESPACE)))


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


class Leaving(Struct, frozen=True, kw_only=True):
    """What goes, by name; `grants` are the statements that gave the rights.

    An adopted log stays and keeps its rows.
    """

    triggers: tuple[str, ...]
    functions: tuple[str, ...]
    tables: tuple[str, ...]
    grants: tuple[str, ...]
    rows: int
    waiting: int
    adopted: bool

    def lines(self) -> list[str]:
        """Describe the uninstall to the person who decides, a line each."""
        lines = [f"table {name}" for name in self.tables]
        rows = f"{count_words(self.rows, 'row')} of the log, of which {count_words(self.waiting, 'waits', 'wait')}"
        if self.adopted:
            rows = f"nothing of the log itself, which was adopted: {rows}"
        lines.append(rows)
        for what, names in (("trigger", self.triggers), ("function", self.functions)):
            lines += [f"{what} {name}" for name in names[:MOST_SHOWN_ROWS]]
            if len(names) > MOST_SHOWN_ROWS:
                lines.append(count_words(len(names) - MOST_SHOWN_ROWS, f"more {what}"))
        return [*lines, *(f"what was given by {grant}" for grant in sorted(self.grants))]


def list_leaving(connection: Connection, names: LogNames, *, purge: bool) -> Leaving:
    """List the existing parts of a log; refuse while rows wait, unless they are to be thrown away."""
    _revision(connection, names)
    if not purge:
        refuse_waiting(connection, names)
    log, adopted = with_schema(connection, names), MADE not in read_setup(connection, names)
    dialect, capture = dialect_of(connection), read_capture(connection, log)
    triggers = [f"{trigger.name} on {trigger.table}" for trigger in capture.triggers]
    if read_follower(connection, log):
        triggers.insert(0, f"{name_follower(dialect, log)} on ALTER TABLE")
    tables = [*present_companions(connection, names), *([] if adopted else [names.table])]
    return Leaving(
        triggers=tuple(triggers),
        functions=tuple(name_left_functions(dialect, log, capture)),
        tables=tuple(dialect.qualify(log.schema, table) for table in tables),
        grants=tuple(list_kept_grants(connection, names)),
        rows=_count(connection, names, "count_rows"),
        waiting=_count(connection, names, "count_waiting"),
        adopted=adopted,
    )


def refuse_waiting(connection: Connection, names: LogNames, *, off: bool = False) -> None:
    """Raise InstallError while rows wait; `off`: the triggers are gone in any case."""
    if waiting := _count(connection, names, "count_waiting"):
        rows = f"{count_words(waiting, 'row')} of {names.table}"
        message = f"{rows} still wait{'s' * (waiting == 1)} to be published."
        if off:
            message += " The triggers are off already, so no more come."
        raise InstallError(message, hint="Publish them, or use --purge to lose them.")


def _count(connection: Connection, names: LogNames, query: str) -> int:
    """Count rows of the log; none where it went when an uninstall was broken off."""
    if not has_log(connection, names):
        return 0
    [(count,)] = answers(connection, query, **log_holes(dialect_of(connection), names))
    return int(count)


def uninstall(
    engine: Engine,
    names: LogNames | None = None,
    *,
    purge: bool = False,
    agree: Callable[[Leaving], bool] = lambda _leaving: True,
) -> list[str] | None:
    """Takes off triggers, functions, tables and rights; refuses while rows wait, unless they are to
    be thrown away.

    An adopted log stays. `agree` gets what goes before anything does; None without its consent. Returns
    the grants that stay, because whoever uninstalls may not take them back.
    """
    names = names or LogNames()
    with engine.connect() as connection:
        names = place_log(connection, names)
        leaving = list_leaving(connection, names, purge=purge)
    if not agree(leaving):
        return None
    with ddl_transaction(engine) as connection:
        # Between the question and the answer rows may have come.
        leaving = list_leaving(connection, names, purge=purge)
        for text in all_drops(connection, names):
            connection.execute(verbatim(text))
        # The drops waited for writers, whose rows have come meanwhile; now no more come.
        if not purge:
            refuse_waiting(connection, names, off=not dialect_of(connection).ddl.transactional_ddl)
        _Migrations(names=names).run(connection, "downgrade", "base")
        connection.execute(verbatim(_version_drop(dialect_of(connection), names)))
        # Last, for who uninstalls may need them; those on the log's own tables have gone with these
        # on most databases.
        left = take_back(connection, leaving.grants)
        return [grant for grant in left if not _is_own(leaving, grant)]


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
        made = {MADE: names.table} | ({SEQUENCE: names.sequence} if names.sequence else {})
        last, way = [_version_drop(dialect_of(where), names)], f"{NEWEST_MIGRATION}:base"
        return UNSEEN.format(log=names.table) + _Migrations(names=names).write(where, way, marks=made, after=last)
    with where.connect() as connection:
        placed = place_log(connection, names)
        revision = _revision(connection, placed)
        leaving = list_leaving(connection, placed, purge=purge)
        drops = all_drops(connection, placed)
        marks = read_setup(connection, placed)
        last = [_version_drop(dialect_of(connection), names)]
        kept = [grant for grant in leaving.grants if not _is_own(leaving, grant)]
        last += [text for text in map(taking_back, kept) if text]
    way = f"{revision}:base"
    url = where.url.render_as_string(hide_password=False)
    return _Migrations(names=names).write(url, way, marks=marks, before=drops, after=last)


def find_migration(engine: Engine, names: LogNames) -> str | None:
    """Find the log's migration; None without state tables."""
    with engine.connect() as connection:
        return _check_revision(connection, place_log(connection, names))


def _check_sequence(dialect: Dialect, names: LogNames) -> None:
    if names.sequence and dialect.ddl.next_number is None:
        numbers = f"{dialect.name} numbers the rows of a log itself"
        message = f"{numbers}, so source.sequence has no meaning there."
        raise ConfigError(message, hint="Leave it out.")


def _version_drop(dialect: Dialect, names: LogNames) -> str:
    # Alembic keeps its table when nothing is left to keep a version of.
    return f"DROP TABLE {dialect.qualify(names.schema, names.version)}"


def recall_log(names: LogNames) -> dict[str, str]:
    """Read the notes about the log of a migration; offline, the earlier findings."""
    if context.is_offline_mode():
        marks: dict[str, str] = context.config.attributes.get("marks", {})
        return marks
    return read_setup(op.get_bind(), names)


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


class _Migrations(Struct, frozen=True, kw_only=True):
    """Runs the migrations of a log, or writes them as a script."""

    names: LogNames
    order: tuple[str, ...] = NEW_ORDER
    storage: Storage = UNSAID

    def run(self, connection: Connection, direction: str, goal: str) -> None:
        getattr(command, direction)(self._configure(dialect_of(connection), connection=connection), goal)

    def write(self, url: str, way: str, **known: Any) -> str:
        """Write the statements of a way up, or down where it ends at the base; `known` has earlier answers of
        a database.
        """
        dialect = dialect_of(url)
        config = self._configure(dialect, url=read_url(url), **known)
        config.output_buffer = StringIO()
        first, _, last = way.rpartition(":")
        # A single migration as the goal is a way up from nothing: `first` is empty then, and comes
        # first.
        is_down = last == "base" or last < first
        getattr(command, "downgrade" if is_down else "upgrade")(config, way, sql=True)
        written = config.output_buffer.getvalue()
        if offers(dialect, "run_once"):
            run_once = "run_down_once" if is_down else "run_once"
            written = _to_run_again(dialect, self.names, written, (first, last), run_once)
        return dialect.ddl.script_head + written + dialect.ddl.script_commit

    def _configure(self, dialect: Dialect, **settings: Any) -> Config:
        """Make Alembic's settings here, read from no file; silence its log."""
        logging.getLogger("alembic").setLevel(logging.WARNING)
        config = Config()
        config.set_main_option("script_location", MIGRATIONS)
        config.set_main_option("path_separator", "os")
        own = {"names": self.names, "order": self.order, "storage": self.storage}
        config.attributes.update(transactional=dialect.ddl.transactional_ddl, **own, **settings)
        return config


_comments = re.compile(r"(?:\s*--.*\n)*\s*")


def _to_run_again(
    dialect: Dialect,
    names: LogNames,
    script: str,
    versions: tuple[str, str],
    query: str,
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
        text = part[comments.end() if comments else 0 :].rstrip()
        # Alembic records the version after each step; a script that is run again would then begin
        # in the middle.
        if not text or records.match(text):
            continue
        before = part[: len(part.rstrip()) - len(text)].strip()
        # What stands there already, or is gone, is no error.
        if re.match(r"(?:CREATE (?!OR REPLACE)|ALTER TABLE|DROP|INSERT INTO) ?", text):
            text = statement(dialect, query, statement=dialect.literal(text))
        parts.append(f"{before}\n\n{text}".strip())
    first, last = versions
    if last != "base":
        # Last of all, when all else is done.
        record = "version_update" if first else "version_insert"
        versions_written = {"first": dialect.literal(first), "last": dialect.literal(last)}
        parts.append(statement(dialect, record, version=table, **versions_written))
    return "".join(f"{part}\n\n/\n\n" for part in parts)
