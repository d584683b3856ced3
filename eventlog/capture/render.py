"""Renders a plan as the triggers of one database: pure, from `plan` and the dialect to statements
with a hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto

from msgspec import Struct
from msgspec.structs import replace

from eventlog.capture.bodies import RowBodies, StatementBodies, arguments, columns_of
from eventlog.capture.clauses import name_in_log, qualify_table
from eventlog.capture.column_sql import (
    Row,
    common_holes,
    context_holes,
    declarations,
    is_same_in_each_session,
    number_holes,
)
from eventlog.capture.plan import EVERY, ChildPlan, TriggerPlan, When
from eventlog.core.errors import InstallError
from eventlog.core.schema import Column
from eventlog.sql.dialect import Dialect, log_holes, offers, statement
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style

ROWS = {
    When.INSERT: "NEW TABLE AS new_rows",
    When.UPDATE: "OLD TABLE AS old_rows NEW TABLE AS new_rows",
    When.DELETE: "OLD TABLE AS old_rows",
}


class TriggerPart(Enum):
    """What a trigger does of its work: all of it, or only the reading, or only the writing of what
    was read.
    """

    WHOLE = auto()
    READING = auto()
    WRITING = auto()


class Trigger(Struct, frozen=True, kw_only=True):
    """A trigger: where it stands, how to make it and how to take it off, what it runs as SQL names it,
    and by its bare name where that is apart from the trigger, and the hash of the text that was
    planned.
    """

    name: str
    table: str
    schema: str | None
    function: str
    program: str | None
    part: str
    create: tuple[str, ...]
    drop: tuple[str, ...]
    hash: str


def hash_texts(texts: Iterable[str]) -> str:
    """Return sixteen digits of a hash over the texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def render(plan: TriggerPlan, dialect: Dialect, names: LogNames) -> list[Trigger]:
    """Write the triggers of a class: on its table or view, and on its child tables."""
    writer = _Writer(dialect=dialect, names=names, plan=plan)
    triggers = [*writer.triggers(None)]
    for child in plan.children:
        triggers += writer.triggers(child)
    return triggers


