"""What triggers do, as SQL: a statement a fact for row triggers, one statement for all rows where
they see them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from eventlog.capture.clauses import ALWAYS, Clauses, all_of, any_of, qualify_table
from eventlog.capture.column_sql import compare
from eventlog.capture.plan import EVERY, ChildPlan, Fact, Side, Test, When, child_facts, facts
from eventlog.sql.dialect import offers, statement
from eventlog.tracked.options import VALUED, Style

SEPARATOR = ";\n"
VALUES = {"column": "column_name", "old": "old_value", "new": "new_value"}
"""The columns of the log that not every row needs, by the holes of a fact."""
ONE_ROW = "(VALUES (1)) AS one (row)"
"""The source of a row trigger's facts, which has its row already."""

TOGETHER_ROWS = 100
"""Rows of the log in one statement of a row trigger: SQLite takes 500 parts of a UNION ALL."""


def list_values(log: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """List the columns with these values, and the values."""
    given = [hole for hole in VALUES if hole in values]
    columns, texts = ([f", {log[VALUES[hole]]}" for hole in given], [f", {values[hole]}" for hole in given])
    return {"value_names": "".join(columns), "value_texts": "".join(texts)}


class Bodies(Struct, frozen=True, kw_only=True):
    """What bodies are made of: the SQL of their facts, and the holes of every row of the log."""

    clauses: Clauses
    log: Mapping[str, str]

    def _statement(self, query: str, **holes: str) -> str:
        return statement(self.clauses.dialect, query, **holes)

    def _write_rows(self, source: str, key: str, kind: str, **values: str) -> str:
        """Write one statement logging a row for each of a source, or handing it to the next trigger."""
        row = {"source": source, "key": key, "kind": kind}
        if self.clauses.hands:
            return self._statement("hand_rows", **row, **dict.fromkeys(VALUES, "NULL") | values)
        return self._statement("log_rows", **self.log, **row, **list_values(self.log, values))

    def _write_facts(self, source: str, rows: Iterable[Mapping[str, str]]) -> str:
        """Write one statement logging all facts of all rows of a source."""
        together = "\nUNION ALL ".join(self._statement("fact", **holes) for holes in rows)
        fact = {name: f"fact.{name}" for name in ("key", "kind", "column", "old", "new")} | {"column": "fact.name"}
        return self._write_rows(self._statement("facts_of_rows", source=source, facts=together), **fact)

    def fill(self, written: Iterable[Fact]) -> list[dict[str, str]]:
        """Fill the holes of facts."""
        return [self.clauses.holes(fact) for fact in written if self.clauses.is_written(fact)]


class RowBodies(Bodies, frozen=True, kw_only=True):
    """Bodies of triggers that fire for one row after another."""

    def body(self, when: When) -> str:
        clauses = self.clauses
        plan, dialect = clauses.plan, clauses.dialect
        if clauses.steps and when is When.UPDATE:
            # Such a database looks at keys when a statement ends: an earlier row of the statement
            # may have come to the key that this one leaves.
            plan = replace(plan, options=replace(plan.options, deferred=True))
        own = replace(self, clauses=replace(clauses, plan=plan))
        rows = own.fill(child_facts(plan, clauses.child, when) if clauses.child else facts(plan, when))
        if offers(dialect, "statement_trigger"):
            return self._write_facts(ONE_ROW, rows)
        statements = [self._statement("log_row", **self.log, **holes) for holes in rows]
        if offers(dialect, "log_together"):
            if [holes["condition"] for holes in rows] == [ALWAYS]:
                statements = [self._statement("log_row_always", **self.log, **rows[0])]
            parts = [statements[start : start + TOGETHER_ROWS] for start in range(0, len(statements), TOGETHER_ROWS)]
            statements = [self._statement("log_together", **self.log, rows="\nUNION ALL ".join(part)) for part in parts]
        if clauses.steps and plan.options.when is not None:
            sides = {When.INSERT: [Side.NEW], When.DELETE: [Side.OLD]}.get(when, Side)
            asked = replace(clauses, steps=False)
            statements = [*map(asked.holds, sides), *statements]
        body = SEPARATOR.join(statements)
        if when is When.UPDATE and any(column.early for column in clauses.new.columns):
            return self._statement("if_written", **clauses.fill_written_row(), body=body)
        return body

    def by_event(self) -> str:
        """Write the body of one trigger for all events."""
        worked_out = replace(self.clauses, steps=False)
        return self._statement(
            "by_event",
            old_key=worked_out.key(Side.OLD),
            new_key=worked_out.key(Side.NEW),
            moved=worked_out.has_moved(),
            **{event.value: self.body(event) for event in EVERY},
        )


class StatementBodies(Bodies, frozen=True, kw_only=True):
    """Bodies of triggers that see all rows of their statement before and after.

    `only` is a condition on the parents that are spoken of, by `side.key`.
    """

    only: str = ""

    def body(self, when: When) -> str:
        if self.clauses.child is None:
            body = self._own(when)
        elif when is When.TRUNCATE and self.clauses.plan.options.style in VALUED:
            body = self._truncate_children(self.clauses.child)
        else:
            body = self.children(self.clauses.child, when)
        return SEPARATOR.join((self._statement("warn_of_unseen"), body)) if when is When.TRUNCATE else body

    def _own(self, when: When) -> str:
        plan, source = self.clauses.plan, self._source_of_rows(when)
        style = plan.options.style
        # One fact a row without a subquery, which is half the work for each row of a bulk statement.
        if style in (Style.ROW_BACK, Style.IMAGE) and not plan.looks_back:
            if when is When.UPDATE:
                return self._write_each(source)
            if style == Style.IMAGE and when in (When.INSERT, When.DELETE):
                [image] = self.fill(facts(plan, when))
                condition, _ = image.pop("condition"), image.pop("column")
                return self._write_rows(f"{source} WHERE {condition}", **image)
        if when is When.UPDATE and plan.options.when is None and style not in (Style.ROW_BACK, Style.IMAGE):
            return self._write_facts(source, self._list_update_facts())
        written = facts(plan, when)
        if when is When.TRUNCATE and self.clauses.hands and not plan.table.whole_row:
            # What is handed over is one text, which cannot hold the images of a large table.
            written = [replace(fact, image=False, old=False) for fact in written]
        return self._write_facts(source, self.fill(written))

    def _source_of_rows(self, when: When) -> str:
        if when is not When.UPDATE:
            return self._source(Side.NEW if when is When.INSERT else Side.OLD, when)
        # The key decides which row was which: an update that changes it made one go and one come.
        clauses = self.clauses
        rows = [(column, clauses.old.value(column), clauses.new.value(column)) for column in clauses.plan.key]
        same = " AND ".join(compare(clauses.dialect, "same_key", column, old, new) for column, old, new in rows)
        return f"old_rows AS o FULL JOIN new_rows AS n ON {same}"

    def _source(self, side: Side, when: When) -> str:
        """Name the rows on one side; a truncation has none in hand, for they are still in the table."""
        if when is When.TRUNCATE:
            table, child = self.clauses.plan.table, self.clauses.child
            name = table.name if child is None else child.child.name
            return f"{qualify_table(self.clauses.dialect, table.schema, name)} AS o"
        return "old_rows AS o" if side is Side.OLD else "new_rows AS n"

    def _write_each(self, source: str) -> str:
        """Write the one fact that each row of an update tells: it left, came or changed."""
        clauses = self.clauses
        left, came, stayed = filter(clauses.is_written, facts(clauses.plan, When.UPDATE))
        # Beside "left or came" the change need not say "neither left nor came", unless a condition
        # looks at both rows.
        has_condition = clauses.plan.options.when is not None
        changed = clauses.condition(stayed) if has_condition else clauses.has_changed(stayed)
        condition = any_of([clauses.condition(left), clauses.condition(came), changed])
        rows = {
            "left": f"({clauses.missing(Side.NEW)})",
            "came": f"({clauses.missing(Side.OLD)})",
            "old_key": clauses.key(Side.OLD),
            "new_key": clauses.key(Side.NEW),
            **{f"kind_{fact.fate.name.lower()}": clauses.kind(fact) for fact in (left, came, stayed)},
        }
        values = {what: self._statement(f"{what}_of_each", **rows) for what in ("key", "kind")}
        if stayed.image:
            # Of a row that an outer join did not find, an image would be one of NULLs.
            for side in Side:
                there = f"NOT ({clauses.missing(side)})"
                values[side.name.lower()] = self._statement("image_of", there=there, image=clauses.image(side))
        return self._write_rows(f"{source} WHERE {condition}", **values)

    def _list_update_facts(self) -> list[dict[str, str]]:
        """List an update's field facts: the row left, and one a column for a row that came or stayed."""
        clauses = self.clauses
        left, *others = facts(clauses.plan, When.UPDATE)
        count = len(clauses.plan.watched)
        written = [clauses.holes(left)]
        # One fact for both, for each fact costs a single row its own plan node.
        for came, stayed in zip(others[:count], others[count : 2 * count], strict=True):
            fresh = f"({clauses.missing(Side.OLD)})"
            # Where a row came, all columns of the row before are NULL, so a value that is there
            # differs.
            changed = clauses.has_changed(stayed)
            if came.test is Test.FILLED_OR_ALL_EMPTY:
                changed = any_of([changed, all_of([fresh, *clauses.all_empty(came)])])
            kind = f"CASE WHEN {fresh} THEN {clauses.kind(came)} ELSE {clauses.kind(stayed)} END"
            condition = all_of([f"NOT ({clauses.missing(Side.NEW)})", changed])
            written.append(clauses.holes(stayed) | {"kind": kind, "condition": condition})
        return [*written, *map(clauses.holes, others[2 * count :])]

    def _truncate_children(self, child: ChildPlan) -> str:
        """Write the values of a child table, unless the parent may be emptied with it."""
        # The parents' ends may have been logged already, and values after them would be logged of
        # objects that are no more. A read-back is right in either case, for it says nothing of an
        # object that is gone.
        plan, dialect = self.clauses.plan, self.clauses.dialect
        read_back = replace(plan, options=replace(plan.options, style=Style.FIELD_BACK))
        reading = replace(self, clauses=replace(self.clauses, plan=read_back))
        unsure = reading.children(child, When.TRUNCATE)
        if not self.clauses.hands:  # who reads with the writer's rights knows no log
            sure = replace(reading, only=self._statement("not_ended", **self.log))
            holes = {"known": sure.children(child, When.TRUNCATE), "unsure": unsure}
            unsure = self._statement("if_ends_are_seen", log_name=dialect.literal(self.log["log"]), **holes)
        parent = dialect.literal(qualify_table(dialect, plan.table.schema, plan.table.name))
        body = self.children(child, When.TRUNCATE)
        return self._statement("if_parent_stays", parent=parent, body=body, unsure=unsure)

    def children(self, child: ChildPlan, when: When) -> str:
        """Write statements about the rows of a child table, which need no key: what stood there before,
        without what stands now.
        """
        plan = self.clauses.plan
        came = child_facts(plan, child, When.INSERT)
        if plan.options.style == Style.ROW_BACK:
            return self._read_back(came[0], self._both(when, came[0], len(child.watched)))
        if plan.options.style == Style.FIELD_BACK:
            return SEPARATOR.join(self._read_back(fact, self._both(when, fact)) for fact in came)
        gone = {fact.column: fact for fact in child_facts(plan, child, When.DELETE)}
        written = []
        for fact in came:
            old, new = (self._side(side, when, fact) for side in Side)
            if when is not When.INSERT:
                end = gone[fact.column]
                sides = _without(old, new, when)
                written.append(self._values(end, sides, "old") if end.old else self._read_back(end, sides))
            if when in (When.INSERT, When.UPDATE):
                written.append(self._values(fact, _without(new, old, when), "new"))
        return SEPARATOR.join(written)

    def _both(self, when: When, fact: Fact, count: int = 1) -> str:
        """Select what went and what came."""
        old, new = (self._side(side, when, fact, count) for side in Side)
        if when is When.UPDATE:
            return f"({_without(old, new, when)}) UNION ALL ({_without(new, old, when)})"
        return new if when is When.INSERT else old

    def _side(self, side: Side, when: When, fact: Fact, count: int = 1) -> str:
        """Select key and values of the child rows on one side."""
        clauses = self.clauses
        row = clauses.row(side)
        values = [row.text(watched.column) for watched in fact.watched[:count]]
        values = values or [self._statement("text_of_row", row=row.alias)]
        conditions = clauses.under_a_parent(side, may_be_gone=side is Side.OLD and when is not When.TRUNCATE)
        if fact.filled:
            conditions.append(self._statement("present", value=row.value(fact.watched[0].column)))
        return self._statement(
            "child_side",
            key=clauses.key(side),
            values=", ".join(f"{value} AS value{index}" for index, value in enumerate(values)),
            source=self._source(side, when),
            condition=all_of(conditions),
        )

    def _values(self, fact: Fact, sides: str, logged: str) -> str:
        """Log a value for each row of the sides."""
        return self._write_rows(self._among(sides), **self._of_side(fact), **{logged: "side.value0"})

    def _read_back(self, fact: Fact, sides: str) -> str:
        """Log one row for each parent of the sides."""
        parents = f"{self._among(sides)} GROUP BY side.key"
        if self.clauses.hands:
            parents = f"(SELECT side.key FROM {parents}) AS side"
        return self._write_rows(parents, **self._of_side(fact))

    def _among(self, sides: str) -> str:
        if self.only:
            sides = f"SELECT side.* FROM ({sides}) AS side WHERE {self.only}"
        return f"(({sides})) AS side"

    def _of_side(self, fact: Fact) -> dict[str, str]:
        column = "NULL" if fact.column is None else self.clauses.dialect.literal(fact.column)
        return {"key": "side.key", "kind": self.clauses.kind(fact), "column": column}


def _without(side: str, other: str, when: When) -> str:
    if when is not When.UPDATE:
        return side
    # ALL, for a child may have the same value twice, and lose it once.
    return f"{side} EXCEPT ALL {other}"
