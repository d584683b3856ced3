"""Writes the registry: constants stand in place of parameters, so that a script for a DBA and the program run the same."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from eventlog.capture.plan import TriggerPlan
from eventlog.capture.render import Trigger
from eventlog.sql.dialect import Dialect, long_literal, offers
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TriggerOptions
from eventlog.tracked.registry import BY_KEY, TrackedClass, write_statement


class RegistryWriter(Struct, frozen=True, kw_only=True):
    """Writes the statements that enter one class into the registry; `known` is what stands there of it."""

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
        place = {"schema": self._home, "table": self._text(self.table)}
        return write_statement(self.dialect, self.names, "class_number", **place)

    def enter_class(self, asked: TriggerOptions, plan: TriggerPlan) -> Iterator[str]:
        """Enter the class with its options and the follower's part of its plan."""
        if self.known is None:
            yield self._statement("orphans_remove")
        yield self._statement(
            "class_add" if self.known is None else "class_change",
            schema=self._home,
            table=self._text(self.table),
            relation=self._relation(self.table),
            options=self._text(msgspec.json.encode(asked).decode()),
            watched=self._text(msgspec.json.encode([*plan.remembered]).decode()),
            style=self._text(BY_KEY if plan.children else plan.options.style),
            all_columns=str(int(not (asked.columns or asked.exclude))),
            primary_key=str(int(not asked.key)),
            deferred=str(int(plan.options.deferred)),
        )

    def enter_trigger(self, trigger: Trigger) -> str:
        """Enter a trigger about to be made."""
        known = self.known is not None and trigger.name in self.known.triggers
        return self._statement(
            "trigger_change" if known else "trigger_add",
            name=self._text(self.dialect.report_name(trigger.name)),
            table=self._text(trigger.table),
            function="NULL" if trigger.program is None else self._text(trigger.program),
            definer=self._statement("definer"),
            digest=self._text(trigger.hash),
            part=self._text(trigger.part),
        )

    def keep_trigger_text(self, trigger: Trigger) -> str:
        """Keep the text of a new trigger."""
        name = self._text(self.dialect.report_name(trigger.name))
        function, called = self._text(trigger.program or trigger.name), self._text(f"{trigger.function}()")
        place = {"schema": self._home, "name": name, "function": function, "called": called}
        return self._statement("trigger_fingerprint", name=name, fingerprint=self._statement("fingerprint", **place))

    def remove_trigger(self, name: str) -> str:
        """Remove a dropped trigger."""
        return self._statement("trigger_remove", name=self._text(name))

    def enter_relations(self, plan: TriggerPlan) -> Iterator[str]:
        """Enter the tables the triggers depend on, each with its role."""
        yield self._statement("relations_remove")
        for table, role in {plan.table.name: "table", **{child.child.name: "child" for child in plan.children}}.items():
            yield self._statement(
                "relation_add",
                schema=self._home,
                table=self._text(table),
                relation=self._relation(table),
                role=self._text(role),
            )
        if offers(self.dialect, "ancestors_add"):
            yield self._statement("ancestors_add")

    def enter_columns(self, plan: TriggerPlan) -> Iterator[str]:
        """Enter the columns' numbers, by which the follower knows them."""
        keys = {plan.table.name: plan.table.key} | {child.child.name: child.child.parent_key for child in plan.children}
        own = [watched.column.name for watched in plan.watched if watched.column.name not in plan.table.key]
        yield self._statement("columns_remove")
        for table, key in keys.items():
            names = {"key": key, "watched": own if table == plan.table.name else ()}
            listed = {what: ", ".join(map(self.dialect.literal, columns)) for what, columns in names.items()}
            yield self._statement("columns_add", **listed, place=self._place(table))

    def remove_class(self) -> Iterator[str]:
        """Remove the class, with all its parts."""
        return map(self._statement, ("relations_remove", "columns_remove", "triggers_remove", "class_remove"))

    @property
    def _home(self) -> str:
        if self.schema is None:
            return write_statement(self.dialect, self.names, "home_schema")
        return self._text(self.schema)

    def _place(self, table: str) -> str:
        return self.dialect.literal(self.dialect.qualify(self.schema, table))

    def _relation(self, table: str) -> str:
        return self._statement("relation_number", place=self._place(table))

    def _text(self, text: str) -> str:
        """Write a text as a SQL expression, in pieces where no string or line may be as long."""
        return long_literal(self.dialect, text)

    def _statement(self, query: str, **holes: str) -> str:
        return write_statement(self.dialect, self.names, query, **{"class": self.number}, **holes)
