"""What triggers do, as SQL: a statement a fact for row triggers, one statement for all rows where
they see them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

from msgspec import Struct
from msgspec.structs import replace

from eventlog.capture.clauses import Clauses, all_of, any_of, qualify_table
from eventlog.capture.column_sql import Row, kind_text, parameters, present, same_key
from eventlog.capture.plan import EVERY, ChildPlan, Fact, Side, Test, TriggerPlan, When, child_facts, facts
from eventlog.core.schema import WHOLE_ROW, Column
from eventlog.sql.dialect import Dialect, statement
from eventlog.tracked.options import VALUED, Style

SEPARATOR = ";\n"
ONE_ROW = "(VALUES (1)) AS one (row)"
"""The source of a row trigger's facts, which has its row already."""
_mentioned = re.compile(r"\b(old|new|sets)_(\d+)\b")


class Argument(Struct, frozen=True, kw_only=True):
    """A value that a trigger hands to the procedure that it runs: the parameter, its type, and what
    stands in the call.
    """

    name: str
    type: str
    value: str


def columns_of(plan: TriggerPlan, child: ChildPlan | None) -> tuple[Column, ...]:
    """List the columns of a trigger's table."""
    own = child.child.columns if child else plan.table.columns
    return tuple([column for column in own if column.name != WHOLE_ROW])


def arguments(
    dialect: Dialect,
    target: str,
    columns: Sequence[Column],
    body: str,
) -> list[Argument]:
    """List the values to hand over to this body."""
    handed = []
    # A trigger has 32 K at most, so it names no column that is not needed.
    mentioned = {(what, int(number)) for what, number in _mentioned.findall(body)}
    old_row, new_row = dialect.ddl.row_names
    for number, column in enumerate(columns, 1):
        name = dialect.quote(column.name)
        own_type = f"{target}.{name}%TYPE"
        sets = statement(dialect, "sets", column=dialect.literal(column.name))
        for what, type_name, value in (
            ("old", own_type, f"{old_row}.{name}"),
            ("new", own_type, f"{new_row}.{name}"),
            ("sets", "BOOLEAN", sets),
        ):
            if (what, number) in mentioned:
                handed.append(Argument(name=f"{what}_{number}", type=type_name, value=value))
    return handed


class Bodies(Struct, frozen=True, kw_only=True):
    """What bodies are made of; `hands` says that the next trigger writes what this one finds."""

    dialect: Dialect
    plan: TriggerPlan
    child: ChildPlan | None
    log: Mapping[str, str]
    hands: bool = False
    unseen: bool = False

    def _clauses(self, old: str, new: str, *, outer: bool = False) -> Clauses:
        """Make the SQL for rows of these names before and after."""
        columns = columns_of(self.plan, self.child)
        before = Row(dialect=self.dialect, alias=old, columns=columns)
        after = Row(dialect=self.dialect, alias=new, columns=columns)
        if self.dialect.ddl.procedural_triggers:
            before = replace(before, parameters=parameters("old", columns))
            after = replace(after, parameters=parameters("new", columns))
        return Clauses(
            dialect=self.dialect,
            plan=self.plan,
            child=self.child,
            old=before,
            new=after,
            outer=outer,
            unseen=self.unseen,
        )

    def _log_facts(self, source: str, rows: Iterable[Mapping[str, str]]) -> str:
        """Write one statement logging all facts of all rows of a source, or hand them to the next
        trigger.
        """
        facts = [statement(self.dialect, "fact", **holes) for holes in rows]
        query = _writing("log_facts", hands=self.hands)
        together = "\nUNION ALL ".join(facts)
        return statement(self.dialect, query, **self.log, source=source, facts=together)


