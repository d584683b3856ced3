"""Plans what the triggers of a class watch: pure, from its table and the options of `eventlog
track`.

And which log rows each event of a table writes, under which conditions; the same for every
database. A fact is one log row that a trigger writes when its condition holds. For an update the
rows before and after are seen together; a row whose key changed has *left* under its old key and
*come* under its new one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from enum import Enum, StrEnum, auto

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import InstallError, UsageError
from eventlog.core.model import Kind
from eventlog.core.schema import Attribute, Child, Column, Table
from eventlog.core.tablekey import SPECIAL
from eventlog.tracked.options import Style, TriggerOptions, attribute_names, divide_attributes


class ChildPlan(Struct, frozen=True, kw_only=True):
    """A child table and what is watched of it."""

    child: Child
    watched: tuple[Attribute, ...]


class TriggerPlan(Struct, frozen=True, kw_only=True):
    """What the triggers of one class have to do. `function_owner` is the log's owner, who is to own what
    triggers run, where somebody else makes them.
    """

    table: Table
    options: TriggerOptions
    watched: tuple[Attribute, ...]
    children: tuple[ChildPlan, ...] = ()
    function_owner: str | None = None
    number: int = 1
    """The number of the definition by which images are written."""

    @property
    def remembered(self) -> tuple[str, ...]:
        """List the watched attributes, where columns were left out; with all of them, new columns may come in."""
        if not self.options.exclude:
            return ()
        watched = itertools.chain(self.watched, *(child.watched for child in self.children))
        return tuple(attribute.name for attribute in watched)

    @property
    def key(self) -> tuple[Column, ...]:
        """List the columns of the table's own key."""
        if self.table.whole_row:
            return ()
        return self.table.key_columns

    @property
    def looks_back(self) -> bool:
        """Return True if a key left by a row may still mean something its delete does not tell."""
        if self.table.view or self.table.whole_row:
            return False
        # Nobody could say whether the condition holds for a row there: a foreign owner's table is
        # not read (decision 29).
        if self.options.foreign and self.options.when is not None:
            return False
        # Another row may have the key already, where keys may wait for the end of their
        # transaction. Or child rows stand there and wait for a parent that comes again, whose
        # values nobody would tell anew.
        waits = bool(self.children) and self.options.style != Style.ROW_BACK
        return self.options.deferred or waits

    @property
    def whole_rows(self) -> bool:
        """Return True if any change of a row counts, and nothing but its key is logged."""
        asked = self.options
        is_limited = asked.columns or asked.exclude or asked.when or self.table.view
        return asked.style == Style.ROW_BACK and not is_limited


def plan(table: Table, options: TriggerOptions | None = None) -> TriggerPlan:
    """Plan the triggers; raise InstallError where the table cannot be captured, UsageError where the
    options do not fit it.
    """
    options = options or TriggerOptions()
    _check_key(table)
    if options.style == Style.IMAGE and (table.view or options.deferred):
        why = "is a view" if table.view else "may have two rows with one key until a transaction ends"
        raise UsageError(
            f"{table.name} {why}, so no trigger can tell which rows before and after a change are one:"
            " track it with --events row-back."
        )
    if table.whole_row:
        # Refuses what would look at a row for a second time: without a key nobody finds it again.
        if table.view:
            message = f"{table.name} is a view; --whole-row is for tables."
            raise UsageError(message, hint="Track the tables that it reads.")
        if options.style != Style.IMAGE:
            message = f"Rows of {table.name} cannot be read back by a key: --whole-row logs images."
            raise UsageError(message, hint="Leave out --events, or use --events image.")
        if options.follow_ddl:
            message = f"{table.name} is tracked with --whole-row; --follow-ddl cannot follow that."
            hint = "Leave out --follow-ddl, and set publisher.follow = true."
            raise UsageError(message, hint=hint)
        if options.when:
            keyless = f"{table.name} has none with --whole-row"
            message = f"--when asks about a row by its key, and {keyless}."
            raise UsageError(message, hint="Leave out --when, or name a key with --key.")
    chosen = _choose_columns(table, options)
    children = [ChildPlan(child=child, watched=_of(chosen, child.name)) for child in table.children]
    names = {attribute.name for attribute in chosen}
    options = replace(options, repeated=tuple(name for name in options.repeated if name in names))
    # Where only the key or child tables are of interest, nothing would tell of an insert but a
    # column of the key.
    first = table.key_columns[0]
    return TriggerPlan(
        table=table,
        options=options,
        watched=_of(chosen, None) or (Attribute(name=first.name, column=first),),
        children=tuple(child for child in children if child.watched),
    )


def _of(chosen: Iterable[Attribute], child: str | None) -> tuple[Attribute, ...]:
    return tuple(attribute for attribute in chosen if attribute.child == child)


