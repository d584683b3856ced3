"""What steps do to single attributes, in one pass over a change: leave them out, call them
otherwise, change values.

Steps that follow each other are put together, because five passes over a change would cost more
than publishing it. Law: together they tell what they tell one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from eventlog.core.model import Change, Edit, Op, Refusal, Row, RowId
from eventlog.policies.values import ValueChange, each

Action = Callable[[Change], Change | Refusal]
Places = Mapping[str, tuple[RowId, str]]
"""Attributes of rows of other tables, by the names that `Change.looked` has for them."""
Way = tuple[str, ValueChange | None] | None
"""What becomes of an attribute: its name and what changes its values; or None, it is left out."""


STAYS: Final[tuple[str, None]] = ("", None)
"""The way of an attribute that a step does nothing to."""


class Columns:
    """An action: what becomes of the attributes that `ways` has; others stay. `steps` are the
    actions that it is made of.
    """

    def __init__(self, ways: Mapping[str, Way], number: int, steps: Sequence[Action] = ()) -> None:
        self._ways = dict(ways)
        self._number = number
        self._steps = steps
        self._drops = None in self._ways.values()

    def then(self, other: Columns) -> Columns:
        """Join both in one pass, the other one after this one."""
        ways: dict[str, Way] = {}
        for column, way in self._ways.items():
            if way is not None:
                way = _one_after_the_other(way, other._ways.get(way[0], (way[0], None)))  # noqa: PLW2901  the same column
            ways[column] = way
        # The other one knows attributes by the names that this one gave them; what it names besides
        # are those that stay here.
        for column, way in other._ways.items():
            ways.setdefault(column, way)
        return Columns(ways, self._number, (*(self._steps or (self,)), *(other._steps or (other,))))

    def keeps_apart(self, names: frozenset[str]) -> bool:
        """Return True if it only changes values, and none of these attributes."""
        return all(way is not None and way[0] == name and name not in names for name, way in self._ways.items())

    def __call__(self, change: Change) -> Change | Refusal:
        # Called for every change of every output, so nothing is asked twice and nothing is a
        # function that need not be.
        way_of, beside = self._ways.get, change.beside
        edits: list[Edit] = []
        same = True
        for edit in change.edits:
            way = way_of(edit.column, STAYS)
            if way is STAYS:
                edits.append(edit)
                continue
            same = False
            if way is None:
                continue
            name, changed = way
            old, new = edit.old, edit.new
            if changed is not None:
                old = changed(old) if type(old) is str else each(old, changed)
                new = changed(new) if type(new) is str else each(new, changed)
            edits.append(Edit(column=name, old=old, new=new, reset=edit.reset))
        if beside:
            beside = self._beside(beside)
        if same:
            if beside == change.beside:
                return change
            return replace(change, beside=beside)
        # Of a whole row unchanged columns are published too, and alone they are no change.
        is_left = any(map(says, edits)) if change.whole else edits
        if self._drops and change.op is Op.MODIFY and not is_left:
            return self._end_empty(change)
        return replace(change, edits=tuple(edits), beside=beside)

    def _beside(self, row: Row) -> Row:
        renamed: dict[str, Any] = {}
        for name, cell in row.items():
            way = self._ways.get(name, (name, None))
            if way is not None:
                new_name, changed = way
                renamed[new_name] = cell if changed is None else each(cell, changed)
        return renamed

    def _end_empty(self, change: Change) -> Change | Refusal:
        """Run the steps one by one on a change with nothing left."""
        for step in self._steps:
            after = step(change)
            if isinstance(after, Refusal):
                return after
            change = after
        if self._steps:
            return change
        return filter_out(change, self._number, "it changes only attributes that are left out")


def filter_out(change: Change, number: int, why: str) -> Refusal:
    """Make the refusal of a change left out by a policy."""
    return Refusal(positions=change.positions, note=f"step {number} of the policy: {why}.", filtered=True)


def says(edit: Edit) -> bool:
    """Return True if an edit of a whole row is a change."""
    return edit.reset or edit.old != edit.new


class Setting:
    """An action that sets one attribute, from the values of `inputs`; it looks at nothing else of a
    change.
    """

    def __init__(self, attribute: str, inputs: frozenset[str], action: Action) -> None:
        self._touched = inputs | {attribute}
        self._action = action

    def __call__(self, change: Change) -> Change | Refusal:
        return self._action(change)

    def lets_pass(self, columns: Columns) -> bool:
        """Return True if the work on these columns may as well be done before it."""
        return columns.keeps_apart(self._touched)


class Looking(Setting):
    """One that looks in rows of other tables: `asked` names them as long as the change does not
    bring what they have.
    """

    def __init__(
        self,
        attribute: str,
        inputs: frozenset[str],
        action: Action,
        asked: Callable[[Change], Places],
    ) -> None:
        super().__init__(attribute, inputs, action)
        self.asked = asked


def together(actions: Sequence[Action]) -> list[Action]:
    """Merge actions on single attributes where they follow each other, or nothing between them is about
    the same attributes.
    """
    joined: list[Action] = []
    for action in actions:
        index = _partner_index(joined, action) if isinstance(action, Columns) else None
        former = None if index is None else joined[index]
        if index is not None and isinstance(action, Columns) and isinstance(former, Columns):
            joined[index] = former.then(action)
        else:
            joined.append(action)
    return joined


def _partner_index(actions: Sequence[Action], columns: Columns) -> int | None:
    """Find the action to merge these columns with."""
    for index in reversed(range(len(actions))):
        action = actions[index]
        if isinstance(action, Columns):
            return index
        # What stands between may only set attributes that these columns do not touch.
        if not (isinstance(action, Setting) and action.lets_pass(columns)):
            return None
    return None


def _one_after_the_other(first: tuple[str, ValueChange | None], then: Way) -> Way:
    if then is None:
        return None
    name, changed = then
    if changed is None or first[1] is None:
        return name, first[1] or changed
    before, after = first[1], changed

    def both(value: object) -> object:
        value = before(value)  # type: ignore[arg-type]  # a value goes in and comes out
        return None if value is None else after(value)

    return name, both  # type: ignore[return-value]  # as above