class RowBodies(Bodies, frozen=True, kw_only=True):
    """Bodies of triggers that fire for one row after another."""

    def body(self, when: When) -> str:
        plan = self.plan
        if self.dialect.ddl.procedural_triggers and when is When.UPDATE:
            # Such a database looks at keys when a statement ends: an earlier row of the statement
            # may have come to the key that this one leaves.
            plan = replace(plan, options=replace(plan.options, deferred=True))
        clauses = replace(self._clauses(*self.dialect.ddl.row_names), plan=plan)
        written = child_facts(plan, self.child, when) if self.child else facts(plan, when)
        written = list(filter(clauses.is_written, written))
        if self.dialect.ddl.procedural_triggers:  # where conditions hold no queries
            asked = [fact.test is not Test.LEFT_BEHIND or clauses.may_be_left(fact) for fact in written]
            written = list(compress(written, asked))
        if self.dialect.ddl.transition_tables:
            return self._log_facts(ONE_ROW, holes_of(clauses, written))
        body = self._statements(clauses, written, when)
        if when is When.UPDATE and any(column.early for column in clauses.new.columns):
            return statement(self.dialect, "if_written", **clauses.fill_written_row(), body=body)
        return body

    def _statements(self, clauses: Clauses, written: Iterable[Fact], when: When) -> str:
        statements = []
        if self.dialect.ddl.procedural_triggers and self.plan.options.when is not None:
            # Conditions hold no queries there, so what they speak of is asked before.
            sides = {When.INSERT: (Side.NEW,), When.DELETE: (Side.OLD,)}.get(when, tuple(Side))
            statements = [clauses.question(side) for side in sides]
        for fact in written:
            holes = {**self.log, **clauses.holes(fact)}
            statements.append(statement(self.dialect, "log_row", **holes))
        return SEPARATOR.join(statements)

    def by_event(self) -> str:
        """Write the body of one trigger for all events."""
        clauses = self._clauses(*self.dialect.ddl.row_names)
        return statement(
            self.dialect,
            "by_event",
            old_key=clauses.key_text(Side.OLD),
            new_key=clauses.key_text(Side.NEW),
            moved=clauses.keys_differ(),
            **{event.value: self.body(event) for event in EVERY},
        )