def _choose_columns(table: Table, options: TriggerOptions) -> list[Attribute]:
    known = attribute_names(table)
    for name in (*options.columns, *options.exclude):
        if name.casefold() not in known:
            known_as = ", ".join(table.attributes) or "none"
            problem = f"{table.name} has no column {name} outside its key"
            raise UsageError(f"{problem}; it has {known_as}.")
    chosen, _ = divide_attributes(table, options.columns, options.exclude)
    if not chosen and table.attributes:
        nothing = f"With these columns left out, nothing of {table.name} is watched"
        raise UsageError(f"{nothing}; leave out fewer.")
    return chosen


def _check_key(table: Table) -> None:
    if not table.key:
        why = "no column whose name begins with pk_"
        hint = "Name its key columns pk_…."
        if not table.view:
            why = "no primary key, and no unique index over columns that are NOT NULL"
            hint = (
                "Give it one, use --key A,B if you know which columns identify a row,"
                " --whole-row if none do, or track its parent with --child."
            )
        message = f"{table.name} has {why}, so a change could not say which row it is about."
        raise InstallError(message, hint=hint)
    for name in table.key:
        if set(name) & set(SPECIAL) or name != name.strip(" "):
            column = f"The key column {name!r} of {table.name}"
            message = f"{column} has a character that a table_key cannot carry."
            raise InstallError(message, hint=f"Rename it; none of {' '.join(SPECIAL)} may be in it.")


class When(StrEnum):
    """The statements that triggers fire for."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    TRUNCATE = "truncate"


EVERY = (When.INSERT, When.UPDATE, When.DELETE)
"""What one trigger fires for where it can ask which it was."""


class Side(Enum):
    OLD = 0
    NEW = 1


class Fate(Enum):
    """What an update did to the object, or to a child's place under its parent."""

    ANY = auto()
    LEFT = auto()
    CAME = auto()
    STAYED = auto()


class Test(Enum):
    """What must hold for the columns that a fact is about."""

    NONE = auto()
    FILLED_OR_ALL_EMPTY = auto()
    CHANGED = auto()
    CHANGED_OR_MOVED = auto()
    LEFT_BEHIND = auto()


class Fact(Struct, frozen=True, kw_only=True):
    """One log row: its kind, whose key it has, the column, which of its values, and when it is
    written.

    `filled` asks that the side has a value in the first of the watched columns. `image` says that
    its values are whole rows; `beside` that it tells a column that no image can have, for the
    trigger cannot read it.
    """

    kind: Kind
    side: Side
    fate: Fate = Fate.ANY
    test: Test = Test.NONE
    filled: bool = False
    watched: tuple[Attribute, ...] = ()
    column: str | None = None
    old: bool = False
    new: bool = False
    image: bool = False
    beside: bool = False


_inserted = {
    Style.FIELD: Kind.INSERT_FIELD,
    Style.FIELD_REPLACE: Kind.INSERT_FIELD,
    Style.FIELD_BACK: Kind.INSERT_FIELD_BACK,
}
_updated = {
    Style.FIELD: Kind.UPDATE_FIELD,
    Style.FIELD_REPLACE: Kind.REPLACE_FIELD,
    Style.FIELD_BACK: Kind.UPDATE_FIELD_BACK,
}


def facts(plan: TriggerPlan, when: When) -> list[Fact]:
    """List the facts a statement on the class's own table logs for each row."""
    if when is When.UPDATE and plan.table.whole_row:  # a row that has another text is another one
        return [_end(plan, Fate.LEFT), *_arrival(plan, Fate.CAME)]
    if when is When.INSERT:
        return _arrival(plan, Fate.ANY)
    if when is When.UPDATE:
        moves = [_end(plan, Fate.LEFT), *_arrival(plan, Fate.CAME)]
        return [*moves, *_changes(plan), *_looks_back(plan, Fate.LEFT)]
    if when is When.DELETE:
        return [_end(plan, Fate.ANY), *_looks_back(plan, Fate.ANY)]
    return [_end(plan, Fate.ANY)]


def _end(plan: TriggerPlan, fate: Fate) -> Fact:
    end = Fact(kind=Kind.DELETE_ROW, side=Side.OLD, fate=fate)
    if plan.options.style == Style.IMAGE:
        end = replace(end, image=True, old=True, watched=plan.watched)
    return end


def _looks_back(plan: TriggerPlan, fate: Fate) -> list[Fact]:
    """Read back the key a row left, for another row may be there."""
    if not plan.looks_back:
        return []
    # As an insert, for the end of the key was logged just before: readers of change tables see no
    # update after a delete.
    return [Fact(kind=Kind.INSERT_ROW_BACK, side=Side.OLD, fate=fate, test=Test.LEFT_BEHIND)]


