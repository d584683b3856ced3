"""What triggers do, as SQL: a statement a fact for row triggers, one statement for all rows where they see them all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eventlog.capture.clauses import Clauses, all_of, any_of, qualified
from eventlog.capture.plan import (
    EVERY,
    VALUED,
    ChildPlan,
    Fact,
    Fate,
    Side,
    Style,
    Test,
    TriggerPlan,
    When,
    child_facts,
    facts,
    listed_kinds,
)
from eventlog.capture.words import Row, kind_text, parameters, present, same_key
from eventlog.core.model import Kind
from eventlog.core.schema import WHOLE_ROW, Column
from eventlog.sql.dialect import Dialect, statement

SEPARATOR = ";\n"
NO_ROW = "-"
"""Stands for a row that there is not, where the database lists columns."""
_mentioned = re.compile(r"\b(old|new|sets)_(\d+)\b")


class Argument(Struct, frozen=True, kw_only=True):
    """A value that a trigger hands to the procedure that it runs: the parameter, its type, and what stands in the call."""

    name: str
    type: str
    value: str


def columns_of(plan: TriggerPlan, child: ChildPlan | None) -> tuple[Column, ...]:
    """The columns of the table that a trigger stands on."""
    own = child.child.columns if child else plan.table.columns
    return tuple([column for column in own if column.name != WHOLE_ROW])


def arguments(dialect: Dialect, target: str, columns: Sequence[Column], body: str) -> list[Argument]:
    """What has to be handed over for this body: a trigger has 32 K at most, so it names no column that is not needed."""
    found = []
    mentioned = {(what, int(number)) for what, number in _mentioned.findall(body)}
    for number, column in enumerate(columns, 1):
        name = dialect.quoted(column.name)
        values = dict(zip(("old", "new"), (f"{alias}.{name}" for alias in dialect.row_names), strict=True))
        values["sets"] = statement(dialect, "sets", column=dialect.literal(column.name))
        for what, value in values.items():
            if (what, number) in mentioned:
                kind = "BOOLEAN" if what == "sets" else f"{target}.{name}%TYPE"
                found.append(Argument(name=f"{what}_{number}", type=kind, value=value))
    return found


class Bodies(Struct, frozen=True, kw_only=True):
    """What bodies are made of; `hands` says that the next trigger writes what this one finds."""

    dialect: Dialect
    plan: TriggerPlan
    child: ChildPlan | None
    log: Mapping[str, str]
    hands: bool = False
    unseen: bool = False

    def _clauses(self, old: str, new: str, *, outer: bool = False) -> Clauses:
        """What SQL says of rows that are called so before and after."""
        columns = columns_of(self.plan, self.child)
        before, after = [
            Row(
                dialect=self.dialect,
                alias=alias,
                columns=columns,
                parameters=parameters(side.name.lower(), columns) if self.dialect.procedural_triggers else {},
            )
            for side, alias in zip(Side, (old, new), strict=True)
        ]
        return Clauses(
            dialect=self.dialect,
            plan=self.plan,
            child=self.child,
            old=before,
            new=after,
            outer=outer,
            unseen=self.unseen,
        )

    def _log_facts(self, source: str, found: Iterable[Mapping[str, str]]) -> str:
        """One statement that writes every fact of every row of a source, or hands them to the next trigger."""
        written = "\nUNION ALL ".join(
            statement(self.dialect, "facts_together" if "values" in holes else "fact", **holes) for holes in found
        )
        return statement(
            self.dialect, _writing("log_facts", hands=self.hands), **self.log, source=source, facts=written
        )

    def listed(self, when: When) -> str:
        """The body of a trigger whose columns the database itself puts in, where the table was altered."""
        by_statement = isinstance(self, StatementBodies)
        clauses = self._clauses("o", "n", outer=True) if by_statement else self._clauses(*self.dialect.row_names)
        source = self._source(clauses, when) if isinstance(self, StatementBodies) else "(VALUES (1)) AS one (row)"
        style = self.plan.listed or Style.FIELD
        old = NO_ROW if when is When.INSERT else clauses.old.alias
        new = clauses.new.alias if when in (When.INSERT, When.UPDATE) else NO_ROW
        row = "listed_image" if style == Style.IMAGE and when is not When.INSERT else "listed_nothing"
        image = statement(self.dialect, row)
        columns = f"eventlog{{columns:{old}:{new}}}"
        listed = statement(self.dialect, "listed_columns", columns=columns, image=image)
        return self._log_facts(f"{source} {listed}", self._listed_facts(clauses, style, when))

    def _listed_facts(self, clauses: Clauses, style: Style, when: When) -> list[dict[str, str]]:
        moves, valued, whole = when is When.UPDATE, style != Style.FIELD_BACK, style == Style.IMAGE
        came, stayed = (kind_text(self.dialect, kind) for kind in listed_kinds(style))
        old, new = ("image.old", "image.new") if valued else ("NULL", "NULL")
        found: list[dict[str, str]] = []

        def add(side: Side, fate: Fate, kind: str, column: str, old: str, new: str, condition: Sequence[str]) -> None:
            fates = clauses.fate(fate) if moves else []
            said = {"key": clauses.key_text(side), "kind": kind, "column": column, "old": old, "new": new}
            found.append({**said, "condition": all_of([*fates, *condition])})

        if when is not When.INSERT:
            kind, first = kind_text(self.dialect, Kind.DELETE_ROW), ["image.place = 1"]
            add(Side.OLD, Fate.LEFT, kind, "NULL", "image.row" if whole else "NULL", "NULL", first)
        if when in (When.INSERT, When.UPDATE):
            filled = [] if whole else [statement(self.dialect, "listed_filled")]
            add(Side.NEW, Fate.CAME, came, "image.name", "NULL", new, filled)
        if moves:
            changed = "image.changed" if whole else statement(self.dialect, "listed_changed")
            add(Side.NEW, Fate.STAYED, stayed, "image.name", old, new, [changed])
        if moves and self.plan.others:
            only = ["image.place = 1", "NOT image.changed", clauses.rows_differ()]
            add(Side.NEW, Fate.STAYED, kind_text(self.dialect, Kind.UPDATE_ROW_BACK), "NULL", "NULL", "NULL", only)
        return found


class RowBodies(Bodies, frozen=True, kw_only=True):
    """Bodies of triggers that fire for one row after another."""

    def body(self, when: When) -> str:
        clauses = self._clauses(*self.dialect.row_names)
        found = child_facts(self.plan, self.child, when) if self.child else facts(self.plan, when)
        if self.dialect.procedural_triggers:  # where conditions hold no queries
            found = [fact for fact in found if fact.test is not Test.LEFT_BEHIND or clauses.may_stand(fact)]
        if not self.dialect.transition_tables:
            statements = self._questions(clauses, when)
            for fact in found:
                if fact.each:
                    statements.append(self._log_together(clauses, fact))
                else:
                    statements.append(statement(self.dialect, "log_row", **{**self.log, **clauses.holes(fact)}))
            return SEPARATOR.join(statements)
        return self._log_facts("(VALUES (1)) AS one (row)", holes_of(clauses, found))

    def by_event(self) -> str:
        """What one trigger does that fires for every event."""
        clauses = self._clauses(*self.dialect.row_names)
        return statement(
            self.dialect,
            "by_event",
            old_key=clauses.key_text(Side.OLD),
            new_key=clauses.key_text(Side.NEW),
            moved=clauses.keys_differ(),
            **{event.value: self.body(event) for event in EVERY},
        )

    def _questions(self, clauses: Clauses, when: When) -> list[str]:
        """What has to be asked before, where conditions hold no queries."""
        if not self.dialect.procedural_triggers or self.plan.options.when is None:
            return []
        sides = {When.INSERT: (Side.NEW,), When.DELETE: (Side.OLD,)}.get(when, tuple(Side))
        return [clauses.question(side) for side in sides]

    def _log_together(self, clauses: Clauses, fact: Fact) -> str:
        """All columns of a row, for which it is asked once whether they are written."""
        each = clauses.each(fact)
        rows = SEPARATOR.join(statement(self.dialect, "log_row", **{**self.log, **holes}) for holes in each)
        holes = {**self.log, **clauses.holes(fact), "rows": rows, "values": values_of(each)}
        return statement(self.dialect, "log_together", **holes)


class StatementBodies(Bodies, frozen=True, kw_only=True):
    """Bodies of triggers that see all rows of their statement before and after."""

    def body(self, when: When) -> str:
        clauses = self._clauses("o", "n", outer=True)
        if when is When.TRUNCATE:
            return SEPARATOR.join((statement(self.dialect, "warn_of_unseen"), self._all(clauses, when)))
        return self._all(clauses, when)

    def _all(self, clauses: Clauses, when: When) -> str:
        if self.child is not None:
            if when is When.TRUNCATE and self.plan.options.style in VALUED:
                return self._truncated(clauses, self.child)
            return self._child_statements(clauses, self.child, when)
        return self._own(clauses, when)

    def _own(self, clauses: Clauses, when: When) -> str:
        source = self._source(clauses, when)
        if when is When.UPDATE and self.plan.options.style == Style.ROW_BACK and not self.plan.looks_back:
            return self._log_each(clauses, source)
        by_field = self.plan.options.style not in (Style.ROW_BACK, Style.IMAGE)
        if when is When.UPDATE and self.plan.options.when is None and by_field:
            return self._log_facts(source, self._left_or_filled(clauses))
        return self._log_facts(source, holes_of(clauses, facts(self.plan, when)))

    def _child_statements(self, clauses: Clauses, child: ChildPlan, when: When, only: str = "") -> str:
        writing = _ChildStatements(clauses=clauses, child=child, log=self.log, hands=self.hands, only=only)
        return SEPARATOR.join(writing.written(when))

    def _truncated(self, clauses: Clauses, child: ChildPlan) -> str:
        """The values of a child table, unless the parent may be emptied with it.

        The parents' ends may have been logged already, and values after them would be told of objects that are no more. A
        read-back is right in either case, for it says nothing of an object that is gone.
        """
        options = replace(self.plan.options, style=Style.FIELD_BACK)
        reading = replace(clauses, plan=replace(self.plan, options=options))
        unsure = self._child_statements(reading, child, When.TRUNCATE)
        if not self.hands:  # who reads with the writer's rights knows no log
            not_ended = statement(self.dialect, "not_ended", **self.log)
            known = self._child_statements(reading, child, When.TRUNCATE, not_ended)
            log_name = self.dialect.literal(self.log["log"])
            unsure = statement(self.dialect, "if_ends_are_seen", log_name=log_name, known=known, unsure=unsure)
        return statement(
            self.dialect,
            "if_parent_stays",
            parent=self.dialect.literal(qualified(self.dialect, self.plan.table.schema, self.plan.table.name)),
            body=self._child_statements(clauses, child, When.TRUNCATE),
            unsure=unsure,
        )

    def _source(self, clauses: Clauses, when: When) -> str:
        if when is When.TRUNCATE:
            return f"{qualified(self.dialect, self.plan.table.schema, self.plan.table.name)} AS o"
        if when is not When.UPDATE:
            return "new_rows AS n" if when is When.INSERT else "old_rows AS o"
        same = [
            same_key(self.dialect, column, clauses.old.value(column), clauses.new.value(column))
            for column in self.plan.key
        ]
        return f"old_rows AS o FULL JOIN new_rows AS n ON {' AND '.join(same)}"

    def _log_each(self, clauses: Clauses, source: str) -> str:
        """An update's row-back facts in one: half the work for each row of a bulk statement."""
        left, came, stayed = facts(self.plan, When.UPDATE)
        conditions = [clauses.condition(fact) for fact in (left, came)]
        # Beside "left or came" the change need not say "neither left nor came", unless a condition looks at both rows.
        conditions.append(clauses.changed(stayed) if self.plan.options.when is None else clauses.condition(stayed))
        holes = {
            "left": f"({clauses.missing(Side.NEW)})",
            "came": f"({clauses.missing(Side.OLD)})",
            "old_key": clauses.key(Side.OLD),
            "new_key": clauses.key(Side.NEW),
            **{f"kind_{fact.fate.name.lower()}": _kind(clauses, fact) for fact in (left, came, stayed)},
            "condition": any_of(conditions),
        }
        return statement(self.dialect, _writing("log_each", hands=self.hands), **self.log, source=source, **holes)

    def _left_or_filled(self, clauses: Clauses) -> list[dict[str, str]]:
        """An update's field facts, one a column whether the row came or stayed: each costs a single row its own plan node.

        Where a row came, all columns of the row before are NULL, so a value that is there differs.
        """
        left, *others = facts(self.plan, When.UPDATE)
        count = len(self.plan.watched)
        pairs = zip(others[:count], others[count : 2 * count], strict=True)
        filled = [self._came_or_stayed(clauses, came, stayed) for came, stayed in pairs]
        return [clauses.holes(left), *filled, *map(clauses.holes, others[2 * count :])]

    def _came_or_stayed(self, clauses: Clauses, came: Fact, stayed: Fact) -> dict[str, str]:
        fresh, told = f"({clauses.missing(Side.OLD)})", clauses.changed(stayed)
        if came.test is Test.FILLED_OR_ALL_EMPTY:
            told = any_of([told, all_of([fresh, *clauses.all_empty(came)])])
        return clauses.holes(stayed) | {
            "kind": f"CASE WHEN {fresh} THEN {_kind(clauses, came)} ELSE {_kind(clauses, stayed)} END",
            "condition": all_of([f"NOT ({clauses.missing(Side.NEW)})", told]),
        }