class StatementBodies(Bodies, frozen=True, kw_only=True):
    """Bodies of triggers that see all rows of their statement before and after."""

    def body(self, when: When) -> str:
        clauses = self._clauses("o", "n", outer=True)
        if when is When.TRUNCATE:
            warning = statement(self.dialect, "warn_of_unseen")
            return SEPARATOR.join((warning, self._all(clauses, when)))
        return self._all(clauses, when)

    def _all(self, clauses: Clauses, when: When) -> str:
        if self.child is not None:
            if when is When.TRUNCATE and self.plan.options.style in VALUED:
                return self._truncate_children(clauses, self.child)
            return self._child_statements(clauses, self.child, when)
        return self._own(clauses, when)

    def _own(self, clauses: Clauses, when: When) -> str:
        source = self._source(clauses, when)
        style = self.plan.options.style
        by_row = style in (Style.ROW_BACK, Style.IMAGE) and not self.plan.looks_back
        if when is When.UPDATE and by_row:
            # One fact a row without a subquery, which is half the work for each row of a bulk
            # statement.
            return self._log_each(clauses, source)
        if style == Style.IMAGE and when in (When.INSERT, When.DELETE) and by_row:
            [fact] = filter(clauses.is_written, facts(self.plan, when))
            query = _writing("log_image", hands=self.hands)
            return statement(self.dialect, query, **self.log, source=source, **clauses.holes(fact))
        fields = style not in (Style.ROW_BACK, Style.IMAGE)
        if when is When.UPDATE and self.plan.options.when is None and fields:
            return self._log_facts(source, self._list_update_facts(clauses))
        written = facts(self.plan, when)
        if when is When.TRUNCATE and self.hands and not self.plan.table.whole_row:
            # What is handed over is one text, which cannot hold the images of a large table.
            written = [replace(fact, image=False, old=False) for fact in written]
        return self._log_facts(source, holes_of(clauses, written))

    def _child_statements(
        self,
        clauses: Clauses,
        child: ChildPlan,
        when: When,
        only: str = "",
    ) -> str:
        writing = _ChildStatements(
            clauses=clauses,
            child=child,
            log=self.log,
            hands=self.hands,
            only=only,
        )
        return SEPARATOR.join(writing.write_statements(when))

    def _truncate_children(self, clauses: Clauses, child: ChildPlan) -> str:
        """Write the values of a child table, unless the parent may be emptied with it."""
        # The parents' ends may have been logged already, and values after them would be logged of
        # objects that are no more. A read-back is right in either case, for it says nothing of an
        # object that is gone.
        options = replace(self.plan.options, style=Style.FIELD_BACK)
        reading = replace(clauses, plan=replace(self.plan, options=options))
        unsure = self._child_statements(reading, child, When.TRUNCATE)
        if not self.hands:  # who reads with the writer's rights knows no log
            not_ended = statement(self.dialect, "not_ended", **self.log)
            known = self._child_statements(reading, child, When.TRUNCATE, not_ended)
            log_name = self.dialect.literal(self.log["log"])
            holes = {"known": known, "unsure": unsure}
            unsure = statement(self.dialect, "if_ends_are_seen", log_name=log_name, **holes)
        table = self.plan.table
        return statement(
            self.dialect,
            "if_parent_stays",
            parent=self.dialect.literal(qualify_table(self.dialect, table.schema, table.name)),
            body=self._child_statements(clauses, child, When.TRUNCATE),
            unsure=unsure,
        )

    def _source(self, clauses: Clauses, when: When) -> str:
        if when is When.TRUNCATE:
            return f"{qualify_table(self.dialect, self.plan.table.schema, self.plan.table.name)} AS o"
        if when is When.INSERT:
            return "new_rows AS n"
        if when is When.DELETE:
            return "old_rows AS o"
        # The key decides which row was which: an update that changes it made one go and one come.
        before, after = clauses.old, clauses.new
        rows = [(column, before.value(column), after.value(column)) for column in self.plan.key]
        same = " AND ".join(same_key(self.dialect, column, old, new) for column, old, new in rows)
        return f"old_rows AS o FULL JOIN new_rows AS n ON {same}"

    def _log_each(self, clauses: Clauses, source: str) -> str:
        left, came, stayed = filter(clauses.is_written, facts(self.plan, When.UPDATE))
        conditions = [clauses.condition(fact) for fact in (left, came)]
        # Beside "left or came" the change need not say "neither left nor came", unless a condition
        # looks at both rows.
        if self.plan.options.when is None:
            conditions.append(clauses.has_changed(stayed))
        else:
            conditions.append(clauses.condition(stayed))
        holes = {
            "left": f"({clauses.missing(Side.NEW)})",
            "came": f"({clauses.missing(Side.OLD)})",
            "old_key": clauses.key(Side.OLD),
            "new_key": clauses.key(Side.NEW),
            "condition": any_of(conditions),
        }
        for fact in (left, came, stayed):
            holes[f"kind_{fact.fate.name.lower()}"] = _kind(clauses, fact)
        if stayed.image:
            # Of a row that an outer join did not find, an image would be one of NULLs.
            for side in Side:
                there = f"NOT ({clauses.missing(side)})"
                image = statement(self.dialect, "image_of", there=there, image=clauses.image(side))
                holes[f"{side.name.lower()}_image"] = image
        query = _writing("log_images" if stayed.image else "log_each", hands=self.hands)
        return statement(self.dialect, query, **self.log, source=source, **holes)

    def _list_update_facts(self, clauses: Clauses) -> list[dict[str, str]]:
        """List an update's field facts: the row left, and one a column for a row that came or stayed."""
        left, *others = facts(self.plan, When.UPDATE)
        count = len(self.plan.watched)
        written = [clauses.holes(left)]
        # One fact for both, for each fact costs a single row its own plan node.
        for came, stayed in zip(others[:count], others[count : 2 * count], strict=True):
            fresh = f"({clauses.missing(Side.OLD)})"
            # Where a row came, all columns of the row before are NULL, so a value that is there
            # differs.
            changed = clauses.has_changed(stayed)
            if came.test is Test.FILLED_OR_ALL_EMPTY:
                changed = any_of([changed, all_of([fresh, *clauses.all_empty(came)])])
            came_kind, stayed_kind = _kind(clauses, came), _kind(clauses, stayed)
            kind = f"CASE WHEN {fresh} THEN {came_kind} ELSE {stayed_kind} END"
            condition = all_of([f"NOT ({clauses.missing(Side.NEW)})", changed])
            written.append(clauses.holes(stayed) | {"kind": kind, "condition": condition})
        return [*written, *map(clauses.holes, others[2 * count :])]


