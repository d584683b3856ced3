"""Turns facts into SQL: whose key, which values, under which conditions; for rows called by any two
names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.capture.column_sql import PREFIX, Row, compare, is_unseen, join_texts, on_lines, parameters
from eventlog.capture.plan import ChildPlan, Fact, Fate, Side, Test, TriggerPlan
from eventlog.core.model import Kind
from eventlog.core.schema import WHOLE_ROW, Attribute, Child, Column
from eventlog.core.sql_types import Category, longest
from eventlog.sql.dialect import Dialect, offers, statement

ALWAYS = "(1 = 1)"
READ_BACK = {
    Kind.INSERT_FIELD: Kind.INSERT_FIELD_BACK,
    Kind.UPDATE_FIELD: Kind.UPDATE_FIELD_BACK,
    Kind.REPLACE_FIELD: Kind.UPDATE_FIELD_BACK,
}
"""The kind of a fact about a column whose values a trigger cannot read."""


class Clauses(Struct, frozen=True, kw_only=True):
    """The SQL of one table's facts.

    `child` is set when the table is a child; keys are then the parent's.

    `outer` says that rows before and after come from an outer join, where a row that is not there
    is all NULL. `steps` says that the trigger keeps in variables what it has worked out before: keys,
    whether they differ, and what a condition says, for its conditions hold no queries. `unseen` says
    that a child's parent cannot be looked up, and is taken for there. `hands` says that the next
    trigger writes what this one finds.
    """

    dialect: Dialect
    plan: TriggerPlan
    old: Row
    new: Row
    child: ChildPlan | None = None
    outer: bool = False
    steps: bool = False
    unseen: bool = False
    hands: bool = False

    def holes(self, fact: Fact) -> dict[str, str]:
        """Fill the holes of one log row."""
        holes = {"key": self.key(fact.side), "condition": self.condition(fact), "kind": self.kind(fact)}
        column = "NULL" if fact.column is None else self.dialect.literal(fact.column)
        return holes | {"column": column} | {side.name.lower(): self._value(fact, side) for side in Side}

    def is_written(self, fact: Fact) -> bool:
        """Return True if a fact is written here; facts beside an image are those it lacks."""
        if fact.test is Test.LEFT_BEHIND and self.steps and self._find_left_rows(fact.side):
            return False
        return not fact.beside or not self._is_read(fact)

    def kind(self, fact: Fact) -> str:
        """Write the number of the fact's kind."""
        kind = fact.kind if self._is_read(fact) else READ_BACK.get(fact.kind, fact.kind)
        # The constants have the types of the log's columns, which are not for a writer to name.
        is_declared = offers(self.dialect, "constant") and not self.hands
        return f"{PREFIX}kind_{kind:d}" if is_declared else f"{kind:d}"

    def _is_read(self, fact: Fact) -> bool:
        """Return True unless the fact is about a value that the trigger cannot read, and the publisher reads."""
        return fact.column is None or self._is_seen(fact.watched[0].column)

    def _value(self, fact: Fact, side: Side) -> str:
        is_logged = fact.old if side is Side.OLD else fact.new
        if not (is_logged and self._is_read(fact)):
            return "NULL"
        logged = self._as_logged(fact)
        return logged.image(side) if fact.image else logged.row(side).text(fact.watched[0].column)

    def _as_logged(self, fact: Fact) -> Clauses:
        """Take the row after an update with what foreign keys to the row itself have made of it."""
        table = self.plan.table
        is_updated = fact.fate in (Fate.CAME, Fate.STAYED) and self.child is None and not table.view
        if not is_updated or not offers(self.dialect, "value_now"):
            return self
        followed = [column for column in self.new.columns if column.references == table.name and column.key is None]
        standing = Row(dialect=self.dialect, alias="standing")
        match = [f"{standing.value(column)} = {self.new.value(column)}" for column in self.plan.key]
        by_name = {column.name: column for column in self.new.columns}
        values = {}
        for column in followed:
            referred = by_name[column.referenced_column or self.plan.key[0].name]
            values[column.name] = statement(
                self.dialect,
                "value_now",
                key_before=self.old.value(referred),
                key_after=self.new.value(referred),
                value=self.new.value(column),
                column=self.dialect.quote(column.name),
                target=qualify_table(self.dialect, table.schema, table.name),
                match=all_of(match),
            )
        return replace(self, new=replace(self.new, parameters=values))

    def image(self, side: Side) -> str:
        """Write the image of a row: a text of JSON with the number of its definition and the texts of
        its columns; NULL where it would be too long for a log, and the row is read back.
        """
        row = self.row(side)
        columns = [attribute.column for attribute in image_attributes(self.dialect, self.plan)]
        image = write_image(self.dialect, self.plan.number, [write_value(row, column) for column in columns])
        if not offers(self.dialect, "image_length"):
            return image
        lengths = [
            statement(self.dialect, "image_length", value=row.value(column), text=row.text(column))
            for column in columns
            if may_be_long(self.dialect, column)
        ]
        if not lengths:
            return image
        return statement(self.dialect, "image_within", image=image, length=" + ".join(lengths))

    def whole_row(self, side: Side) -> str:
        """Write the canonical text of a row (decision 60): its values by the names of its columns, in their
        order.
        """
        parts = []
        # In the order of names: an identity must not change when columns are put into another
        # order.
        columns = sorted([watched.column for watched in self.plan.watched], key=attrgetter("name"))
        for column in columns:
            name = self.dialect.literal(f",{json.dumps(column.name, ensure_ascii=False)}:")
            text = self.row(side).text(column)
            parts.append(statement(self.dialect, "whole_row_part", name=name, text=text))
        return statement(self.dialect, "whole_row", parts=join_texts(self.dialect, parts))

    def row(self, side: Side) -> Row:
        return self.old if side is Side.OLD else self.new

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """List the table's own columns in the key."""
        return self.plan.key if self.child is None else _parent_key(self.child.child)

    def key(self, side: Side) -> str:
        """Write the key of the row on one side."""
        if self.steps:
            return _variable(side, "key")
        if self.plan.table.whole_row:
            name = self.dialect.literal(f"{WHOLE_ROW}=")
            return statement(self.dialect, "whole_row_key", name=name, text=self.whole_row(side))
        parent_key = self.plan.table.key if self.child is not None else None
        return self.row(side).key(self.key_columns, parent_key)

    def condition(self, fact: Fact) -> str:
        """Write all conditions for logging the fact, in parentheses."""
        parts = [*self.fate(fact.fate), *self._test(fact)]
        if self.child is not None:
            parts += self.under_a_parent(fact.side, may_be_gone=fact.side is Side.OLD)
        elif self.plan.options.when is not None:
            # A row that stays counts if the condition held on either side: who gets it must hear
            # that it left, too.
            stays = fact.fate is Fate.STAYED
            parts.append(any_of(map(self.holds, Side)) if stays else self.holds(fact.side))
        if fact.filled and self._is_read(fact):
            row = self._as_logged(fact).row(fact.side)
            parts.append(statement(self.dialect, "present", value=row.value(fact.watched[0].column)))
        return all_of(parts)

    def has_moved(self) -> str:
        """Write the condition of keys that differ."""
        if self.steps:
            return "(moved > 0)"
        if self.plan.table.whole_row:
            before, after = (self.whole_row(side) for side in Side)
            return statement(self.dialect, "differs_as_text", before=before, after=after)
        return any_of(map(self._differs, self.key_columns))

    def missing(self, side: Side) -> str:
        """Write the condition of an outer join that found no row on this side."""
        return statement(self.dialect, "absent", value=self.row(side).value(self.key_columns[0]))

    def has_changed(self, fact: Fact) -> str:
        """Write the condition of a change in what the fact watches."""
        whole = self.plan.whole_rows if self.child is None else not self.child.watched
        if whole and offers(self.dialect, "row_differs"):
            # Such a trigger does not age with its columns. With .* a row is meant also where the
            # table has a column of that name.
            before, after = f"{self.old.alias}.*", f"{self.new.alias}.*"
            return statement(self.dialect, "row_differs", before=before, after=after)
        return any_of([self._differs(watched.column) for watched in fact.watched])

    def fill_written_row(self) -> dict[str, str]:
        """Fill the holes of a look at an update's row.

        Columns whose new value triggers see in any case cannot tell, so they are left out.
        """
        columns, table = self.new.columns, self.plan.table
        name = table.name if self.child is None else self.child.child.name
        changed = [self._differs(column) for column in columns if not column.early]
        match = []
        for column in columns:
            if column.early or column in self.plan.key or not self.plan.key or self.child:
                sides = {"before": f"written.{self.dialect.quote(column.name)}", "after": self.new.value(column)}
                match.append(statement(self.dialect, "alike", **sides))
        target = qualify_table(self.dialect, table.schema, name)
        return {"changed": any_of(changed or ["(1 = 0)"]), "target": target, "match": all_of(match)}

    def holds(self, side: Side) -> str:
        """Write what `when` says of one side: of the class's own row, or of a child row's parent, which
        must be there.
        """
        if self.steps:
            return f"{_variable(side, 'holds')} > 0"
        if self.child is not None:
            return self._is_current(side, "parent_is_there")
        asked_of = self.plan.table.columns
        if self.dialect.ddl.procedural_triggers and self.plan.options.when is not None:
            # Each column that a question brings along takes room in the trigger there: only those
            # that `when` may name.
            written = self.plan.options.when.replace('""', '"').casefold()
            named = tuple(column for column in asked_of if column.name.casefold() in written)
            # A query needs a column, also where the condition names none.
            asked_of = named or self.plan.key
        return statement(
            self.dialect,
            "holds",
            columns=self.row(side).list(asked_of),
            row=self.dialect.quote(self.plan.table.name),
            condition=f"({self.plan.options.when})",
            answer=_variable(side, "holds"),
        )

    def _is_current(self, side: Side, query: str) -> str:
        """Write the condition of an existing row of the class with this key, to which `when`
        applies.
        """
        # `when` speaks of the parent by its own name, unless a row of the child is called so.
        name = self.plan.table.name
        if name.casefold() in {self.old.alias.casefold(), self.new.alias.casefold(), "old", "new"}:
            name = f"{name}_"
        parent = Row(dialect=self.dialect, alias=self.dialect.quote(name))
        target = qualify_table(self.dialect, self.plan.table.schema, self.plan.table.name)
        value = parent.match_value
        columns = self.plan.table.columns
        if self.plan.options.when is not None and any(column.made for column in columns):
            # As in a trigger's own row, `when` sees values of types that somebody made in plain ones.
            seen = Row(dialect=self.dialect, alias="parent", columns=columns)
            target = f"(SELECT {seen.list(columns)} FROM {target} AS parent)"
            value = parent.read_value
        pairs = zip(self.plan.key, self.key_columns, strict=True)
        match = " AND ".join(f"{value(own)} = {self.row(side).value(held)}" for own, held in pairs)
        return statement(
            self.dialect,
            query,
            parent=target,
            row=parent.alias,
            match=match,
            condition=f"({self.plan.options.when or '1 = 1'})",
            answer=_variable(side, "holds"),
        )

    def under_a_parent(self, side: Side, *, may_be_gone: bool) -> list[str]:
        """Write conditions for a child's row: it names a parent, and the parent is not gone with
        it.
        """
        parts = [statement(self.dialect, "present", value=self.row(side).value(column)) for column in self.key_columns]
        asked = may_be_gone and not self.steps and not self.unseen
        if asked or self.plan.options.when is not None:
            parts.append(self.holds(side))
        return parts

    def fate(self, fate: Fate) -> list[str]:
        """Write the conditions of an update with this fate."""
        if fate is Fate.ANY:
            return []
        if not self.outer:
            moved = self.has_moved()
            return [f"NOT {moved}" if fate is Fate.STAYED else moved]
        gone, fresh = self.missing(Side.NEW), self.missing(Side.OLD)
        return {Fate.LEFT: [gone], Fate.CAME: [fresh], Fate.STAYED: [f"NOT ({gone})", f"NOT ({fresh})"]}[fate]

    def _test(self, fact: Fact) -> list[str]:
        match fact.test:
            case Test.NONE:
                return []
            case Test.FILLED_OR_ALL_EMPTY:
                return [self._is_filled_or_all_empty(fact)]
            case Test.LEFT_BEHIND:
                return self._find_left_rows(fact.side)
            case Test.CHANGED:
                return [self.has_changed(fact)]
            case Test.CHANGED_OR_MOVED:
                return [any_of([self.has_changed(fact), self.has_moved()])]

    def _find_left_rows(self, side: Side) -> list[str]:
        """Write the conditions of something under the key: a row `when` applies to, or child rows
        waiting for one.
        """
        asked = self.plan.options
        if asked.when is not None:
            return [self._is_current(side, "stands")]
        # Another transaction's row is seen by nobody yet, and a foreign owner's tables are not
        # read: there it may always.
        if asked.deferred or asked.foreign:
            return []
        return [any_of([self._find_children(side, child.child) for child in self.plan.children])]

    def _find_children(self, side: Side, child: Child) -> str:
        existing = Row(dialect=self.dialect, alias="standing")
        pairs = zip(_parent_key(child), self.plan.key, strict=True)
        match = [f"{existing.match_value(held)} = {self.row(side).value(own)}" for held, own in pairs]
        return statement(
            self.dialect,
            "stands",
            parent=qualify_table(self.dialect, self.plan.table.schema, child.name),
            row=existing.alias,
            match=all_of(match),
            condition=ALWAYS,
        )

    def all_empty(self, fact: Fact) -> list[str]:
        """Write the condition of NULL in all columns of the fact."""
        row = self.row(fact.side)
        return [statement(self.dialect, "absent", value=row.value(watched.column)) for watched in fact.watched]

    def _is_filled_or_all_empty(self, fact: Fact) -> str:
        if len(fact.watched) == 1 or not self._is_read(fact):
            return ALWAYS
        filled = statement(self.dialect, "present", value=self.row(fact.side).value(fact.watched[0].column))
        if not all(self._is_seen(watched.column) for watched in fact.watched):
            # What cannot be read is always logged, so the object is not lost.
            return filled
        return any_of([filled, all_of(self.all_empty(fact)[1:])])

    def _is_seen(self, column: Column) -> bool:
        return not is_unseen(self.dialect, column)

    def _differs(self, column: Column) -> str:
        if not self._is_seen(column):
            # It cannot be compared, but whether the statement writes the column is known.
            return parameters("sets", self.new.columns)[column.name]
        return compare(self.dialect, "differs", column, self.old.value(column), self.new.value(column))


