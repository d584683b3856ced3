"""The registry: what the log's owner tracks, with which options, and by which triggers.

It is the only place that says so. Comments on triggers, texts of functions and rows that a lesser
role may write say nothing: what they hold is data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, TableClause, inspect
from sqlalchemy.exc import SQLAlchemyError

from eventlog.core.errors import InstallError
from eventlog.core.table_names import write_name
from eventlog.sql.access import answers
from eventlog.sql.dialect import dialect_of, log_holes
from eventlog.sql.findlog import refuse_lost
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TriggerOptions

MADE: Final = "log made"
"""The note that says: this log is ours, or will be; it stands before the log does. One without it is somebody else's."""
BY_KEY: Final = "key"
"""The style in which the follower logs a class that it cannot log as before: rows to be read back by key."""


class EnteredTrigger(Struct, frozen=True, kw_only=True):
    """A trigger of a class: its name, the table it is made on, what it runs where that is apart
    from it, and the hash of the text that was planned.
    """

    name: str
    table: str
    function: str | None = None
    digest: str = ""


class TrackedClass(Struct, frozen=True, kw_only=True):
    """A class as it is tracked: its table, the options that somebody asked for, and its triggers.

    `relation` is the table's number where tables have numbers. `watched` are the attributes that
    its triggers were made for, where columns were left out. `fault` says what is wrong with what
    stands in the registry of it.
    """

    id: int
    schema: str | None
    table: str
    relation: int | None
    options: TriggerOptions
    watched: tuple[str, ...] = ()
    triggers: Mapping[str, EnteredTrigger] = {}
    fault: str | None = None

    @property
    def whole(self) -> str:
        """Write the class's name for people."""
        return write_name(self.schema, self.table)


def read_registry(connection: Connection, names: LogNames) -> dict[str, TrackedClass]:
    """Read every tracked class by name; none if the log has no registry.

    A database error for users who may not read the registry is raised: without it nobody knows what
    is left out.
    """
    holes = log_holes(dialect_of(connection), names)
    # A savepoint is gone with its statement where each is a transaction of its own.
    alone = connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
    try:
        with nullcontext() if alone else connection.begin_nested():
            queries = ("registry_read", "registry_triggers", "registry_columns")
            rows, entered, columns = (answers(connection, query, **holes) for query in queries)
    except SQLAlchemyError:
        if not has_registry(connection, names):
            return {}
        refuse_lost(connection, names)
        raise
    triggers: dict[int, dict[str, EnteredTrigger]] = {}
    for number, name, table, function, digest in entered:
        trigger = EnteredTrigger(name=str(name), table=str(table), function=function, digest=str(digest or ""))
        triggers.setdefault(int(number), {})[trigger.name] = trigger
    renamed: dict[int, list[Any]] = {}
    for number, *column in columns:
        renamed.setdefault(int(number), []).append(column)
    classes = [_decode(row, triggers.get(int(row[0]), {}), renamed.get(int(row[0]), ())) for row in rows]
    return {tracked.whole: tracked for tracked in classes}


def _decode(
    row: tuple[Any, ...], triggers: Mapping[str, EnteredTrigger], columns: Sequence[tuple[Any, Any, Any]]
) -> TrackedClass:
    """Decode a class; `columns` that the follower renamed come with their former names, and their places in
    the key where that is the primary one no longer.
    """
    number, schema, table, relation, written, names, style = row
    options, watched, fault, place = TriggerOptions(), list[str](), None, None
    try:
        place = None if relation is None else int(relation)
        options = msgspec.json.decode(str(written or ""), type=TriggerOptions)
        watched = msgspec.json.decode(str(names or "[]"), type=list[str])
        if style not in (BY_KEY, options.style):
            fault = f"the registry is damaged there (it has the style {str(style)!r} beside its options)"
    except (msgspec.DecodeError, ValueError) as error:
        fault = f"the registry is damaged there ({error})"
    renamed = {str(former): str(name) for former, name, _ in columns if former is not None}
    in_any_case = {former.casefold(): name for former, name in renamed.items()}

    def now(asked: Sequence[str]) -> tuple[str, ...]:
        return tuple(renamed.get(name) or in_any_case.get(name.casefold(), name) for name in asked)

    options = msgspec.structs.replace(
        options,
        columns=now(options.columns),
        exclude=now(options.exclude),
        key=tuple(str(name) for _, name, key in columns if key is not None) or now(options.key),
    )
    return TrackedClass(
        id=int(number),
        schema=None if schema is None else str(schema),
        table=str(table),
        relation=place,
        options=options,
        watched=now(watched),
        triggers=triggers,
        fault=fault,
    )


def define_setup(names: LogNames) -> TableClause:
    """Define the table of the installation's notes."""
    return sa.table(names.registry["setup"], sa.column("name"), sa.column("value"), schema=names.schema)


def has_registry(connection: Connection, names: LogNames, part: str = "tracked") -> bool:
    """Return True if a part of the registry is there; that with the notes of the installation is made first."""
    return inspect(connection).has_table(names.registry[part], schema=names.schema)


def read_setup(connection: Connection, names: LogNames) -> dict[str, str]:
    """Read the notes of the installation by name; none if the log has no registry."""
    if not has_registry(connection, names, "setup"):
        return {}
    return {str(name): str(value) for name, value in connection.execute(sa.select(*define_setup(names).c))}


def read_log_owner(connection: Connection, names: LogNames) -> tuple[str | None, bool]:
    """Read the owner of the log's registry, and True if it is the connected user.

    None and True if tables have no owners.
    """
    rows = answers(connection, "log_owner", **log_holes(dialect_of(connection), names))
    return (str(rows[0][0]), bool(rows[0][1])) if rows else (None, True)


def read_relation(connection: Connection, schema: str | None, table: str) -> int | None:
    """Read the number of a table, where tables have numbers."""
    rows = answers(connection, "relation_now", {"place": dialect_of(connection).qualify(schema, table)})
    return None if not rows or rows[0][0] is None else int(rows[0][0])


def require_registry(connection: Connection, names: LogNames) -> None:
    """Refuse to continue with a log without a registry."""
    if not has_registry(connection, names):
        message = f"The log {names.whole} has no registry, which says what is tracked."
        raise InstallError(message, hint="`eventlog install` makes it beside a log that is there.")


def refuse_condition(connection: Connection, names: LogNames, called: str) -> None:
    """Refuse to run a kept condition (--when) for anybody but the log's owner, whose code it is.

    Superusers first: the code could do all they may.
    """
    owner, is_owner = read_log_owner(connection, names)
    if is_owner:
        return
    message = f"Rows of {called} are captured by a condition, which is code of {owner}, the log's owner"
    raise InstallError(
        f"{message}: nobody else runs it.",
        hint=f"Run this as {owner}, or set source.reader to a login that may only read.",
    )


def refuse_fault(tracked: TrackedClass) -> None:
    """Refuse a damaged registry entry."""
    if tracked.fault is not None:
        message = f"What {tracked.whole} is tracked with cannot be read: {tracked.fault}."
        raise InstallError(message, hint="Say the options again, together with --reset.")
