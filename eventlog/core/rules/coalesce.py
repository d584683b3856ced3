"""The option `coalesce`: all that remains of a lifetime makes one change, its net effect."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import cast, overload

from msgspec import Struct

from eventlog.core.model import Change, Edit, Event, Op, Position, Reason, Row
from eventlog.core.rules.join import INSERT_FIELD, UPDATE_FIELD, edit, multiple_attributes, saying_something, whole_row
from eventlog.core.rules.lifetimes import ROW_BACK
from eventlog.core.rules.meaning import MEANING
from eventlog.core.rules.screen import Screened, Subject

CANCELLED = "the changes of this cycle cancel each other out."


class PackedPositions(Sequence[Position]):
    """Positions of a log, which are one number each, in eight bytes for each: a lifetime may have millions."""

    def __init__(self) -> None:
        self._numbers = array("q")

    def append(self, position: Position) -> None:
        """Takes one more."""
        self._numbers.append(position[0])

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Position: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Position]: ...
    def __getitem__(self, place: int | slice) -> Position | Sequence[Position]:
        if isinstance(place, slice):
            return [(number,) for number in self._numbers[place]]
        return (self._numbers[place],)


class NetColumn(Struct, gc=False):
    """What happened to one column: its first event and its last, and what those between have done."""

    first: Event
    last: Event
    only_updates: bool = True
    reset: bool = False

    def take(self, event: Event) -> None:
        """Takes the next event of the column."""
        self.last = event
        self.only_updates = self.only_updates and event.kind == UPDATE_FIELD
        self.reset = self.reset or MEANING[event.kind].reset


class NetEdits:
    """The net effect of a lifetime, as its events come. Of a column, no more than its first and last event is kept."""

    def __init__(self, positions: list[Position] | PackedPositions) -> None:
        self.positions = positions
        self.cancelled: Sequence[Position] = ()
        """The events of a lifetime that came in pieces, and that had no effect in the end."""
        self._op = Op.MODIFY
        self._own = False
        """Whether an event of a column of the object's own has come."""
        self._last: Event | None = None
        self._columns: dict[object, NetColumn] = {}

    def take(self, event: Event, multiple: Collection[str | None]) -> None:
        """Takes the next event; a child table's columns keep every one.

        The first event of a column of its own says whether the object is new: a value that was added to a child table is
        of type 1 too, and the object that it belongs to may have been there before.
        """
        of_child = event.column in multiple
        if not of_child and not self._own:
            self._own = True
            self._op = Op.ADD if event.kind == INSERT_FIELD else Op.MODIFY
        self._last = event
        self.positions.append(event.position)
        name = event.position if of_child else event.column
        self._columns.setdefault(name, NetColumn(event, event)).take(event)

    def change(self, subject: Subject, row: Row | None) -> Change | None:
        """The change; None where nothing has changed in the end."""
        last = self._last
        if last is None:
            return None
        multiple = multiple_attributes(subject)
        edits = [
            edit(column.first, row) if column.first.column in multiple else _net_edit(column, row, self._op)
            for column in self._columns.values()
        ]
        told = tuple([one for one in edits if one is not None])
        if not told:
            return None
        positions = self.positions if isinstance(self.positions, PackedPositions) else tuple(self.positions)
        return Change(
            row=subject.row,
            op=self._op,
            edits=told,
            positions=cast("tuple[Position, ...]", positions),  # PackedPositions behave as a tuple does
            time=last.time,
            transaction=last.transaction,
        )


def coalesce(
    screened: Screened,
    subject: Subject,
    events: list[Event],
    row: Row | None,
    unfinished: NetEdits | None = None,
    *,
    over: bool = True,
) -> list[Change]:
    """At most one change: the first old values and the last new ones.

    Where events come in pieces, `unfinished` is what former ones amount to; the change comes when the lifetime is `over`.
    """
    if events and events[0].kind in ROW_BACK:  # it has superseded all others
        return whole_row(subject, events[0], row or {})
    net = NetEdits([]) if unfinished is None else unfinished
    multiple = multiple_attributes(subject)
    saying = saying_something(screened, events)
    for event in saying:
        net.take(event, multiple)
    if not over:
        return []
    change = net.change(subject, row)
    if change is not None:
        return [change]
    if unfinished is not None:
        unfinished.cancelled = net.positions
    else:
        for event in saying:
            screened.aside(event, Reason.NOTHING, CANCELLED)
    return []


def _net_edit(column: NetColumn, row: Row | None, op: Op) -> Edit | None:
    first, last = edit(column.first, row), edit(column.last, row)
    if op is Op.ADD:
        return Edit(column=first.column, new=last.new)
    if column.only_updates and first.old == last.new:
        return None
    return Edit(column=first.column, old=first.old, new=last.new, reset=column.reset)
