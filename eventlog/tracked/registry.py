"""The registry: what the log's owner tracks, with which options, and by which triggers.

It is the only place that says so. Comments on triggers, texts of functions and rows that a lesser
role may write say nothing: what they hold is data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, inspect
from sqlalchemy.exc import SQLAlchemyError

from eventlog.core.errors import InstallError
from eventlog.core.table_names import write_name
from eventlog.sql.access import answers, fetch, verbatim
from eventlog.sql.dialect import Dialect, dialect_of, log_holes, offers, statement
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TriggerOptions

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
    part: str = "whole"


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
    dialect = dialect_of(connection)
    renamed: dict[int, dict[str, str]] = {}
    keys: dict[int, tuple[str, ...]] = {}
    # A savepoint is gone with its statement where each is a transaction of its own.
    alone = connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
    try:
        with nullcontext() if alone else connection.begin_nested():
            rows = _read(connection, dialect, names, "registry_read")
            entered = _read(connection, dialect, names, "registry_triggers")
            offered = offers(dialect, "registry_columns")
            columns = _read(connection, dialect, names, "registry_columns") if offered else []
    except SQLAlchemyError:
        if inspect(connection).has_table(names.registry["tracked"], schema=names.schema):
            raise
        return {}
    for number, former, now, place in columns:
        names_now = renamed.setdefault(int(number), {})
        if former is not None:
            names_now[str(former)] = str(now)
        if place is not None:
            keys[int(number)] = (*keys.get(int(number), ()), str(now))
    triggers: dict[int, dict[str, EnteredTrigger]] = {}
    for number, name, table, function, digest in entered:
        trigger = EnteredTrigger(name=str(name), table=str(table), function=function, digest=str(digest or ""))
        triggers.setdefault(int(number), {})[trigger.name] = trigger
    classes = {}
    for number, schema, table, relation, options, watched, style in rows:
        texts = (str(options or ""), str(watched or "[]"), str(style))
        tracked = _decode(int(number), schema, str(table), relation, *texts)
        tracked = msgspec.structs.replace(tracked, triggers=triggers.get(tracked.id, {}))
        if tracked.id in renamed:
            tracked = _rename_columns(tracked, renamed[tracked.id], keys.get(tracked.id))
        classes[tracked.whole] = tracked
    return classes


def _read(connection: Connection, dialect: Dialect, names: LogNames, query: str) -> list[tuple[Any, ...]]:
    return fetch(connection, verbatim(write_statement(dialect, names, query)))


def _decode(
    number: int, schema: Any, table: str, relation: Any, options: str, watched: str, style: str
) -> TrackedClass:
    found, names, fault, place = TriggerOptions(), list[str](), None, None
    try:
        place = None if relation is None else int(relation)
        found = msgspec.json.decode(options, type=TriggerOptions)
        names = msgspec.json.decode(watched, type=list[str])
        if style not in (BY_KEY, found.style):
            fault = f"the registry is damaged there (it has the style {style!r} beside its options)"
    except (msgspec.DecodeError, ValueError) as error:
        fault = f"the registry is damaged there ({error})"
    return TrackedClass(
        id=number,
        schema=None if schema is None else str(schema),
        table=table,
        relation=place,
        options=found,
        watched=tuple(names),
        fault=fault,
    )


def _rename_columns(tracked: TrackedClass, names: Mapping[str, str], key: tuple[str, ...] | None) -> TrackedClass:
    """Put present names of columns, and a non-primary key, into a class's options."""
    in_any_case = {name.casefold(): now for name, now in names.items()}

    def now(asked: Sequence[str]) -> tuple[str, ...]:
        return tuple(names.get(name) or in_any_case.get(name.casefold(), name) for name in asked)

    options = tracked.options
    options = msgspec.structs.replace(
        options,
        columns=now(options.columns),
        exclude=now(options.exclude),
        key=key or now(options.key),
    )
    return msgspec.structs.replace(tracked, options=options, watched=now(tracked.watched))


def read_log_owner(connection: Connection, names: LogNames) -> tuple[str | None, bool]:
    """Read the owner of the log's registry, and True if it is the connected user.

    None and True if tables have no owners.
    """
    dialect = dialect_of(connection)
    if not offers(dialect, "log_owner"):
        return None, True
    place = {"place": registry_place(dialect, names)}
    rows = answers(connection, "log_owner", place, **log_holes(dialect, names))
    if not rows:
        return None, True
    return str(rows[0][0]), bool(rows[0][1])


def read_relation(connection: Connection, schema: str | None, table: str) -> int | None:
    """Read the number of a table, where tables have numbers."""
    dialect = dialect_of(connection)
    rows = answers(connection, "relation_now", {"place": dialect.qualify(schema, table)})
    return None if not rows or rows[0][0] is None else int(rows[0][0])


def require_registry(connection: Connection, names: LogNames) -> None:
    """Refuse to continue with a log without a registry."""
    if not inspect(connection).has_table(names.registry["tracked"], schema=names.schema):
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


def registry_place(dialect: Dialect, names: LogNames) -> str:
    """Name the registry's table of triggers, as the catalog is asked about it."""
    return dialect.qualify(names.schema, names.registry["triggers"])


def write_statement(dialect: Dialect, names: LogNames, query: str, **holes: str) -> str:
    """Write a statement about the registry's tables."""
    schema_of_class = statement(dialect, "schema_of_class")
    return statement(dialect, query, **log_holes(dialect, names), schema_of_class=schema_of_class, **holes)


def refuse_fault(tracked: TrackedClass) -> None:
    """Refuse a damaged registry entry."""
    if tracked.fault is not None:
        message = f"What {tracked.whole} is tracked with cannot be read: {tracked.fault}."
        raise InstallError(message, hint="Say the options again, together with --reset.")
