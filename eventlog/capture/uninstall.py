"""What goes with a log when it is uninstalled, and what waits in it."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection

from eventlog.capture.follower import name_follower, read_follower
from eventlog.capture.given_rights import list_kept_grants
from eventlog.capture.statements import name_left_functions
from eventlog.core.errors import InstallError
from eventlog.core.plural import count_words
from eventlog.sql.access import answers
from eventlog.sql.dialect import dialect_of, log_holes
from eventlog.sql.findlog import has_log, present_companions, with_schema
from eventlog.sql.names import LogNames
from eventlog.tracked.classes import read_capture

MOST_SHOWN_ROWS = 20
"""Rows of the list of triggers, and of that of functions."""


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
        rows = f"{count_words(self.rows, 'row')} of the log, of which {self.waiting:,} wait"
        if self.adopted:
            rows = f"nothing of the log itself, which was adopted: {rows}"
        lines.append(rows)
        for what, names in (("trigger", self.triggers), ("function", self.functions)):
            lines += [f"{what} {name}" for name in names[:MOST_SHOWN_ROWS]]
            if len(names) > MOST_SHOWN_ROWS:
                lines.append(count_words(len(names) - MOST_SHOWN_ROWS, f"more {what}"))
        return [*lines, *(f"what was given by {grant}" for grant in self.grants)]


def what_goes(connection: Connection, names: LogNames, *, adopted: bool) -> Leaving:
    """List the existing parts of a log."""
    dialect = dialect_of(connection)
    log = with_schema(connection, names)
    capture = read_capture(connection, log)
    triggers = [f"{trigger.name} on {trigger.table}" for trigger in capture.triggers]
    if read_follower(connection, log):
        triggers.insert(0, f"{name_follower(dialect, log)} on ALTER TABLE")
    tables = present_companions(connection, names)
    if not adopted:
        tables.append(names.table)
    rows = waiting = 0
    if has_log(connection, names):
        rows = _count(connection, names, "count_rows")
        waiting = _count(connection, names, "count_waiting")
    return Leaving(
        triggers=tuple(triggers),
        functions=tuple(name_left_functions(dialect, log, capture)),
        tables=tuple(dialect.qualify(log.schema, table) for table in tables),
        grants=tuple(list_kept_grants(connection, names)),
        rows=rows,
        waiting=waiting,
        adopted=adopted,
    )


def refuse_waiting(connection: Connection, names: LogNames, *, off: bool = False) -> None:
    """Raise InstallError while rows wait; `off`: the triggers are gone in any case."""
    waiting = 0
    if has_log(connection, names):  # else it went when an uninstall was broken off
        waiting = _count(connection, names, "count_waiting")
    if waiting:
        rows = f"{count_words(waiting, 'row')} of {names.table}"
        message = f"{rows} still wait{'s' * (waiting == 1)} to be published."
        if off:
            message += " The triggers are off already, so no more come."
        raise InstallError(message, hint="Publish them, or use --purge to lose them.")


def _count(connection: Connection, names: LogNames, query: str) -> int:
    [(count,)] = answers(connection, query, **log_holes(dialect_of(connection), names))
    return int(count)
