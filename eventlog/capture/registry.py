"""The registry: what the log's owner tracks, with which options, and by which triggers.

It is the only place that says so. Comments on triggers, texts of functions and rows that a lesser
role may write say nothing: what they hold is data. The statements that write it have constants in
place of parameters, so that a script for a DBA and the program run the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, inspect
from sqlalchemy.exc import SQLAlchemyError

from eventlog.capture.plan import TriggerOptions, TriggerPlan
from eventlog.core.errors import InstallError
from eventlog.core.table_names import write_name
from eventlog.sql.access import answers, fetch, verbatim
from eventlog.sql.dialect import Dialect, dialect_of, log_holes, long_literal, offers, statement
from eventlog.sql.names import LogNames

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
    try:
        rows = _read(connection, dialect, names, "registry_read")
        entered = _read(connection, dialect, names, "registry_triggers")
        if offers(dialect, "registry_columns"):
            for number, former, now, place in _read(connection, dialect, names, "registry_columns"):
                names_now = renamed.setdefault(int(number), {})
                if former is not None:
                    names_now[str(former)] = str(now)
                if place is not None:
                    keys[int(number)] = (*keys.get(int(number), ()), str(now))
    except SQLAlchemyError:
        if inspect(connection).has_table(names.registry["tracked"], schema=names.schema):
            raise
        return {}
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
    # A savepoint is gone with its statement where each is a transaction of its own.
    alone = connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
    with nullcontext() if alone else connection.begin_nested():
        return fetch(connection, verbatim(_statement(dialect, names, query)))


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


class RegistryWriter(Struct, frozen=True, kw_only=True):
    """Writes the statements that enter one class into the registry."""

    dialect: Dialect
    names: LogNames
    schema: str | None
    table: str
    known: TrackedClass | None

    @property
    def number(self) -> str:
        """Write SQL for the number of the class."""
        if self.known is not None:
            return str(self.known.id)
        return self._statement("class_number", schema=self._schema(), table=self._text(self.table))

    def enter_class(self, asked: TriggerOptions, plan: TriggerPlan) -> Iterator[str]:
        """Enter the class with its options and the follower's part of its plan."""
        holes = {
            "schema": self._schema(),
            "table": self._text(self.table),
            "relation": self._relation(self.table),
            "options": self._text(msgspec.json.encode(asked).decode()),
            "watched": self._text(msgspec.json.encode([*plan.remembered]).decode()),
            "style": self._text(BY_KEY if plan.children else plan.options.style),
            "all_columns": str(int(not (asked.columns or asked.exclude))),
            "primary_key": str(int(not asked.key)),
            "deferred": str(int(plan.options.deferred)),
        }
        if self.known is None:
            yield self._statement("orphans_remove")
            yield self._statement("class_add", **holes)
        else:
            yield self._statement("class_change", id=str(self.known.id), **holes)

    def enter_trigger(self, trigger: EnteredTrigger) -> str:
        """Enter a trigger about to be made."""
        known = self.known is not None and trigger.name in self.known.triggers
        return self._statement(
            "trigger_change" if known else "trigger_add",
            **{"class": self.number},
            name=self._text(self.dialect.report_name(trigger.name)),
            table=self._text(trigger.table),
            function="NULL" if trigger.function is None else self._text(trigger.function),
            definer=self._statement("definer"),
            digest=self._text(trigger.digest),
            part=self._text(trigger.part),
        )

    def settle_trigger(self, trigger: EnteredTrigger, called: str) -> str:
        """Keep the text of a new trigger; `called` is its function's name in SQL."""
        name = self._text(self.dialect.report_name(trigger.name))
        function = self._text(trigger.function or trigger.name)
        holes = {"schema": self._schema(), "name": name, "function": function, "called": self._text(f"{called}()")}
        fingerprint = self._statement("fingerprint", **holes)
        return self._statement("trigger_settle", **{"class": self.number}, name=name, fingerprint=fingerprint)

    def remove_trigger(self, name: str) -> str:
        """Remove a dropped trigger."""
        return self._statement("trigger_remove", **{"class": self.number}, name=self._text(name))

    def enter_relations(self, tables: Mapping[str, str]) -> Iterator[str]:
        """Enter the tables the triggers depend on, each with its role."""
        yield self._statement("relations_remove", **{"class": self.number})
        for table, role in tables.items():
            yield self._statement(
                "relation_add",
                **{"class": self.number},
                schema=self._schema(),
                table=self._text(table),
                relation=self._relation(table),
                role=self._text(role),
            )
        if offers(self.dialect, "ancestors_add"):
            yield self._statement("ancestors_add", **{"class": self.number})

    def enter_columns(self, plan: TriggerPlan) -> Iterator[str]:
        """Enter the columns' numbers, by which the follower knows them."""
        keys = {plan.table.name: plan.table.key} | {child.child.name: child.child.parent_key for child in plan.children}
        own = [watched.column.name for watched in plan.watched if watched.column.name not in plan.table.key]
        yield self._statement("columns_remove", **{"class": self.number})
        for table, key in keys.items():
            names = {"key": key, "watched": own if table == plan.table.name else ()}
            listed = {what: ", ".join(map(self.dialect.literal, columns)) for what, columns in names.items()}
            place = self.dialect.literal(self.dialect.qualify(self.schema, table))
            yield self._statement("columns_add", **{"class": self.number}, **listed, place=place)

    def remove_class(self) -> Iterator[str]:
        """Remove the class, with all its parts."""
        yield self._statement("relations_remove", **{"class": self.number})
        yield self._statement("columns_remove", **{"class": self.number})
        yield self._statement("triggers_remove", id=self.number)
        yield self._statement("class_remove", id=self.number)

    def _schema(self) -> str:
        if self.schema is None:
            return self._statement("home_schema")
        return self._text(self.schema)

    def _relation(self, table: str) -> str:
        place = self.dialect.literal(self.dialect.qualify(self.schema, table))
        return self._statement("relation_number", place=place)

    def _text(self, text: str) -> str:
        """Write a text as a SQL expression, in pieces where no string or line may be as long."""
        return long_literal(self.dialect, text)

    def _statement(self, query: str, **holes: str) -> str:
        return _statement(self.dialect, self.names, query, **holes)


def _statement(dialect: Dialect, names: LogNames, query: str, **holes: str) -> str:
    schema_of_class = statement(dialect, "schema_of_class")
    return statement(dialect, query, **log_holes(dialect, names), schema_of_class=schema_of_class, **holes)


def refuse_fault(tracked: TrackedClass) -> None:
    """Refuse a damaged registry entry."""
    if tracked.fault is not None:
        message = f"What {tracked.whole} is tracked with cannot be read: {tracked.fault}."
        raise InstallError(message, hint="Say the options again, together with --reset.")
