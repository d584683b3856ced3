"""Renders a plan as the triggers of one database: pure, from `plan` and the dialect to statements with a hash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto

from msgspec import Struct
from msgspec.structs import replace

from eventlog.capture.asked import Marker, hash_of, write_marker
from eventlog.capture.bodies import RowBodies, StatementBodies, arguments, columns_of
from eventlog.capture.clauses import logged_name, qualified
from eventlog.capture.ddl import HERE, Bridge, bridge_comment, bridge_plan
from eventlog.capture.plan import EVERY, ChildPlan, Style, TriggerPlan, When
from eventlog.capture.words import Row, common_holes, declarations, settled
from eventlog.core.errors import InstallError
from eventlog.core.schema import Column
from eventlog.sql.dialect import BODY_QUOTE, Dialect, log_holes, number_holes, offers, statement
from eventlog.sql.names import LogNames

ROWS = {
    When.INSERT: "NEW TABLE AS new_rows",
    When.UPDATE: "OLD TABLE AS old_rows NEW TABLE AS new_rows",
    When.DELETE: "OLD TABLE AS old_rows",
}


class TriggerPart(Enum):
    """What a trigger does of its work: all of it, or only the reading, or only the writing of what was read."""

    WHOLE = auto()
    READING = auto()
    WRITING = auto()


PARTS = (TriggerPart.READING, TriggerPart.WRITING)


class Trigger(Struct, frozen=True, kw_only=True):
    """A trigger: the table it stands on, how to make it and how to take it off, what it runs, and the text that the database
    keeps.
    """

    name: str
    table: str
    schema: str | None
    function: str
    create: tuple[str, ...]
    drop: tuple[str, ...]
    source: str
    hash: str


def render(plan: TriggerPlan, dialect: Dialect, names: LogNames) -> list[Trigger]:
    """The triggers of a class: on its table or view, and on its child tables."""
    writer = _Writer(dialect=dialect, names=names, plan=plan)
    return [*writer.triggers(None), *(trigger for child in plan.children for trigger in writer.triggers(child))]


class _Writer(Struct, frozen=True, kw_only=True):
    dialect: Dialect
    names: LogNames
    plan: TriggerPlan

    def triggers(self, child: ChildPlan | None) -> Iterator[Trigger]:
        if self.dialect.procedural_triggers:
            yield self._trigger(child, EVERY, TriggerPart.WHOLE)
            return
        for when in When:
            if when is not When.TRUNCATE or (self.dialect.truncate_triggers and not self.plan.table.view):
                parts = PARTS if self._apart(child, when) else (TriggerPart.WHOLE,)
                yield from (self._trigger(child, (when,), part) for part in parts)

    def _apart(self, child: ChildPlan | None, when: When) -> bool:
        """Whether the trigger reads a table that belongs to somebody else: then that is done with the writer's rights.

        What a user's condition reads is the user's business, so it counts as reading.
        """
        options = self.plan.options
        if not options.foreign:
            return False
        reads = child is not None and when is not When.INSERT
        return reads or when is When.TRUNCATE or options.when is not None

    def _trigger(self, child: ChildPlan | None, events: tuple[When, ...], part: TriggerPart) -> Trigger:
        name = self._part_name(self._base(child, events[0] if len(events) == 1 else "change"), part)
        table = child.child.name if child else self.plan.table.name
        function = "reading_function" if part is TriggerPart.READING else "function"
        holes = self._holes(child, events, name, table, part) | self._log()
        if self.plan.numbered:
            holes["body"] = f"{self._bridge(child, events, name, part)}\n{holes['body']}"
        form = self._form(events[0])
        body = ("function_body",) if offers(self.dialect, "function_body") else ()
        digest = hash_of(self._statement(query, **holes, marker="") for query in (function, *body, form))
        called = function_name(self.dialect, self.names, self.plan.table.schema, name, digest)
        holes |= self._settling(name, digest) | dropping(self.dialect, called)
        mark = self.dialect.marked(write_marker(self._marker(digest), self.dialect.line_characters))
        always = ("always_trigger",) if self.plan.options.always else ()
        owned = ("own_function",) if self.plan.numbered else ()
        queries = (
            *("before_trigger", function, *body, *owned, "guard_function", form),
            *("mark_trigger", *always, "after_trigger"),
        )
        texts = {query: self._statement(query, **holes, marker=mark) for query in queries}
        limit, length = self.dialect.trigger_bytes, len(texts[form].encode())
        if limit is not None and length > limit:
            message = f"The trigger on {table} would be {length} bytes long, and {self.dialect.name} takes {limit}."
            raise InstallError(message, hint="Choose --events row-back, or fewer columns with --columns.")
        return Trigger(
            name=name,
            table=table,
            schema=self.plan.table.schema,
            create=tuple(text for text in texts.values() if text),
            drop=tuple(filter(None, (self._statement(query, **holes) for query in ("drop_trigger", "drop_function")))),
            function=called,
            source=self.dialect.told("\n".join((texts[function], texts[form]))),
            hash=digest,
        )

    def _holes(
        self, child: ChildPlan | None, events: tuple[When, ...], name: str, table: str, part: TriggerPart
    ) -> dict[str, str]:
        function = function_name(self.dialect, self.names, self.plan.table.schema, name)
        target = qualified(self.dialect, self.plan.table.schema, table)
        body = self._body(child, events, function, part)
        return self._handed_over(child, target, body) | {
            "trigger": self._trigger_name(name),
            "function": function,
            "target": target,
            "old_type": "CLOB" if self.plan.options.style == Style.IMAGE else "VARCHAR2",
            "old_kept": "CLOB" if self.plan.options.style == Style.IMAGE else "VARCHAR2(32767)",
            "event": " OR ".join(events).upper(),
            "time": "INSTEAD OF" if self.plan.table.view else "AFTER",
            "rows": ROWS.get(events[0], ""),
            # What a function returns; a view's must let the next trigger, which does the writing, have its turn.
            "result": self.dialect.row_names[0 if events[0] is When.DELETE else 1] if self.plan.table.view else "NULL",
            "declared": declarations(self.dialect, self.names, body),
            "guard": self._guard(child, events[0]) if part is TriggerPart.WHOLE else "",
            "body": body,
            "settings": self._settings(child, events[0]) if part is not TriggerPart.WRITING else "",
        }

    def _handed_over(self, child: ChildPlan | None, target: str, body: str) -> dict[str, str]:
        """What fills the holes of a procedure that is handed the values of a row, and of the trigger that calls it."""
        if not self.dialect.procedural_triggers:
            return {}
        found = arguments(self.dialect, target, columns_of(self.plan, child), body)
        # A line for each: SQL*Plus takes no long ones.
        return {
            "parameters": "".join(f",\n    {one.name} {one.type}" for one in found),
            "values": "".join(f",\n{one.value}" for one in found),
        }

    def _guard(self, child: ChildPlan | None, when: When) -> str:
        """Looks whether the columns still have types of the database, where somebody else may change them."""
        columns = [one for one in self._spoken_of(child, when) if one.made is None and one.formula is None]
        if not self.plan.options.foreign or when is When.TRUNCATE or not columns:
            return ""
        by_statement, gone = self._by_statement(when), when is When.DELETE
        old, new = ("o", "n") if by_statement else self.dialect.row_names
        alias = old if gone else new
        row = Row(dialect=self.dialect, alias=alias)
        types = ", ".join(f"pg_typeof({row.stored(column)})::oid" for column in dict.fromkeys(columns))
        query = "guard_rows" if by_statement else "guard_row"
        return self._statement(query, types=f"({types})", source="old_rows AS o" if gone else "new_rows AS n") + ";"

    def _spoken_of(self, child: ChildPlan | None, when: When) -> tuple[Column, ...]:
        """The columns of the trigger's own table that it speaks of."""
        if child is not None:
            return child.child.columns
        back = self.plan.options.style == Style.ROW_BACK
        image = self.plan.options.style == Style.IMAGE
        if (when is When.DELETE and not image) or (back and when is When.INSERT):
            return self.plan.key
        return self._read(None)

    def _settling(self, name: str, digest: str) -> dict[str, str]:
        """What fills the holes of a look at the trigger once it stands."""
        literal, schema, called = self.dialect.literal, self.plan.table.schema, self._trigger_name(name)
        rights = f"INSERT on {self.names.whole}"
        if self.names.sequence:
            rights += f" and SELECT on the sequence {self.names.sequence}"
        return {
            "name": literal(self.dialect.reported(name)),
            "package": literal(self.dialect.reported(package_name(self.dialect, name, digest))),
            "owner": literal(schema) if schema else "USER",
            "disable": literal(f"ALTER TRIGGER {called} DISABLE"),
            "complaint": literal(f"The trigger {name} does not compile and is disabled"),
            "rights": literal(f"Its owner needs {rights}, granted directly and not by a role"),
        }

    def _log(self) -> dict[str, str]:
        """What fills the holes of a row of the log that are the same for all."""
        table = self.dialect.literal(logged_name(self.plan, self.names))
        log = self.names if self.dialect.qualified_in_triggers else replace(self.names, schema=None)
        own = {"table": table} | common_holes(self.dialect)
        return log_holes(self.dialect, log) | own | number_holes(self.dialect, log) | self._transaction()

    def _transaction(self) -> dict[str, str]:
        """What a trigger says of its transaction, where the log has a column for it that no default fills."""
        column = self.names.transaction
        if column is None or not offers(self.dialect, "transaction_declared"):
            return {"transaction_declared": "", "transaction_name": "", "transaction_value": ""}
        return {
            "transaction_declared": f"    {self._statement('transaction_declared')};",
            "transaction_name": f", {self.dialect.quoted(column)}",
            "transaction_value": ", written_by",
        }

    def _body(self, child: ChildPlan | None, events: tuple[When, ...], function: str, part: TriggerPart) -> str:
        log = self._log() | {"function": function}
        if part is TriggerPart.WRITING:
            return self._statement("take_facts", **log)
        if len(events) > 1:
            return RowBodies(dialect=self.dialect, plan=self.plan, child=child, log=log).by_event()
        if part is TriggerPart.READING:
            return self._reading(child, events[0], log)
        bodies = StatementBodies if self._by_statement(events[0]) else RowBodies
        if self.plan.listed is not None:
            return bodies(dialect=self.dialect, plan=self.plan, child=child, log=log).listed(events[0])
        return bodies(dialect=self.dialect, plan=self.plan, child=child, log=log).body(events[0])

    def _reading(self, child: ChildPlan | None, when: When, log: Mapping[str, str]) -> str:
        """What is found with the writer's rights; the constants of the log's types are not for a writer to name."""
        dialect = replace(self.dialect, declared_constants=False)
        bodies = StatementBodies if self._by_statement(when) else RowBodies
        found = bodies(dialect=dialect, plan=self.plan, child=child, log=log, hands=True)
        if self.plan.listed is not None:
            return found.listed(when)
        if child is None or when in (When.INSERT, When.TRUNCATE) or self.plan.options.when is not None:
            return found.body(when)
        parent = self.dialect.literal(qualified(self.dialect, self.plan.table.schema, self.plan.table.name))
        unseen = replace(found, unseen=True).body(when)
        return self._statement("if_seen", parent=parent, body=found.body(when), unseen=unseen)

    def _by_statement(self, when: When) -> bool:
        if when is When.TRUNCATE:
            return True
        by_row = self.plan.options.rows or self.plan.table.view or self.plan.table.whole_row
        return self.dialect.transition_tables and not by_row

    def _form(self, when: When) -> str:
        if when is When.TRUNCATE:
            return "truncate_trigger"
        if self.dialect.procedural_triggers and not (self.plan.table.view or self.plan.options.at_once):
            return "compound_trigger"
        return "statement_trigger" if self._by_statement(when) else "row_trigger"

    def _settings(self, child: ChildPlan | None, when: When) -> str:
        queries = ["settings_of_statements"] if self._by_statement(when) else []
        looks_up = child is not None or (self.plan.looks_back and bool(self.plan.children))
        queries += ["settings_of_children"] if looks_up and when in (When.UPDATE, When.DELETE) else []
        queries += ["settings_of_pairs"] if self._by_statement(when) and when is When.UPDATE and child is None else []
        settles = self.plan.listed is None and settled(self.dialect, self._read(child))
        queries += [] if settles else ["settings"]
        return " ".join(statement(self.dialect, query) for query in queries)

    def _read(self, child: ChildPlan | None) -> tuple[Column, ...]:
        if child:
            return child.child.columns
        # Where the row is compared as a whole, no column but the key is spoken of.
        if self.plan.whole_rows and offers(self.dialect, "row_differs"):
            return self.plan.key
        return self.plan.key + tuple(one.column for one in self.plan.watched)

    def _bridge(self, child: ChildPlan | None, events: tuple[When, ...], name: str, part: TriggerPart) -> str:
        """A comment with what the database makes of this function when the table is altered: it names the key only."""
        plan = bridge_plan(self.plan)
        place = 1 + self.plan.children.index(child) if child else 0
        writer = replace(self, plan=plan)
        text = writer.bridging(plan.children[place - 1] if child else None, events, name, part)
        head, body, _ = text.split(BODY_QUOTE)
        own, this = self.plan.numbered[0], self.plan.numbered[place]
        bridge = Bridge(
            head=head,
            body=body,
            name=child.child.name if child else self.plan.table.name,
            parent=own.number,
            key=[number for number, _ in own.keys],
            columns=None if own.columns is None else list(own.columns),
            marker=self._marker(""),
        )
        return bridge_comment(bridge, this, own)

    def bridging(self, child: ChildPlan | None, events: tuple[When, ...], name: str, part: TriggerPart) -> str:
        """The text of a trigger's function, with a place for the comment."""
        function = "reading_function" if part is TriggerPart.READING else "function"
        holes = self._holes(child, events, name, "", part) | self._log()
        holes["body"] = f"{HERE}\n{holes['body']}"
        return self._statement(function, **holes)

    def _marker(self, digest: str) -> Marker:
        return Marker(
            log=self.names.whole,
            table=self.plan.table.whole,
            options=self.plan.options,
            hash=digest,
            watched=self.plan.remembered,
        )

    def _base(self, child: ChildPlan | None, what: str) -> str:
        table = self.plan.table
        foreign = table.schema if table.schema != self.names.schema else None
        owner = "_".join(filter(None, (self.names.table, foreign, table.name)))
        return f"{owner}__{child.child.name}_{what}" if child else f"{owner}_{what}"

    def _part_name(self, base: str, part: TriggerPart) -> str:
        """Triggers fire in the order of their names: the one that reads comes before the one that writes."""
        names = [self.dialect.shortened(base)]
        if part is not TriggerPart.WHOLE:
            names = sorted([*names, self.dialect.shortened(f"{base}_written")], key=str.encode)
        return self.dialect.beside(names[-1 if part is TriggerPart.WRITING else 0], self.plan.table.name)

    def _trigger_name(self, name: str) -> str:
        """A trigger lives in its table's schema, where the database does not already say so by the table."""
        schema = self.plan.table.schema if self.dialect.triggers_in_schemas else None
        return self.dialect.qualified(schema, name)

    def _statement(self, query: str, **holes: str) -> str:
        return statement(self.dialect, query, **holes)


def function_name(dialect: Dialect, names: LogNames, schema: str | None, trigger: str, digest: str = "") -> str:
    """What a trigger runs: beside the log, or beside the trigger where that is what has rights on the log.

    There its name changes with its text. So a trigger that is replaced goes from one to the other in one step, and nobody who
    writes meanwhile meets a trigger with another one's procedure.
    """
    if dialect.procedural_triggers:
        return dialect.qualified(schema, package_name(dialect, trigger, digest))
    return dialect.qualified(names.schema, trigger)


def package_name(dialect: Dialect, trigger: str, digest: str) -> str:
    return dialect.beside(dialect.shortened(f"{trigger}_{digest[:8]}"), trigger)


def dropping(dialect: Dialect, function: str) -> dict[str, str]:
    """What fills the holes of the statement that takes a function off."""
    return {"function": function, "dropped": dialect.literal(f"DROP PACKAGE {function}")}