def _arrival(plan: TriggerPlan, fate: Fate) -> list[Fact]:
    """List one row for each value.

    An object without any must not be lost: then its first column speaks.
    """
    style = plan.options.style
    if style == Style.ROW_BACK:
        return [Fact(kind=Kind.INSERT_ROW_BACK, side=Side.NEW, fate=fate)]
    if style == Style.IMAGE:
        image = Fact(kind=Kind.INSERT_ROW_BACK, side=Side.NEW, fate=fate, watched=plan.watched, image=True, new=True)
        return [image, *_beside(image, Kind.INSERT_FIELD_BACK)]
    kind, new = _inserted[style], style != Style.FIELD_BACK
    first = plan.watched[0]
    speaker = Fact(
        kind=kind,
        side=Side.NEW,
        fate=fate,
        test=Test.FILLED_OR_ALL_EMPTY,
        watched=plan.watched,
        column=first.name,
        new=new,
    )
    others = plan.watched[1:]
    return [speaker, *(_value(kind, attribute, Side.NEW, fate=fate, valued=new) for attribute in others)]


def _changes(plan: TriggerPlan) -> list[Fact]:
    style, watched = plan.options.style, plan.watched
    read_back = Fact(kind=Kind.UPDATE_ROW_BACK, side=Side.NEW, fate=Fate.STAYED)
    stayed = replace(read_back, test=Test.CHANGED, watched=watched)
    if style == Style.ROW_BACK:
        return [stayed]
    if style == Style.IMAGE:
        image = replace(stayed, image=True, old=True, new=True)
        return [image, *_beside(image, Kind.UPDATE_FIELD_BACK)]
    valued = style != Style.FIELD_BACK
    field = replace(stayed, kind=_updated[style], old=valued, new=valued)
    return [replace(field, watched=(attribute,), column=attribute.name) for attribute in watched]


def _beside(image: Fact, kind: Kind) -> list[Fact]:
    """List the facts beside an image: columns no trigger can read, to be read back."""
    field = replace(image, kind=kind, image=False, old=False, new=False, beside=True)
    return [replace(field, watched=(attribute,), column=attribute.name) for attribute in image.watched]


def child_facts(plan: TriggerPlan, child: ChildPlan, when: When) -> list[Fact]:
    """List the facts a statement on a child table logs, all under the parent's key."""
    style = plan.options.style
    if style == Style.ROW_BACK:
        fact = Fact(kind=Kind.UPDATE_ROW_BACK, side=Side.NEW, watched=child.watched)
        return _child_read_back(fact, when)
    facts = []
    if style == Style.FIELD_BACK:
        for attribute in child.watched:
            fact = _value(Kind.UPDATE_FIELD_BACK, attribute, Side.NEW, valued=False)
            facts += _child_read_back(fact, when)
        return facts
    # A child's value is a value of its parent: one that goes is updated to nothing.
    test = Test.CHANGED_OR_MOVED if when is When.UPDATE else Test.NONE
    sides: tuple[Side, ...] = (Side.OLD,)
    if when is When.INSERT:
        sides = (Side.NEW,)
    elif when is When.UPDATE:
        sides = (Side.OLD, Side.NEW)
    kinds = {Side.OLD: Kind.UPDATE_FIELD, Side.NEW: Kind.INSERT_FIELD}
    for attribute in child.watched:
        for side in sides:
            fact = _value(kinds[side], attribute, side, test=test)
            # Other rows under the parent may have the value too, and end it for this row alone: who
            # reads all of them back knows if it is still there.
            if side is Side.OLD and fact.column in plan.options.repeated:
                fact = replace(fact, kind=Kind.UPDATE_FIELD_BACK, old=False)
            facts.append(fact)
    return facts


def _child_read_back(fact: Fact, when: When) -> list[Fact]:
    """Read back the parent of the child row, and on a move the former parent."""
    if when is When.INSERT:
        return [fact]
    left = replace(fact, side=Side.OLD)
    if when is not When.UPDATE:
        return [left]
    return [replace(left, fate=Fate.LEFT), replace(fact, test=Test.CHANGED_OR_MOVED, filled=False)]


def _value(
    kind: Kind, watched: Attribute, side: Side, *, fate: Fate = Fate.ANY, test: Test = Test.NONE, valued: bool = True
) -> Fact:
    """Make a fact about the value of one side in one column; without the value where it is to be read
    back.
    """
    return Fact(
        kind=kind,
        side=side,
        fate=fate,
        test=test,
        filled=True,
        watched=(watched,),
        column=watched.name,
        old=valued and side is Side.OLD,
        new=valued and side is Side.NEW,
    )
