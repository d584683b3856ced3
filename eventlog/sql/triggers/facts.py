"""Which log rows each event of a table writes, and under which conditions; the same for every database.

A fact is one log row that a trigger writes when its condition holds. For an update the rows before and after are seen
together; a row whose key changed has *left* under its old key and *come* under its new one.
"""

from __future__ import annotations

from enum import Enum, StrEnum, auto

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import Kind
from eventlog.sql.triggers.plan import ChildPlan, Style, TriggerPlan, Watched


class When(StrEnum):
    """The statements that triggers fire for."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    TRUNCATE = "truncate"


EVERY = (When.INSERT, When.UPDATE, When.DELETE)
"""What one trigger fires for where it can ask which it was."""


class Side(Enum):
    """The row as it was, or as it is."""

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
    """One log row: its kind, whose key it has, the column, which of its values, and when it is written.

    `filled` asks that the side has a value in the first of the watched columns. `each` says that it stands for a log row
    of each watched column, whatever stands there; `image` that its old value is the whole row.
    """

    kind: Kind
    side: Side
    fate: Fate = Fate.ANY
    test: Test = Test.NONE
    filled: bool = False
    watched: tuple[Watched, ...] = ()
    column: str | None = None
    old: bool = False
    new: bool = False
    each: bool = False
    image: bool = False


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
    """What a statement on the class's own table writes for each of its rows."""
    if when is When.INSERT:
        return _arrival(plan, Fate.ANY)
    if when is When.UPDATE:
        return [_end(plan, Fate.LEFT), *_arrival(plan, Fate.CAME), *_changes(plan), *_looks_back(plan, Fate.LEFT)]
    return [_end(plan, Fate.ANY), *(_looks_back(plan, Fate.ANY) if when is When.DELETE else ())]


def _end(plan: TriggerPlan, fate: Fate) -> Fact:
    image = plan.options.style == Style.IMAGE
    return Fact(kind=Kind.DELETE_ROW, side=Side.OLD, fate=fate, image=image, watched=plan.watched if image else ())


def _looks_back(plan: TriggerPlan, fate: Fate) -> list[Fact]:
    """What stands under a key that was left is read back, whoever's transaction brought it there.

    As an insert: the end of the key was told just before.
    """
    if not plan.looks_back:
        return []
    return [Fact(kind=Kind.INSERT_ROW_BACK, side=Side.OLD, fate=fate, test=Test.LEFT_BEHIND)]


def _arrival(plan: TriggerPlan, fate: Fate) -> list[Fact]:
    """One row for each value that is there. An object without any must not be lost: then its first column speaks."""
    style = plan.options.style
    if style == Style.ROW_BACK:
        return [Fact(kind=Kind.INSERT_ROW_BACK, side=Side.NEW, fate=fate)]
    if style == Style.IMAGE:
        return [Fact(kind=Kind.INSERT_FIELD, side=Side.NEW, fate=fate, watched=plan.watched, new=True, each=True)]
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
    return [speaker, *(_value(kind, watched, Side.NEW, fate=fate, valued=new) for watched in plan.watched[1:])]


def _changes(plan: TriggerPlan) -> list[Fact]:
    style, watched = plan.options.style, plan.watched
    stayed = Fact(kind=Kind.UPDATE_ROW_BACK, side=Side.NEW, fate=Fate.STAYED, test=Test.CHANGED, watched=watched)
    if style == Style.ROW_BACK:
        return [stayed]
    if style == Style.IMAGE:
        return [replace(stayed, kind=Kind.UPDATE_FIELD, old=True, new=True, each=True)]
    kind, valued = _updated[style], style != Style.FIELD_BACK
    return [replace(stayed, kind=kind, watched=(one,), column=one.name, old=valued, new=valued) for one in watched]


def child_facts(plan: TriggerPlan, child: ChildPlan, when: When) -> list[Fact]:
    """What a statement on a child table writes, all of it under the parent's key."""
    style = plan.options.style
    if style == Style.ROW_BACK:
        return _child_read_back(Fact(kind=Kind.UPDATE_ROW_BACK, side=Side.NEW, watched=child.watched), when)
    if style == Style.FIELD_BACK:
        each = [_value(Kind.UPDATE_FIELD_BACK, one, Side.NEW, valued=False) for one in child.watched]
        return [fact for one in each for fact in _child_read_back(one, when)]
    test = Test.CHANGED_OR_MOVED if when is When.UPDATE else Test.NONE
    sides = {When.INSERT: (Side.NEW,), When.UPDATE: (Side.OLD, Side.NEW)}.get(when, (Side.OLD,))
    kinds = {Side.OLD: Kind.UPDATE_FIELD, Side.NEW: Kind.INSERT_FIELD}
    each = [_value(kinds[side], one, side, test=test) for one in child.watched for side in sides]
    return [_end_of_a_repeated(plan, one) for one in each]


def _end_of_a_repeated(plan: TriggerPlan, fact: Fact) -> Fact:
    """The end of a value that other rows under the parent may have too: who reads all of them back knows if it is there."""
    if fact.side is Side.NEW or fact.column not in plan.options.repeated:
        return fact
    return replace(fact, kind=Kind.UPDATE_FIELD_BACK, old=False)


def _child_read_back(fact: Fact, when: When) -> list[Fact]:
    """The parent that has the child row now, and on a move the one that had it."""
    if when is When.INSERT:
        return [fact]
    left = replace(fact, side=Side.OLD)
    if when is not When.UPDATE:
        return [left]
    return [replace(left, fate=Fate.LEFT), replace(fact, test=Test.CHANGED_OR_MOVED, filled=False)]


def _value(
    kind: Kind, watched: Watched, side: Side, *, fate: Fate = Fate.ANY, test: Test = Test.NONE, valued: bool = True
) -> Fact:
    """A row about the value that one side has in one column; without the value where it is to be read back."""
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