class _ChildStatements(Struct, frozen=True, kw_only=True):
    """Statements about the rows of a child table, which need no key: what stood there before, without what stands now.

    `only` is a condition on the parent's `side.key`.
    """

    clauses: Clauses
    child: ChildPlan
    log: Mapping[str, str]
    hands: bool
    only: str = ""

    def written(self, when: When) -> list[str]:
        if self.clauses.plan.options.style == Style.ROW_BACK:
            values = tuple(watched.column for watched in self.child.watched)
            fact = child_facts(self.clauses.plan, self.child, When.INSERT)[0]
            sides = self._both(when, [self._side(side, when, fact, len(values)) for side in Side])
            return [self._query("log_child_reads", fact, sides)]
        return [
            text for fact in child_facts(self.clauses.plan, self.child, When.INSERT) for text in self._field(fact, when)
        ]

    def _field(self, fact: Fact, when: When) -> list[str]:
        old, new = (self._side(side, when, fact, 1) for side in Side)
        if self.clauses.plan.options.style == Style.FIELD_BACK:
            return [self._query("log_child_reads", fact, self._both(when, [old, new]))]
        written = []
        if when is not When.INSERT:
            removed = child_facts(self.clauses.plan, self.child, When.DELETE)
            gone = next(one for one in removed if one.column == fact.column)
            written.append(
                self._query(f"log_child_{'values' if gone.old else 'reads'}", gone, _without(old, new, when))
            )
        if when in (When.INSERT, When.UPDATE):
            written.append(self._query("log_child_values", fact, _without(new, old, when)))
        return written

    def _side(self, side: Side, when: When, fact: Fact, count: int) -> str:
        clauses = self.clauses
        row = clauses.row(side)
        values = [row.text(watched.column) for watched in fact.watched[:count]]
        values = values or [statement(clauses.dialect, "text_of_row", row=row.alias)]
        gone = side is Side.OLD and when is not When.TRUNCATE
        conditions = clauses.under_a_parent(side, may_be_gone=gone)
        if fact.filled:
            conditions.append(present(clauses.dialect, row.value(fact.watched[0].column)))
        return statement(
            clauses.dialect,
            "child_side",
            key=clauses.key(side),
            values=", ".join(f"{value} AS value{place}" for place, value in enumerate(values)),
            source=self._source(side, when),
            condition=all_of(conditions),
        )

    def _source(self, side: Side, when: When) -> str:
        if when is When.TRUNCATE:
            table = self.clauses.plan.table
            return f"{qualified(self.clauses.dialect, table.schema, self.child.child.name)} AS o"
        return "old_rows AS o" if side is Side.OLD else "new_rows AS n"

    def _both(self, when: When, sides: list[str]) -> str:
        old, new = sides
        if when is When.INSERT:
            return new
        if when is not When.UPDATE:
            return old
        return f"({_without(old, new, when)}) UNION ALL ({_without(new, old, when)})"

    def _query(self, query: str, fact: Fact, sides: str) -> str:
        literal = self.clauses.dialect.literal
        return statement(
            self.clauses.dialect,
            _writing(query, hands=self.hands),
            **self.log,
            kind=_kind(self.clauses, fact),
            column=literal(fact.column) if fact.column is not None else "NULL",
            old="side.value0" if fact.old else "NULL",
            new="side.value0" if fact.new else "NULL",
            sides=f"(SELECT side.* FROM ({sides}) AS side WHERE {self.only})" if self.only else f"({sides})",
        )


def holes_of(clauses: Clauses, found: Iterable[Fact]) -> list[dict[str, str]]:
    """What fills the holes of facts; one that stands for several log rows has their values."""
    return [clauses.holes(fact) | ({"values": values_of(clauses.each(fact))} if fact.each else {}) for fact in found]


def values_of(each: Iterable[Mapping[str, str]]) -> str:
    """Kind, column, old and new value of log rows, as a list of rows."""
    return ",\n  ".join(f"({one['kind']}, {one['column']}, {one['old']}, {one['new']})" for one in each)


def _writing(query: str, *, hands: bool) -> str:
    return query.replace("log_", "hand_", 1) if hands else query


def _kind(clauses: Clauses, fact: Fact) -> str:
    return kind_text(clauses.dialect, fact.kind)


def _without(side: str, other: str, when: When) -> str:
    return f"{side} EXCEPT ALL {other}" if when is When.UPDATE else side