class _Writer(Struct, frozen=True, kw_only=True):
    dialect: Dialect
    names: LogNames
    plan: TriggerPlan

    def triggers(self, child: ChildPlan | None) -> Iterator[Trigger]:
        if self.dialect.ddl.procedural_triggers:
            yield self._trigger(child, EVERY, TriggerPart.WHOLE)
            return
        for when in When:
            if when is When.TRUNCATE and (self.plan.table.view or not self.dialect.ddl.truncate_triggers):
                continue
            parts: tuple[TriggerPart, ...] = (TriggerPart.WHOLE,)
            # A table of somebody else's is read with the writer's rights, by a trigger of its own
            # (decision 13). What a user's condition reads is the user's business, so it counts as
            # reading.
            looks_up = child is not None and when is not When.INSERT
            reads = looks_up or when is When.TRUNCATE or self.plan.options.when is not None
            if self.plan.options.foreign and reads:
                parts = (TriggerPart.READING, TriggerPart.WRITING)
            for part in parts:
                yield self._trigger(child, (when,), part)

    def _trigger(
        self,
        child: ChildPlan | None,
        events: tuple[When, ...],
        part: TriggerPart,
    ) -> Trigger:
        event = events[0] if len(events) == 1 else "change"
        name = self._part_name(self._base(child, event), part)
        table = child.child.name if child else self.plan.table.name
        function = "reading_function" if part is TriggerPart.READING else "function"
        holes = self._holes(child, events, name, table, part) | self._log()
        form = self._form(events[0])
        body = ["function_body"] if offers(self.dialect, "function_body") else []
        made = (self._statement(query, **holes) for query in (function, *body, form))
        digest = hash_texts([*made, *(["always"] if self.plan.options.always else ())])
        called = function_name(self.dialect, self.names, self.plan.table.schema, name, digest)
        holes |= self._check_trigger(name, digest) | dropping(self.dialect, called)
        queries = ["before_trigger", function, *body]
        if self.plan.function_owner is not None and offers(self.dialect, "own_function"):
            holes["function_owner"] = self.dialect.quote(self.plan.function_owner)
            queries.append("own_function")
        queries += ["guard_function", form]
        if self.plan.options.always:
            queries.append("always_trigger")
        queries.append("after_trigger")
        texts = {query: self._statement(query, **holes) for query in queries}
        limit, length = self.dialect.ddl.trigger_bytes, len(texts[form].encode())
        if limit is not None and length > limit:
            too_long = f"The trigger on {table} would be {length} bytes long"
            raise InstallError(
                f"{too_long}, and {self.dialect.name} takes {limit}.",
                hint="Choose --events row-back, or fewer columns with --columns.",
            )
        drops = (self._statement(query, **holes) for query in ("drop_trigger", "drop_function"))
        return Trigger(
            name=name,
            table=table,
            schema=self.plan.table.schema,
            create=tuple(text for text in texts.values() if text),
            drop=tuple(text for text in drops if text),
            function=called,
            program=self._program(name, digest),
            part=part.name.lower(),
            hash=digest,
        )

    def _holes(
        self,
        child: ChildPlan | None,
        events: tuple[When, ...],
        name: str,
        table: str,
        part: TriggerPart,
    ) -> dict[str, str]:
        function = function_name(self.dialect, self.names, self.plan.table.schema, name)
        target = qualify_table(self.dialect, self.plan.table.schema, table)
        body = self._body(child, events, function, part)
        handed_over = {}
        if self.dialect.ddl.procedural_triggers:
            # A line for each: SQL*Plus takes no long ones.
            handed = arguments(self.dialect, target, columns_of(self.plan, child), body)
            declared = [f",\n    {argument.name} {argument.type}" for argument in handed]
            handed_over["parameters"] = "".join(declared)
            handed_over["values"] = "".join(f",\n{argument.value}" for argument in handed)
        # An image may be longer than a VARCHAR2.
        text_type = kept_type = "CLOB"
        keeps = "keep_images"
        if self.plan.options.style != Style.IMAGE:
            text_type, kept_type, keeps = "VARCHAR2", "VARCHAR2(32767)", "keep_texts"
        result = "NULL"
        if self.plan.table.view:
            # What a function returns; a view's must let the next trigger, which does the writing,
            # have its turn.
            old_row, new_row = self.dialect.ddl.row_names
            result = old_row if events[0] is When.DELETE else new_row
        guard = settings = ""
        if part is TriggerPart.WHOLE:
            guard = self._guard(child, events[0])
        if part is not TriggerPart.WRITING:
            settings = self._settings(child, events[0])
        return handed_over | {
            "trigger": self.dialect.trigger_name(self.plan.table.schema, name),
            "function": function,
            "target": target,
            "text_type": text_type,
            "text_kept": kept_type,
            "keeps": self._statement(keeps),
            "event": " OR ".join(events).upper(),
            "time": "INSTEAD OF" if self.plan.table.view else "AFTER",
            "rows": ROWS.get(events[0], ""),
            "result": result,
            "declared": declarations(self.dialect, self.names, body),
            "guard": guard,
            "body": body,
            "settings": settings,
        }

    def _guard(self, child: ChildPlan | None, when: When) -> str:
        """Check that columns still have built-in types, where somebody else may change them."""
        style = self.plan.options.style
        # An event that speaks of no column but the key.
        key_only = when is When.DELETE and style != Style.IMAGE
        key_only = key_only or (when is When.INSERT and style == Style.ROW_BACK)
        if child is not None:
            spoken_of = child.child.columns
        elif key_only:
            spoken_of = self.plan.key
        else:
            spoken_of = self._read(None)
        columns = [column for column in spoken_of if column.made is None and column.formula is None]
        if not self.plan.options.foreign or when is When.TRUNCATE or not columns:
            return ""
        by_statement = self._by_statement(when)
        before, after = self.dialect.ddl.row_names
        if by_statement:
            before, after = "o", "n"
        alias, source = after, "new_rows AS n"
        if when is When.DELETE:
            alias, source = before, "old_rows AS o"
        row = Row(dialect=self.dialect, alias=alias)
        asked = [f"pg_typeof({row.read_value(column)})::oid" for column in dict.fromkeys(columns)]
        types = ", ".join(asked)
        query = "guard_rows" if by_statement else "guard_row"
        return self._statement(query, types=f"({types})", source=source) + ";"

    def _check_trigger(self, name: str, digest: str) -> dict[str, str]:
        """Fill the holes of a look at the new trigger."""
        literal, schema = self.dialect.literal, self.plan.table.schema
        called = self.dialect.trigger_name(schema, name)
        rights = f"INSERT on {self.names.whole}"
        if self.names.sequence:
            rights += f" and SELECT on the sequence {self.names.sequence}"
        return {
            "name": literal(self.dialect.report_name(name)),
            "package": literal(self.dialect.report_name(package_name(self.dialect, name, digest))),
            "owner": literal(schema) if schema else "USER",
            "disable": literal(f"ALTER TRIGGER {called} DISABLE"),
            "complaint": literal(f"The trigger {name} does not compile and is disabled"),
            "rights": literal(f"Its owner needs {rights}, granted directly and not by a role"),
        }

    def _log(self) -> dict[str, str]:
        """Fill the holes common to all rows of the log."""
        table = self.dialect.literal(name_in_log(self.plan, self.names))
        log = self.names
        if not self.dialect.ddl.qualified_in_triggers:
            log = replace(log, schema=None)
        own = {"table": table} | common_holes(self.dialect)
        numbers = number_holes(self.dialect, log) | self._transaction() | context_holes(self.dialect, log)
        return log_holes(self.dialect, log) | own | numbers

    def _transaction(self) -> dict[str, str]:
        """Write the transaction of a row, if the log has a column for it without a default."""
        column = self.names.transaction
        if column is None or not offers(self.dialect, "transaction_declared"):
            return {"transaction_declared": "", "transaction_name": "", "transaction_value": ""}
        return {
            "transaction_declared": f"    {self._statement('transaction_declared')};",
            "transaction_name": f", {self.dialect.quote(column)}",
            "transaction_value": ", written_by",
        }

    def _body(
        self,
        child: ChildPlan | None,
        events: tuple[When, ...],
        function: str,
        part: TriggerPart,
    ) -> str:
        log = self._log() | {"function": function}
        if part is TriggerPart.WRITING:
            return self._statement("take_facts", **log)
        if len(events) > 1:
            return RowBodies(dialect=self.dialect, plan=self.plan, child=child, log=log).by_event()
        if part is TriggerPart.READING:
            return self._reading(child, events[0], log)
        kind_of_bodies = StatementBodies if self._by_statement(events[0]) else RowBodies
        bodies = kind_of_bodies(dialect=self.dialect, plan=self.plan, child=child, log=log)
        return bodies.body(events[0])

    def _reading(self, child: ChildPlan | None, when: When, log: Mapping[str, str]) -> str:
        """Write the part of a trigger run with the writer's rights."""
        # The constants have the types of the log's columns, which are not for a writer to name.
        dialect = replace(self.dialect, ddl=replace(self.dialect.ddl, declared_constants=False))
        kind_of_bodies = StatementBodies if self._by_statement(when) else RowBodies
        bodies = kind_of_bodies(dialect=dialect, plan=self.plan, child=child, log=log, hands=True)
        is_sure = child is None or when in (When.INSERT, When.TRUNCATE)
        if is_sure or self.plan.options.when is not None:
            return bodies.body(when)
        # A policy, or the want of a right, may hide the parent; then it is taken for there.
        table = self.plan.table
        parent = self.dialect.literal(qualify_table(self.dialect, table.schema, table.name))
        unseen = replace(bodies, unseen=True).body(when)
        return self._statement("if_seen", parent=parent, body=bodies.body(when), unseen=unseen)

    def _by_statement(self, when: When) -> bool:
        if when is When.TRUNCATE:
            return True
        by_row = self.plan.options.rows or self.plan.table.view or self.plan.table.whole_row
        return self.dialect.ddl.transition_tables and not by_row

    def _form(self, when: When) -> str:
        if when is When.TRUNCATE:
            return "truncate_trigger"
        each_row_at_once = self.plan.table.view or self.plan.options.at_once
        if self.dialect.ddl.procedural_triggers and not each_row_at_once:
            return "compound_trigger"
        if self._by_statement(when):
            return "statement_trigger"
        return "row_trigger"

    def _settings(self, child: ChildPlan | None, when: When) -> str:
        by_statement = self._by_statement(when)
        looks_up = child is not None or (self.plan.looks_back and bool(self.plan.children))
        queries = []
        if by_statement:
            queries.append("settings_of_statements")
        if looks_up and when in (When.UPDATE, When.DELETE):
            queries.append("settings_of_children")
        if by_statement and when is When.UPDATE and child is None:
            queries.append("settings_of_pairs")
        # Dates and floats have another text in another session, and the database may list one of
        # them itself.
        if not is_same_in_each_session(self.dialect, self._read(child)):
            queries.append("settings")
        return " ".join(statement(self.dialect, query) for query in queries)

    def _read(self, child: ChildPlan | None) -> tuple[Column, ...]:
        if child:
            return child.child.columns
        # Where the row is compared as a whole, no column but the key is spoken of.
        if self.plan.whole_rows and offers(self.dialect, "row_differs"):
            return self.plan.key
        return self.plan.key + tuple(attribute.column for attribute in self.plan.watched)

    def _program(self, name: str, digest: str) -> str | None:
        """Return the bare name of the trigger's function, as in the catalog."""
        if self.dialect.ddl.procedural_triggers:
            return self.dialect.report_name(package_name(self.dialect, name, digest))
        return name if offers(self.dialect, "drop_function") else None

    def _base(self, child: ChildPlan | None, what: str) -> str:
        table = self.plan.table
        parts = [self.names.table, table.name]
        if table.schema and table.schema != self.names.schema:
            parts.insert(1, table.schema)
        owner = "_".join(parts)
        if child is None:
            return f"{owner}_{what}"
        return f"{owner}__{child.child.name}_{what}"

    def _part_name(self, base: str, part: TriggerPart) -> str:
        name = self.dialect.shorten_name(base)
        if part is not TriggerPart.WHOLE:
            # Triggers fire in the order of their names, and the one that reads must come before the
            # one that writes. Names are sorted here because a shortened one ends in a hash, which
            # may stand before or after the other's.
            other = self.dialect.shorten_name(f"{base}_written")
            reading, writing = sorted([name, other], key=str.encode)
            name = reading
            if part is TriggerPart.WRITING:
                name = writing
        return self.dialect.beside(name, self.plan.table.name)

    def _statement(self, query: str, **holes: str) -> str:
        return statement(self.dialect, query, **holes)


def function_name(
    dialect: Dialect,
    names: LogNames,
    schema: str | None,
    trigger: str,
    digest: str = "",
) -> str:
    """Name the function of a trigger: beside the log, or beside the trigger if that has the rights."""
    if dialect.ddl.procedural_triggers:
        # Its name changes with its text. So a trigger that is replaced goes from one to the other
        # in one step, and nobody who writes meanwhile meets a trigger with another one's procedure.
        return dialect.qualify(schema, package_name(dialect, trigger, digest))
    return dialect.qualify(names.schema, trigger)


def package_name(dialect: Dialect, trigger: str, digest: str) -> str:
    return dialect.beside(dialect.shorten_name(f"{trigger}_{digest[:8]}"), trigger)


def dropping(dialect: Dialect, function: str) -> dict[str, str]:
    """Fill the holes of DROP FUNCTION."""
    return {"function": function, "dropped": dialect.literal(f"DROP PACKAGE {function}")}
