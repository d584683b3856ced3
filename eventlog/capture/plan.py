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
from eventlog.tracked.options import VALUED, Style, TriggerOptions, attribute_names, divide_attributes


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


_KINDS = {
    Style.ROW_BACK: (Kind.INSERT_ROW_BACK, Kind.UPDATE_ROW_BACK),
    Style.IMAGE: (Kind.INSERT_ROW_BACK, Kind.UPDATE_ROW_BACK),
    Style.FIELD: (Kind.INSERT_FIELD, Kind.UPDATE_FIELD),
    Style.FIELD_REPLACE: (Kind.INSERT_FIELD, Kind.REPLACE_FIELD),
    Style.FIELD_BACK: (Kind.INSERT_FIELD_BACK, Kind.UPDATE_FIELD_BACK),
}
"""The kinds of a row that came, and of one that changed."""


def facts(plan: TriggerPlan, when: When) -> list[Fact]:
    """List the facts a statement on the class's own table logs for each row."""
    if when is When.INSERT:
        return _arrival(plan, Fate.ANY)
    if when is When.DELETE:
        return [_end(plan, Fate.ANY), *_looks_back(plan, Fate.ANY)]
    if when is When.TRUNCATE:
        return [_end(plan, Fate.ANY)]
    moves = [_end(plan, Fate.LEFT), *_arrival(plan, Fate.CAME)]
    if plan.table.whole_row:  # a row that has another text is another one
        return moves
    return [*moves, *_changes(plan), *_looks_back(plan, Fate.LEFT)]


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
    style, watched = plan.options.style, plan.watched
    row = Fact(kind=_KINDS[style][0], side=Side.NEW, fate=fate)
    if style == Style.ROW_BACK:
        return [row]
    valued = replace(row, watched=watched, new=style in VALUED)
    if style == Style.IMAGE:
        return [replace(valued, image=True), *_beside(valued, Kind.INSERT_FIELD_BACK)]
    speaker = replace(valued, test=Test.FILLED_OR_ALL_EMPTY, column=watched[0].name)
    return [speaker, *(_of_column(replace(valued, filled=True), attribute) for attribute in watched[1:])]


def _changes(plan: TriggerPlan) -> list[Fact]:
    style, watched = plan.options.style, plan.watched
    row = Fact(kind=_KINDS[style][1], side=Side.NEW, fate=Fate.STAYED, test=Test.CHANGED, watched=watched)
    if style == Style.ROW_BACK:
        return [row]
    valued = replace(row, old=style in VALUED, new=style in VALUED)
    if style == Style.IMAGE:
        return [replace(valued, image=True), *_beside(valued, Kind.UPDATE_FIELD_BACK)]
    return [_of_column(valued, attribute) for attribute in watched]


def _beside(image: Fact, kind: Kind) -> list[Fact]:
    """List the facts beside an image: columns no trigger can read, to be read back."""
    field = replace(image, kind=kind, old=False, new=False, beside=True)
    return [_of_column(field, attribute) for attribute in image.watched]


def _of_column(fact: Fact, attribute: Attribute) -> Fact:
    return replace(fact, watched=(attribute,), column=attribute.name)


def child_facts(plan: TriggerPlan, child: ChildPlan, when: When) -> list[Fact]:
    """List the facts a statement on a child table logs, all under the parent's key."""
    style = plan.options.style
    row = Fact(kind=_KINDS[style][1], side=Side.NEW, watched=child.watched)
    if style == Style.ROW_BACK:
        return _child_read_back(row, when)
    if style == Style.FIELD_BACK:
        fields = [_of_column(replace(row, filled=True), attribute) for attribute in child.watched]
        return [fact for field in fields for fact in _child_read_back(field, when)]
    # A child's value is a value of its parent: one that goes is updated to nothing.
    test = Test.CHANGED_OR_MOVED if when is When.UPDATE else Test.NONE
    came = Fact(kind=Kind.INSERT_FIELD, side=Side.NEW, test=test, filled=True, new=True)
    gone = replace(came, kind=Kind.UPDATE_FIELD, side=Side.OLD, old=True, new=False)
    facts = []
    for attribute in child.watched:
        if when is not When.INSERT:
            # Other rows under the parent may have the value too, and end it for this row alone: who
            # reads all of them back knows if it is still there.
            may_stay = attribute.name in plan.options.repeated
            read_back = replace(gone, kind=Kind.UPDATE_FIELD_BACK, old=False)
            facts.append(_of_column(read_back if may_stay else gone, attribute))
        if when in (When.INSERT, When.UPDATE):
            facts.append(_of_column(came, attribute))
    return facts


def _child_read_back(fact: Fact, when: When) -> list[Fact]:
    """Read back the parent of the child row, and on a move the former parent."""
    left = replace(fact, side=Side.OLD)
    if when is When.UPDATE:
        return [replace(left, fate=Fate.LEFT), replace(fact, test=Test.CHANGED_OR_MOVED, filled=False)]
    return [fact if when is When.INSERT else left]
