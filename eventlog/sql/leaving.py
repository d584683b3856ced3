"""What `eventlog uninstall` takes off: triggers, functions that their tables left behind, rights, tables. It is shown before."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection, inspect

from eventlog.core.plural import counted
from eventlog.sql.access import answers
from eventlog.sql.dialect import dialect_of
from eventlog.sql.findlog import has_log
from eventlog.sql.given import given
from eventlog.sql.names import LogNames
from eventlog.sql.queries import log_holes, statement
from eventlog.sql.triggers.ddl import ddl_trigger_name, standing_ddl
from eventlog.sql.triggers.installed import installed
from eventlog.sql.triggers.track import with_schema

MOST_SHOWN_ROWS = 20
"""Rows of the list of triggers, and of that of functions."""


class Leaving(Struct, frozen=True, kw_only=True):
    """What goes, by name; `grants` are the statements that gave the rights. An adopted log stays and keeps its rows."""

    triggers: tuple[str, ...]
    functions: tuple[str, ...]
    tables: tuple[str, ...]
    grants: tuple[str, ...]
    rows: int
    waiting: int
    adopted: bool

    def told(self) -> list[str]:
        """Lines for who decides."""
        lines = [f"table {name}" for name in self.tables]
        rows = f"{counted(self.rows, 'row')} of the log, of which {self.waiting:,} wait"
        lines.append(f"nothing of the log itself, which was adopted: {rows}" if self.adopted else rows)
        for what, names in (("trigger", self.triggers), ("function", self.functions)):
            lines += [f"{what} {name}" for name in names[:MOST_SHOWN_ROWS]]
            lines += [counted(len(names) - MOST_SHOWN_ROWS, f"more {what}")] * (len(names) > MOST_SHOWN_ROWS)
        return [*lines, *(f"what was given by {grant}" for grant in self.grants)]


def what_goes(connection: Connection, names: LogNames, *, adopted: bool) -> Leaving:
    """What is there of a log, as the database tells it now."""
    # A log at migration 0001 has no history.
    history = (names.history,) if inspect(connection).has_table(names.history, schema=names.schema) else ()
    companions = (names.outcomes, names.marks, *history, names.version)
    dialect = dialect_of(connection)
    standing, log = has_log(connection, names), with_schema(connection, names)
    event_trigger = (f"{ddl_trigger_name(dialect, log)} on ALTER TABLE",) if standing_ddl(connection, log) else ()
    return Leaving(
        triggers=event_trigger + tuple(f"{one.name} on {one.table}" for one in installed(connection, log)),
        functions=tuple(left_functions(connection, names)),
        tables=tuple(
            dialect.qualified(log.schema, table) for table in (*companions, *(() if adopted else (names.table,)))
        ),
        grants=tuple(given(connection, names)),
        rows=_count(connection, names, "count_rows") if standing else 0,
        waiting=_count(connection, names, "count_waiting") if standing else 0,
        adopted=adopted,
    )


def left_functions(connection: Connection, names: LogNames) -> list[str]:
    """Functions of ours that no trigger needs any more, because their tables were dropped."""
    dialect, log = dialect_of(connection), with_schema(connection, names)
    asked = {"schema": log.schema, "log": log.table, "target": dialect.qualified(log.schema, log.table)}
    return [dialect.qualified(schema, name) for schema, name in answers(connection, "left_functions", asked)]


def function_drops(connection: Connection, functions: tuple[str, ...]) -> list[str]:
    """The statements that drop these functions."""
    return [statement(dialect_of(connection), "drop_function", function=function) for function in functions]


def _count(connection: Connection, names: LogNames, query: str) -> int:
    [(count,)] = answers(connection, query, **log_holes(dialect_of(connection), names))
    return int(count)