def _parent_key(child: Child) -> tuple[Column, ...]:
    """List the columns of a child table that hold its parent's key, in the order of that."""
    by_name = {column.name: column for column in child.columns}
    return tuple(by_name[name] for name in child.parent_key)


def image_attributes(dialect: Dialect, plan: TriggerPlan) -> list[Attribute]:
    """List the attributes of an image in order: those watched and readable by a trigger."""
    return [attribute for attribute in plan.watched if not is_unseen(dialect, attribute.column)]


def image_columns(dialect: Dialect, plan: TriggerPlan) -> tuple[str, ...]:
    """Name the columns of an image in its order."""
    return tuple([attribute.name for attribute in image_attributes(dialect, plan)])


SHORT_CHARACTERS: Final = 8000
"""A text of so many is a short one also when its characters have four bytes, or two for one."""


def write_value(row: Row, column: Column) -> str:
    """Write the text of a value for an image, as a long one where it may not fit among short ones."""
    text, long_text = row.text(column), row.dialect.ddl.long_text
    if long_text is None or (longest(column.type) or 0) <= SHORT_CHARACTERS:
        return text
    return long_text.format(text=text)


def write_image(dialect: Dialect, number: int, texts: Sequence[str]) -> str:
    """Write an image as SQL: a JSON array of the number and the texts."""
    items = [dialect.literal(str(number)), *texts]
    if offers(dialect, "image"):
        return statement(dialect, "image", items=on_lines(dialect, items, ", "))
    if offers(dialect, "image_begin"):
        first, *others = [", ".join(items[start : start + 100]) for start in range(0, len(items), 100)]
        pieces = [statement(dialect, "image_begin", items=first)]
        pieces += [statement(dialect, "image_piece", items=piece) for piece in others]
    else:
        pieces = [statement(dialect, "image_begins", text=dialect.literal(f'["{number}"'))]
        pieces += [statement(dialect, "image_value", text=text) for text in texts]
    return join_texts(dialect, [*pieces, dialect.literal("]")])


