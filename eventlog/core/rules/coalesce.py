"""The option `coalesce`: the net effect of a lifetime, or of each transaction that is known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Protocol, cast

from msgspec import Struct

from eventlog.core.model import Change, Edit, Event, Op, Outcome, Position, Reason, Row
from eventlog.core.rules.images import field_events
from eventlog.core.rules.lifetimes import (
    INSERT_FIELD,
    ROW_BACK,
    UPDATE_FIELD,
    edit,
    saying_something,
    whole_row,
)
from eventlog.core.rules.meaning import MEANING
from eventlog.core.rules.screen import Screened, Subject

CANCELLED = "the changes of this cycle cancel each other out."


class GrowingPositions(Protocol):
    """Positions of the events that a change is made of, as they come: a list, or smaller."""

    def append(self, position: Position, /) -> None: ...
    def __iter__(self) -> Iterator[Position]: ...
    def __len__(self) -> int: ...


class NetColumn(Struct, gc=False):
    """What happened to one column: its first event, its last, and what those between did."""

    first: Event
    last: Event
    only_updates: bool = True
    reset: bool = False

    def take(self, event: Event) -> None:
        self.last = event
        self.only_updates = self.only_updates and event.kind == UPDATE_FIELD
        self.reset = self.reset or MEANING[event.kind].reset


class NetEdits:
    """The net effect of a lifetime, as its events come: of each column the first and the last."""

    def __init__(self, new_positions: Callable[[], GrowingPositions] = list) -> None:
        self._new_positions = new_positions
        self.positions = new_positions()
        self.cancelled: list[GrowingPositions] = []
        """The events that had no effect in the end, together with others of theirs."""
        self._op = Op.MODIFY
        self._own = False
        """Whether an event of a column of the object's own has come."""
        self._last: Event | None = None
        self._columns: dict[object, NetColumn] = {}
        self._whole = False

    def take(self, event: Event, multiple: Collection[str | None]) -> None:
        """Takes the next event; a child table's columns keep every one.

        The first event of a column of its own says whether the object is new: a value that was
        added to a child table is of type 1 too, and the object that it belongs to may have been
        there before.
        """
        of_child = event.column in multiple
        if not of_child and not self._own:
            self._own = True
            self._op = Op.ADD if event.kind == INSERT_FIELD else Op.MODIFY
        self._last = event
        self.positions.append(event.position)
        self._whole = self._whole or event.image is not None
        for field in (event,) if event.image is None else field_events(event):
            # By its own number where a column may repeat.
            name = field.position if of_child else field.column
            self._columns.setdefault(name, NetColumn(field, field)).take(field)

    def ends_before(self, event: Event) -> bool:
        """Return True if another transaction or person is behind the event: no change spans two."""
        last = self._last
        return last is not None and (event.transaction, event.who) != (last.transaction, last.who)

    def finish(self, subject: Subject, row: Row | None) -> list[Change]:
        """Return the net change of the events, if any; the next one begins anew."""
        change = self._change(subject, row)
        if change is None and self.positions:
            self.cancelled.append(self.positions)
        self.positions = self._new_positions()
        self._op, self._own, self._last, self._columns, self._whole = Op.MODIFY, False, None, {}, False
        return [] if change is None else [change]

    def _change(self, subject: Subject, row: Row | None) -> Change | None:
        """Make the change; None where nothing has changed in the end."""
        last = self._last
        if last is None:
            return None
        multiple, whole = subject.multiple, self._whole
        edits: list[Edit] = []
        changed = False
        for column in self._columns.values():
            net_edit, stayed = edit(column.first, row), False
            if net_edit.column not in multiple:
                # The value that was there before the first event, and what the last one leaves.
                old, new = net_edit.old, edit(column.last, row).new
                if self._op is Op.ADD:
                    net_edit = Edit(column=net_edit.column, new=new)
                else:
                    net_edit = Edit(column=net_edit.column, old=old, new=new, reset=column.reset)
                    # A new object's values all go out; an old one's not where they are as before.
                    stayed = column.only_updates and old == new
            changed = changed or not stayed
            if whole or not stayed:
                edits.append(net_edit)
        if not changed:
            return None
        positions: Iterable[Position] = self.positions
        if isinstance(positions, list):
            positions = tuple(positions)
        return Change(
            row=subject.row,
            op=self._op,
            edits=tuple(edits),
            # What is no list behaves as a tuple does.
            positions=cast("tuple[Position, ...]", positions),
            time=last.time,
            whole=whole,
            transaction=last.transaction,
            who=last.who,
            stream=last.stream,
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
    """Join events to at most one change a transaction: first old values, last new ones.

    If events come in pieces, `unfinished` has the result of former pieces; the last change comes
    when the object's life is `over`. Without transactions all events count as one.
    """
    if events and events[0].kind in ROW_BACK:  # it has superseded all others
        return whole_row(subject, events[0], row or {})
    net = unfinished or NetEdits()
    multiple = subject.multiple
    changes: list[Change] = []
    for event in saying_something(screened, events):
        if net.ends_before(event):
            changes += net.finish(subject, row)
        net.take(event, multiple)
    if over:
        changes += net.finish(subject, row)
    if unfinished is None:
        for position in chain.from_iterable(net.cancelled):
            screened.outcomes[position] = make_cancelled(position)
    return changes


def make_cancelled(position: Position) -> Outcome:
    """Make the outcome of an event without effect in the end."""
    return Outcome(position=position, reason=Reason.NOTHING, note=CANCELLED)
