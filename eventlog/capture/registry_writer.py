"""Writes the registry: constants stand in place of parameters, so that a script for a DBA and the program run the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from eventlog.capture.plan import TriggerPlan
from eventlog.sql.dialect import Dialect, long_literal, offers
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TriggerOptions
from eventlog.tracked.registry import BY_KEY, EnteredTrigger, TrackedClass, write_statement


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

    def keep_trigger_text(self, trigger: EnteredTrigger, called: str) -> str:
        """Keep the text of a new trigger; `called` is its function's name in SQL."""
        name = self._text(self.dialect.report_name(trigger.name))
        function = self._text(trigger.function or trigger.name)
        holes = {"schema": self._schema(), "name": name, "function": function, "called": self._text(f"{called}()")}
        fingerprint = self._statement("fingerprint", **holes)
        return self._statement("trigger_fingerprint", **{"class": self.number}, name=name, fingerprint=fingerprint)

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
        return write_statement(self.dialect, self.names, query, **holes)
