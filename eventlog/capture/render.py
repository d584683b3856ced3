"""Renders a plan as the triggers of one database: pure, from `plan` and the dialect to statements
with a hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto

from msgspec import Struct
from msgspec.structs import replace

from eventlog.capture.bodies import RowBodies, StatementBodies
from eventlog.capture.clauses import Clauses, qualify_table
from eventlog.capture.column_sql import Row, declarations, is_same_in_each_session, parameters, row_holes
from eventlog.capture.plan import EVERY, ChildPlan, TriggerPlan, When
from eventlog.core.errors import InstallError
from eventlog.core.schema import WHOLE_ROW, Column
from eventlog.core.table_names import write_log_name
from eventlog.sql.dialect import Dialect, log_holes, offers, statement
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style

ROWS = {
    When.INSERT: "NEW TABLE AS new_rows",
    When.UPDATE: "OLD TABLE AS old_rows NEW TABLE AS new_rows",
    When.DELETE: "OLD TABLE AS old_rows",
}
_mentioned = re.compile(r"\b(?:old|new|sets)_\d+\b")


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


def render(plan: TriggerPlan, dialect: Dialect, names: LogNames) -> list[Trigger]:
    """Write the triggers of a class: on its table or view, and on its child tables."""
    triggers = []
    for child in (None, *plan.children):
        for events, part in _list_parts(plan, dialect, child):
            writer = _TriggerWriter(dialect=dialect, names=names, plan=plan, child=child, events=events, part=part)
            triggers.append(writer.write())
    return triggers


def _list_parts(
    plan: TriggerPlan, dialect: Dialect, child: ChildPlan | None
) -> Iterator[tuple[tuple[When, ...], TriggerPart]]:
    """List the events of a table that have a trigger each, and what that does."""
    if dialect.ddl.procedural_triggers:
        yield EVERY, TriggerPart.WHOLE
        return
    for when in When:
        if when is When.TRUNCATE and (plan.table.view or not offers(dialect, "truncate_trigger")):
            continue
        # A table of somebody else's is read with the writer's rights, by a trigger of its own
        # (decision 13). What a user's condition reads is the user's business, so it counts as
        # reading.
        looks_up = child is not None and when is not When.INSERT
        reads = looks_up or when is When.TRUNCATE or plan.options.when is not None
        if plan.options.foreign and reads:
            yield (when,), TriggerPart.READING
            yield (when,), TriggerPart.WRITING
        else:
            yield (when,), TriggerPart.WHOLE


class _TriggerWriter(Struct, frozen=True, kw_only=True):
    """Writes one trigger: of the class's own table, or of a child, for these events."""

    dialect: Dialect
    names: LogNames
    plan: TriggerPlan
    child: ChildPlan | None
    events: tuple[When, ...]
    part: TriggerPart

    def write(self) -> Trigger:
        name, holes, form = self.name, self._holes(), self._form
        body = ["function_body"] if offers(self.dialect, "function_body") else []
        function = "reading_function" if self.part is TriggerPart.READING else "function"
        made = (self._statement(query, **holes) for query in (function, *body, form))
        hashed = "\0".join([*made, *(["always"] if self.plan.options.always else ())])
        digest = hashlib.sha256(hashed.encode()).hexdigest()[:16]
        program = self._name_program(digest)
        called = qualify_program(self.dialect, self.names, self.plan.table.schema, program)
        holes |= self._check_trigger(program) | dropping(self.dialect, called)
        queries = ["before_trigger", function, *body]
        if self.plan.function_owner is not None and offers(self.dialect, "own_function"):
            holes["function_owner"] = self.dialect.quote(self.plan.function_owner)
            queries.append("own_function")
        queries += ["guard_function", form]
        if self.plan.options.always:
            queries.append("always_trigger")
        queries += ["after_trigger", "restore_session"]
        texts = {query: self._statement(query, **holes) for query in queries}
        limit, length = self.dialect.ddl.trigger_bytes, len(texts[form].encode())
        if limit is not None and length > limit:
            too_long = f"The trigger on {self.table} would be {length} bytes long"
            raise InstallError(
                f"{too_long}, and {self.dialect.name} takes {limit}.",
                hint="Choose --events row-back, or fewer columns with --columns.",
            )
        drops = (self._statement(query, **holes) for query in ("drop_trigger", "drop_function"))
        return Trigger(
            name=name,
            table=self.table,
            schema=self.plan.table.schema,
            create=tuple(text for text in texts.values() if text),
            drop=tuple(text for text in drops if text),
            function=called,
            program=program if offers(self.dialect, "drop_function") else None,
            part=self.part.name.lower(),
            hash=digest,
        )

    @property
    def table(self) -> str:
        return self.child.child.name if self.child else self.plan.table.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """List the columns of the trigger's table."""
        own = self.child.child.columns if self.child else self.plan.table.columns
        return tuple([column for column in own if column.name != WHOLE_ROW])

    @property
    def name(self) -> str:
        table = self.plan.table
        # The class's schema stands in the name where it is not the log's.
        schema = table.schema if table.schema != self.names.schema else None
        owner = "_".join(filter(None, (self.names.table, schema, table.name)))
        event = self.when.value if len(self.events) == 1 else "change"
        base = f"{owner}_{event}" if self.child is None else f"{owner}__{self.table}_{event}"
        name = self.dialect.shorten_name(base)
        if self.part is not TriggerPart.WHOLE:
            # Triggers fire in the order of their names, and the one that reads must come before the
            # one that writes. Names are sorted here because a shortened one ends in a hash, which
            # may stand before or after the other's.
            reading, writing = sorted([name, self.dialect.shorten_name(f"{base}_written")], key=str.encode)
            name = reading if self.part is TriggerPart.READING else writing
        return self.dialect.beside(name, table.name)

    @property
    def when(self) -> When:
        return self.events[0]

    def _holes(self) -> dict[str, str]:
        table, ddl = self.plan.table, self.dialect.ddl
        function = qualify_program(self.dialect, self.names, table.schema, self._name_program())
        target = qualify_table(self.dialect, table.schema, self.table)
        log = self._log() | {"function": function}
        body = self._body(log)
        is_image = self.plan.options.style == Style.IMAGE
        result = "NULL"
        if table.view:
            # What a function returns; a view's must let the next trigger, which does the writing,
            # have its turn.
            result = ddl.row_names[0 if self.when is When.DELETE else 1]
        return log | {
            "trigger": self.dialect.trigger_name(table.schema, self.name),
            "target": target,
            # An image may be longer than a VARCHAR2.
            "text_type": "CLOB" if is_image else "VARCHAR2",
            "text_kept": "CLOB" if is_image else "VARCHAR2(32767)",
            "keeps": self._statement("keep_images" if is_image else "keep_texts"),
            "event": " OR ".join(self.events).upper(),
            "time": "INSTEAD OF" if table.view else "AFTER",
            "rows": ROWS.get(self.when, ""),
            "result": result,
            "declared": declarations(self.dialect, self.names, body),
            "guard": self._guard() if self.part is TriggerPart.WHOLE else "",
            "body": body,
            "settings": self._settings() if self.part is not TriggerPart.WRITING else "",
            **self._hand_over(target, body),
        }

    def _hand_over(self, target: str, body: str) -> dict[str, str]:
        """Declare the parameters of the procedure that a trigger runs, and hand their values over.

        A trigger has 32 K at most, so it names no column that its body does not need.
        """
        mentioned = set(_mentioned.findall(body))
        old_row, new_row = self.dialect.ddl.row_names
        declared, handed = [], []
        for number, column in enumerate(self.columns, 1):
            name = self.dialect.quote(column.name)
            sets = self._statement("sets", column=self.dialect.literal(column.name))
            values = {"old": f"{old_row}.{name}", "new": f"{new_row}.{name}", "sets": sets}
            for what, value in values.items():
                if f"{what}_{number}" in mentioned:
                    kind = "BOOLEAN" if what == "sets" else f"{target}.{name}%TYPE"
                    # A line for each: SQL*Plus takes no long ones.
                    declared.append(f",\n    {what}_{number} {kind}")
                    handed.append(f",\n{value}")
        return {"parameters": "".join(declared), "values": "".join(handed)}

    def _guard(self) -> str:
        """Check that columns still have built-in types, where somebody else may change them."""
        style, when = self.plan.options.style, self.when
        if self.child is not None:
            spoken_of = self.child.child.columns
        elif style != Style.IMAGE and (when is When.DELETE or (when is When.INSERT and style == Style.ROW_BACK)):
            spoken_of = self.plan.key  # such an event speaks of no column but the key
        else:
            spoken_of = self._read
        columns = [column for column in spoken_of if column.made is None and column.formula is None]
        if not self.plan.options.foreign or when is When.TRUNCATE or not columns:
            return ""
        before, after = self._row_names
        alias, source = (before, "old_rows AS o") if when is When.DELETE else (after, "new_rows AS n")
        row = Row(dialect=self.dialect, alias=alias)
        types = ", ".join(f"pg_typeof({row.read_value(column)})::oid" for column in dict.fromkeys(columns))
        query = "guard_rows" if self._by_statement else "guard_row"
        return self._statement(query, types=f"({types})", source=source) + ";"

    def _check_trigger(self, program: str) -> dict[str, str]:
        """Fill the holes of a look at the new trigger."""
        literal, schema, name = self.dialect.literal, self.plan.table.schema, self.name
        called = self.dialect.trigger_name(schema, name)
        rights = f"INSERT on {self.names.whole}"
        if self.names.sequence:
            rights += f" and SELECT on the sequence {self.names.sequence}"
        return {
            "name": literal(self.dialect.report_name(name)),
            "package": literal(program),
            "owner": literal(schema) if schema else "USER",
            "disable": literal(f"ALTER TRIGGER {called} DISABLE"),
            "complaint": literal(f"The trigger {name} does not compile and is disabled"),
            "rights": literal(f"Its owner needs {rights}, granted directly and not by a role"),
        }

    def _log(self) -> dict[str, str]:
        """Fill the holes common to all rows of the log."""
        log, column = self.names, self.names.transaction
        schema, ddl = self.plan.table.schema, self.dialect.ddl
        # A dump says nothing of the database that it is from: restored beside that, it has a log of its own.
        is_beside = log.near if schema is None else schema == log.schema
        if not ddl.qualified_in_triggers or (ddl.bare_beside_triggers and is_beside):
            log = replace(log, schema=None)
        holes = log_holes(self.dialect, log) | row_holes(self.dialect, log, declared=True)
        table = self.plan.table
        holes |= {"table": self.dialect.literal(write_log_name(table.schema, table.name, self.names.schema))}
        # The transaction of a row is written if the log has a column for it without a default.
        holes |= dict.fromkeys(("transaction_declared", "transaction_name", "transaction_value"), "")
        if column is not None and offers(self.dialect, "transaction_declared"):
            holes["transaction_declared"] = f"    {self._statement('transaction_declared')};"
            holes |= {"transaction_name": f", {self.dialect.quote(column)}", "transaction_value": ", written_by"}
        return holes

    def _body(self, log: Mapping[str, str]) -> str:
        if self.part is TriggerPart.WRITING:
            return self._statement("take_facts", **log)
        kind_of_bodies = StatementBodies if self._by_statement else RowBodies
        bodies = kind_of_bodies(clauses=self._clauses(), log=log)
        if len(self.events) > 1:
            return RowBodies(clauses=bodies.clauses, log=log).by_event()
        body = bodies.body(self.when)
        is_sure = self.child is None or self.when in (When.INSERT, When.TRUNCATE)
        if self.part is TriggerPart.WHOLE or is_sure or self.plan.options.when is not None:
            return body
        # A policy, or the want of a right, may hide the parent; then it is taken for there.
        table = self.plan.table
        parent = self.dialect.literal(qualify_table(self.dialect, table.schema, table.name))
        unseen = replace(bodies, clauses=replace(bodies.clauses, unseen=True)).body(self.when)
        return self._statement("if_seen", parent=parent, body=body, unseen=unseen)

    def _clauses(self) -> Clauses:
        """Make the SQL for the rows before and after."""
        columns, steps = self.columns, self.dialect.ddl.procedural_triggers

        def make_row(what: str, alias: str) -> Row:
            names = parameters(what, columns) if steps else {}
            return Row(dialect=self.dialect, alias=alias, columns=columns, parameters=names)

        old, new = map(make_row, ("old", "new"), self._row_names)
        return Clauses(
            dialect=self.dialect,
            plan=self.plan,
            child=self.child,
            old=old,
            new=new,
            outer=self._by_statement,
            steps=steps,
            hands=self.part is TriggerPart.READING,
        )

    @property
    def _by_statement(self) -> bool:
        by_row = self.plan.options.rows or self.plan.table.view or self.plan.table.whole_row
        return self.when is When.TRUNCATE or (offers(self.dialect, "statement_trigger") and not by_row)

    @property
    def _row_names(self) -> tuple[str, str]:
        return ("o", "n") if self._by_statement else self.dialect.ddl.row_names

    @property
    def _form(self) -> str:
        if self.when is When.TRUNCATE:
            return "truncate_trigger"
        each_row_at_once = self.plan.table.view or self.plan.options.at_once
        if self.dialect.ddl.procedural_triggers and not each_row_at_once:
            return "compound_trigger"
        return "statement_trigger" if self._by_statement else "row_trigger"

    def _settings(self) -> str:
        looks_up = self.child is not None or (self.plan.looks_back and bool(self.plan.children))
        queries = []
        if self._by_statement:
            queries.append("settings_of_statements")
        if looks_up and self.when in (When.UPDATE, When.DELETE):
            queries.append("settings_of_children")
        if self._by_statement and self.when is When.UPDATE and self.child is None:
            queries.append("settings_of_pairs")
        # Dates and floats have another text in another session, and the database may list one of
        # them itself.
        if not is_same_in_each_session(self.dialect, self._read):
            queries.append("settings")
        return " ".join(map(self._statement, queries))

    @property
    def _read(self) -> tuple[Column, ...]:
        """List the columns of which the trigger may speak."""
        if self.child:
            return self.child.child.columns
        # Where the row is compared as a whole, no column but the key is spoken of.
        if self.plan.whole_rows and offers(self.dialect, "row_differs"):
            return self.plan.key
        return self.plan.key + tuple(attribute.column for attribute in self.plan.watched)

    def _name_program(self, digest: str = "") -> str:
        """Return the bare name of what the trigger runs, as in the catalog."""
        if not self.dialect.ddl.procedural_triggers:
            return self.name
        # Its name changes with its text. So a trigger that is replaced goes from one to the other
        # in one step, and nobody who writes meanwhile meets a trigger with another one's procedure.
        name = self.dialect.shorten_name(f"{self.name}_{digest[:8]}")
        return self.dialect.report_name(self.dialect.beside(name, self.name))

    def _statement(self, query: str, **holes: str) -> str:
        return statement(self.dialect, query, **holes)


def qualify_program(dialect: Dialect, names: LogNames, schema: str | None, program: str) -> str:
    """Name in SQL what a trigger runs: beside the log, or beside the trigger if that has the rights."""
    return dialect.qualify(schema if dialect.ddl.procedural_triggers else names.schema, program)


def dropping(dialect: Dialect, function: str) -> dict[str, str]:
    """Fill the holes of DROP FUNCTION."""
    return {"function": function, "dropped": dialect.literal(f"DROP PACKAGE {function}")}