FEW_CHARACTERS: Final = 4000
"""A column that may have no more is not measured before an image is made."""


def may_be_long(dialect: Dialect, column: Column) -> bool:
    """Return True if a value may be too long for an image: no writer should pay for it."""
    # Where values have types of their own, whatever a column says, any may be.
    if not dialect.typed_columns:
        return True
    if column.made is None and column.category not in (Category.STRING, Category.OCTET):
        return False
    length = longest(column.type)
    return length is None or length > FEW_CHARACTERS


def _variable(side: Side, what: str) -> str:
    """Name the variable of a trigger for this finding about one side of the row."""
    return f"{side.name.lower()}_{what}"


def all_of(parts: Iterable[str]) -> str:
    return _join_conditions(parts, "AND") or ALWAYS


def any_of(parts: Iterable[str]) -> str:
    return _join_conditions(parts, "OR")


def _join_conditions(parts: Iterable[str], word: str) -> str:
    listed = [*parts]
    line = f" {word} ".join(listed)
    # SQL*Plus takes no line of more than 2499 characters, and a DBA may run what we print.
    if len(line) >= 120:
        line = f"\n  {word} ".join(listed)
    return line and f"({line})"


def qualify_table(dialect: Dialect, schema: str | None, name: str) -> str:
    """Write a table's name for a trigger's text."""
    return dialect.qualify(schema if dialect.ddl.qualified_in_triggers else None, name)