class _ChildStatements(Struct, frozen=True, kw_only=True):
    """Statements about the rows of a child table, which need no key: what stood there before,
    without what stands now.

    `only` is a condition on the parent's `side.key`.
    """

    clauses: Clauses
    child: ChildPlan
    log: Mapping[str, str]
    hands: bool
    only: str = ""

    def write_statements(self, when: When) -> list[str]:
        facts_of_child = child_facts(self.clauses.plan, self.child, When.INSERT)
        if self.clauses.plan.options.style == Style.ROW_BACK:
            fact = facts_of_child[0]
            count = len(self.child.watched)
            sides = self._both(when, [self._side(side, when, fact, count) for side in Side])
            return [self._query("log_child_reads", fact, sides)]
        return [text for fact in facts_of_child for text in self._field(fact, when)]

    def _field(self, fact: Fact, when: When) -> list[str]:
        old, new = (self._side(side, when, fact, 1) for side in Side)
        if self.clauses.plan.options.style == Style.FIELD_BACK:
            return [self._query("log_child_reads", fact, self._both(when, [old, new]))]
        written = []
        if when is not When.INSERT:
            removed = child_facts(self.clauses.plan, self.child, When.DELETE)
            gone = next(end for end in removed if end.column == fact.column)
            query = "log_child_values" if gone.old else "log_child_reads"
            written.append(self._query(query, gone, _without(old, new, when)))
        if when in (When.INSERT, When.UPDATE):
            written.append(self._query("log_child_values", fact, _without(new, old, when)))
        return written

    def _side(self, side: Side, when: When, fact: Fact, count: int) -> str:
        clauses = self.clauses
        row = clauses.row(side)
        values = [row.text(watched.column) for watched in fact.watched[:count]]
        values = values or [statement(clauses.dialect, "text_of_row", row=row.alias)]
        # A truncation has no rows before in hand: they are still in the table itself.
        gone = side is Side.OLD and when is not When.TRUNCATE
        conditions = clauses.under_a_parent(side, may_be_gone=gone)
        if fact.filled:
            conditions.append(present(clauses.dialect, row.value(fact.watched[0].column)))
        return statement(
            clauses.dialect,
            "child_side",
            key=clauses.key(side),
            values=", ".join(f"{value} AS value{index}" for index, value in enumerate(values)),
            source=self._source(side, when),
            condition=all_of(conditions),
        )

    def _source(self, side: Side, when: When) -> str:
        if when is When.TRUNCATE:
            table = self.clauses.plan.table
            return f"{qualify_table(self.clauses.dialect, table.schema, self.child.child.name)} AS o"
        return "old_rows AS o" if side is Side.OLD else "new_rows AS n"

    def _both(self, when: When, sides: list[str]) -> str:
        old, new = sides
        if when is When.INSERT:
            return new
        if when is not When.UPDATE:
            return old
        return f"({_without(old, new, when)}) UNION ALL ({_without(new, old, when)})"

    def _query(self, query: str, fact: Fact, sides: str) -> str:
        column = "NULL" if fact.column is None else self.clauses.dialect.literal(fact.column)
        if self.only:
            sides = f"SELECT side.* FROM ({sides}) AS side WHERE {self.only}"
        return statement(
            self.clauses.dialect,
            _writing(query, hands=self.hands),
            **self.log,
            kind=_kind(self.clauses, fact),
            column=column,
            old="side.value0" if fact.old else "NULL",
            new="side.value0" if fact.new else "NULL",
            sides=f"({sides})",
        )


def holes_of(clauses: Clauses, written: Iterable[Fact]) -> list[dict[str, str]]:
    """Fill the holes of facts."""
    return [clauses.holes(fact) for fact in written if clauses.is_written(fact)]


def _writing(query: str, *, hands: bool) -> str:
    return query.replace("log_", "hand_", 1) if hands else query


def _kind(clauses: Clauses, fact: Fact) -> str:
    return kind_text(clauses.dialect, fact.kind)


def _without(side: str, other: str, when: When) -> str:
    if when is not When.UPDATE:
        return side
    # ALL, for a child may have the same value twice, and lose it once.
    return f"{side} EXCEPT ALL {other}"
