"""Writes the registry: constants stand in place of parameters, so that a script for a DBA and the program run the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, TableClause, column, literal_column, select, table
from sqlalchemy.sql import quoted_name

from eventlog.capture.plan import TriggerPlan
from eventlog.capture.render import Trigger
from eventlog.sql.dialect import Dialect, log_holes, long_literal, offers, statement
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TriggerOptions
from eventlog.tracked.registry import BY_KEY, TrackedClass


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
        place = {"schema_name": self._kept_home, "table_name": self._text(self.table)}
        found = self.dialect.write(
            select(literal_column("id")).select_from(self._table("tracked")).where(*_equal(place))
        )
        return f"({found})"

    def enter_class(self, asked: TriggerOptions, plan: TriggerPlan) -> Iterator[str]:
        """Enter the class with its options and the follower's part of its plan."""
        values = {
            "schema_name": self._kept_home,
            "table_name": self._text(self.table),
            "relation": self._relation(self.table),
            "options": self._text(msgspec.json.encode(asked).decode()),
            "watched": self._text(msgspec.json.encode([*plan.remembered]).decode()),
            "style": self._text(BY_KEY if plan.children else plan.options.style),
            "all_columns": str(int(not (asked.columns or asked.exclude))),
            "primary_key": str(int(not asked.key)),
            "deferred": str(int(plan.options.deferred)),
        }
        if self.known is not None:
            yield self._change("tracked", values, id=self.number)
            return
        tracked, triggers = self._table("tracked", ["id", *values]), self._table("triggers")
        # A number that is given again has no trigger of a class that is gone.
        yield self.dialect.write(triggers.delete().where(column("tracked").not_in(select(tracked.c.id))))
        row = _write_values({"id": "COALESCE(MAX(id), 0) + 1", **values})
        yield self.dialect.write(tracked.insert().from_select([*row], select(*row.values()).select_from(tracked)))

    def enter_trigger(self, trigger: Trigger) -> str:
        """Enter a trigger about to be made, so that none stands which nobody has entered."""
        which = {"tracked": self.number, "name": self._text(self.dialect.report_name(trigger.name))}
        values = {
            "table_name": self._text(trigger.table),
            "function_name": "NULL" if trigger.program is None else self._text(trigger.program),
            "definer": self._statement("definer"),
            "digest": self._text(trigger.hash),
            "part": self._text(trigger.part),
            "fingerprint": "NULL",
        }
        if self.known is not None and trigger.name in self.known.triggers:
            return self._change("triggers", values, **which)
        return self._add("triggers", which | values)

    def keep_trigger_text(self, trigger: Trigger) -> str:
        """Keep the text of a new trigger."""
        name = self._text(self.dialect.report_name(trigger.name))
        function, called = self._text(trigger.program or trigger.name), self._text(f"{trigger.function}()")
        text = self._statement("fingerprint", schema=self._home, name=name, function=function, called=called)
        return self._change("triggers", {"fingerprint": text}, tracked=self.number, name=name)

    def remove_trigger(self, name: str) -> str:
        """Remove a dropped trigger."""
        return self._remove("triggers", tracked=self.number, name=self._text(name))

    def enter_relations(self, plan: TriggerPlan) -> Iterator[str]:
        """Enter the tables the triggers depend on, each with its role."""
        yield self._remove("relations", tracked=self.number)
        for name, role in {plan.table.name: "table", **{child.child.name: "child" for child in plan.children}}.items():
            place = {"schema_name": self._kept_home, "table_name": self._text(name), "relation": self._relation(name)}
            yield self._add("relations", {"tracked": self.number, **place, "role": self._text(role)})
        if offers(self.dialect, "ancestors_add"):
            yield self._statement("ancestors_add")

    def enter_columns(self, plan: TriggerPlan) -> Iterator[str]:
        """Enter the columns' numbers, by which the follower knows them."""
        keys = {plan.table.name: plan.table.key} | {child.child.name: child.child.parent_key for child in plan.children}
        own = [watched.column.name for watched in plan.watched if watched.column.name not in plan.table.key]
        yield self._remove("columns", tracked=self.number)
        for name, key in keys.items():
            names = {"key": key, "watched": own if name == plan.table.name else ()}
            listed = {what: ", ".join(map(self.dialect.literal, columns)) for what, columns in names.items()}
            yield self._statement("columns_add", **listed, place=self._place(name))

    def remove_class(self) -> Iterator[str]:
        """Remove the class, with all its parts."""
        for part in ("relations", "columns", "triggers"):
            yield self._remove(part, tracked=self.number)
        yield self._remove("tracked", id=self.number)

    @property
    def _home(self) -> str:
        if self.schema is None:
            return statement(self.dialect, "home_schema")
        return self._text(self.schema)

    @property
    def _kept_home(self) -> str:
        holes = log_holes(self.dialect, self.names)
        return statement(self.dialect, "kept_schema", **holes, schema=self._home)

    def _place(self, table: str) -> str:
        return self.dialect.literal(self.dialect.qualify(self.schema, table))

    def _relation(self, table: str) -> str:
        return self._statement("relation_number", place=self._place(table))

    def _text(self, text: str) -> str:
        """Write a text as a SQL expression, in pieces where no string or line may be as long."""
        return long_literal(self.dialect, text)

    def _statement(self, query: str, **holes: str) -> str:
        return statement(self.dialect, query, **log_holes(self.dialect, self.names), **{"class": self.number}, **holes)

    def _table(self, part: str, columns: Iterable[str] = ()) -> TableClause:
        return table(quoted_name(log_holes(self.dialect, self.names)[part], quote=False), *map(column, columns))

    def _add(self, part: str, values: Mapping[str, str]) -> str:
        return self.dialect.write(self._table(part, values).insert().values(_write_values(values)))

    def _change(self, part: str, values: Mapping[str, str], **which: str) -> str:
        changed = self._table(part, values).update().values(_write_values(values))
        return self.dialect.write(changed.where(*_equal(which)))

    def _remove(self, part: str, **which: str) -> str:
        return self.dialect.write(self._table(part).delete().where(*_equal(which)))


def _write_values(values: Mapping[str, str]) -> dict[str, ColumnElement[object]]:
    return {name: literal_column(value) for name, value in values.items()}


def _equal(values: Mapping[str, str]) -> list[ColumnElement[bool]]:
    return [column(name) == literal_column(value) for name, value in values.items()]
