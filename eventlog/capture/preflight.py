"""What triggers need, tried before one is touched: a log that takes what they write, a server that
lets them be made.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from eventlog.capture.column_sql import Row, row_holes
from eventlog.capture.plan import TriggerPlan
from eventlog.core.errors import InstallError, UsageError
from eventlog.core.schema import Table
from eventlog.sql.access import answers, hint_of, is_denied, run_verbatim, verbatim
from eventlog.sql.dialect import dialect_of, log_holes, offers, statement
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TriggerOptions

_SHAPE: Final = "Its record_id must number itself and other columns need defaults; or list its ten in source.columns."
_RIGHT: Final = (
    "Track as the login that installed the log, or run `eventlog rights --installer ROLE` as somebody who may."
)


def try_triggers(connection: Connection) -> None:
    """Raise InstallError if the server refuses triggers whatever the rights on tables."""
    for _, problem, hint in answers(connection, "making_triggers"):
        raise InstallError(str(problem), hint=str(hint))


def try_log(connection: Connection, names: LogNames) -> None:
    """Write one row and undo it; raise InstallError if it cannot be written or gets no number."""
    dialect = dialect_of(connection)
    holes = log_holes(dialect, names) | row_holes(dialect, names)
    try:
        with connection.begin_nested() as attempt:
            run_verbatim(connection, statement(dialect, "try_log", **holes))
            count = verbatim(statement(dialect, "count_unnumbered", **holes))
            is_numbered = not connection.execute(count).scalar_one()
            # Nothing of the try stays, and a publisher never sees it.
            attempt.rollback()
    except SQLAlchemyError as error:
        problem = str(getattr(error, "orig", error)).partition("\n")[0].rstrip(".")
        hint = _RIGHT if is_denied(dialect, error) else hint_of(connection.engine, error) or _SHAPE
        message = f"The log {names.table} does not take the rows of triggers: {problem}."
        raise InstallError(message, hint=hint) from None
    if not is_numbered:
        hint = f"Let {names.column('record_id')} number itself."
        raise InstallError(f"The log {names.table} gives its rows no number.", hint=hint)


def refuse_unfit(
    connection: Connection, wanted: TriggerPlan, names: LogNames, kept: TriggerOptions | None = None
) -> None:
    """Refuse a plan whose triggers would fail only when somebody writes; `kept` is the registry's
    entry.
    """
    table, dialect, options = wanted.table, dialect_of(connection), wanted.options
    views_hint = "Track the tables that it reads."
    if table.view and not offers(dialect, "instead_of_triggers"):
        raise InstallError(f"{table.name} is a view, and this database has no triggers on views.", hint=views_hint)
    if table.schema and not names.schema and dialect.ddl.qualified_in_triggers:
        message = f"{table.name} is in {table.schema}, where a trigger would look for {names.table} too."
        raise InstallError(message, hint=f"Say where the log is: --log DATABASE.{names.table}.")
    if table.whole_row and not offers(dialect, "whole_row"):
        message = f"{dialect.name} has no triggers of eventlog for tables without a key."
        raise UsageError(message, hint="Give the table a key, or name columns with --key.")
    if table.view:
        asked = {"table": table.name, "schema": table.schema}
        [(count,)] = answers(connection, "instead_of_triggers", asked, **log_holes(dialect, names))
        # An INSTEAD OF trigger takes the place of the write, so ours alone would log changes that
        # nobody makes.
        if not count:
            lacks = f"The view {table.name} has no INSTEAD OF trigger that writes"
            raise InstallError(
                f"{lacks}; ours would suppress every change.",
                hint="Make that trigger first, or track the tables that the view reads.",
            )
    if options.always and not offers(dialect, "always_trigger"):
        message = f"{dialect.name} has no triggers that fire for replicated changes too."
        hint = "Leave out --always, and track the tables on the server where they are written."
        raise UsageError(message, hint=hint)
    if options.always and table.view:
        raise UsageError(f"{table.name} is a view; --always is for tables.", hint=views_hint)
    if options.follow_ddl:
        _check_ddl(connection, wanted)
    _refuse_lossy(connection, wanted)
    # To plan a condition can run what it calls: one that is kept is the log owner's code, and was tried.
    is_kept = kept is not None and kept.when == options.when
    if options.when is not None and not (is_kept and wanted.function_owner is not None):
        _try_condition(connection, table, options.when)


def _refuse_lossy(connection: Connection, wanted: TriggerPlan) -> None:
    """Refuse columns with characters a trigger would lose, if the database has two character sets."""
    table = wanted.table
    columns = {table.name: {column.name for column in wanted.key}}
    columns[table.name] |= {watched.column.name for watched in wanted.watched}
    for child in wanted.children:
        columns[child.child.name] = {watched.column.name for watched in child.watched}
    for name, watched_columns in columns.items():
        lossy = answers(connection, "lossy_columns", {"schema": table.schema, "table": name})
        lost = [str(column) for (column,) in lossy if column in watched_columns]
        if lost:
            has = f"{name} has national characters in {', '.join(lost)}, and the character set of this database is not"
            message = f"{has} Unicode: a trigger would log question marks, and miss changes."
            raise InstallError(message, hint=f"Leave them out with --exclude {','.join(lost)}.")


def _check_ddl(connection: Connection, wanted: TriggerPlan) -> None:
    """Refuse a plan an event trigger cannot follow."""
    dialect = dialect_of(connection)
    if not offers(dialect, "follower_function"):
        message = f"{dialect.name} has no triggers on DDL that could follow an ALTER TABLE."
        raise UsageError(message, hint="Leave out --follow-ddl, and set publisher.follow = true.")
    is_conditional = wanted.options.when and wanted.children
    if wanted.table.view or is_conditional:
        why = "is a view" if wanted.table.view else "has a condition (--when) and child tables"
        message = f"{wanted.table.name} {why}; --follow-ddl cannot follow that."
        raise UsageError(message, hint="Leave out --follow-ddl.")


def _try_condition(connection: Connection, table: Table, condition: str) -> None:
    """Run the condition once, with the names a trigger sees."""
    # A mistake in it would fail every writer.
    dialect = dialect_of(connection)
    holes = {
        "target": dialect.qualify(table.schema, table.name),
        "columns": Row(dialect=dialect, alias="n", columns=table.columns).list(table.columns),
        "row": dialect.quote(table.name),
        "condition": f"({condition})",
    }
    try:
        with connection.begin_nested() as attempt:
            for query in ("before_trigger", "settle_names", "try_condition"):
                run_verbatim(connection, statement(dialect, query, **holes))
            attempt.rollback()
    except SQLAlchemyError as error:
        # Further lines show the place in a statement that nobody here has written.
        problem = str(getattr(error, "orig", error)).partition("\n")[0].rstrip(".")
        message = f"The condition {condition!r} cannot be asked of {table.name}: {problem}."
        columns = "Write it with the names of the table's columns, bare or with the table's own name before them."
        raise InstallError(message, hint=hint_of(connection.engine, error) or columns) from None
    finally:
        run_verbatim(connection, statement(dialect, "restore_session"))
