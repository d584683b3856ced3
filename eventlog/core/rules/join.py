"""Merging: neighbouring events of one object and one operation make one change, until a column repeats."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from eventlog.core.model import REFRESH, Change, Edit, Event, Kind, Op, Position, Reason, Row
from eventlog.core.rules.lifetimes import BACK, ROW_BACK, Lifetime
from eventlog.core.rules.meaning import MEANING
from eventlog.core.rules.screen import Screened, Subject

# Plain numbers, because looking a member up in its enum costs as much as the rest of a comparison, and these are made
# for every event.
INSERT_FIELD = int(Kind.INSERT_FIELD)
UPDATE_FIELD = int(Kind.UPDATE_FIELD)


class Unfinished(Struct, gc=False):
    """The change that the last events of a lifetime have begun, where its events come in pieces."""

    op: Op = Op.MODIFY
    edits: list[Edit] = []
    positions: list[Position] = []
    seen: set[str | None] = set()
    """The columns that the change has, of those that cannot come twice."""
    last: Event | None = None


def join(
    screened: Screened,
    subject: Subject,
    events: list[Event],
    row: Row | None,
    unfinished: Unfinished | None = None,
    *,
    over: bool = True,
) -> list[Change]:
    """The changes that the remaining events of one lifetime make, each event in one of them.

    Where they come in pieces, `unfinished` is what former ones have begun, and the last change stays in it until the
    lifetime is `over`.
    """
    if events and events[0].kind in ROW_BACK:  # it has superseded all others
        return whole_row(subject, events[0], row or {})
    changes: list[Change] = []
    op, last = Op.MODIFY, None
    edits: list[Edit] = []
    positions: list[Position] = []
    seen: set[str | None] = set()
    if unfinished is not None:
        op, edits, positions, seen, last = astuple(unfinished)
    multiple = multiple_attributes(subject)
    for event in events if has_images(subject) else saying_something(screened, events):
        this, column = MEANING[event.kind].op, event.column
        if this is not op or column in seen or (last is not None and event.transaction != last.transaction):
            if last is not None:
                changes.append(_change(subject, op, edits, positions, last))
                edits, positions = [], []
            op = this
            seen = set()
        edits.append(edit(event, row))
        positions.append(event.position)
        if column not in multiple:
            seen.add(column)
        last = event
    if over and last is not None:
        changes.append(_change(subject, op, edits, positions, last))
    if unfinished is not None:
        unfinished.op, unfinished.edits, unfinished.positions = op, edits, positions
        unfinished.seen, unfinished.last = seen, last
    return changes


def saying_something(screened: Screened, events: list[Event]) -> list[Event]:
    """The events without the updates from NULL to NULL, which are set aside."""
    nothing = [event for event in events if event.new is None and event.old is None and event.kind == UPDATE_FIELD]
    if not nothing:
        return events
    for event in nothing:
        screened.aside(event, Reason.NOTHING, "old_value and new_value are both NULL.")
    return [event for event in events if event.new is not None or event.old is not None or event.kind != UPDATE_FIELD]


def edit(event: Event, row: Row | None) -> Edit:
    """What one field event says about its attribute."""
    kind, column = event.kind, event.column or ""
    if kind == UPDATE_FIELD:
        return Edit(column=column, old=event.old, new=event.new)
    if kind == INSERT_FIELD:
        return Edit(column=column, new=event.new)
    if kind in BACK:
        return Edit(column=column, new=(row or {})[column], reset=True)
    return Edit(column=column, old=event.old, new=event.new, reset=True)


def whole_row(subject: Subject, event: Event, values: Row) -> list[Change]:
    """A modify that tells every attribute as it is now; a table that is all key has nothing to tell but that a row is."""
    edits = tuple([Edit(column=name, new=value, reset=True) for name, value in values.items()])
    return [
        Change(
            row=subject.row,
            op=Op.MODIFY if values else Op.ADD,
            edits=edits,
            positions=(event.position,),
            time=event.time,
            transaction=event.transaction,
            refresh=event.perpetrator is not None and event.perpetrator.rstrip(" ") == REFRESH,
        )
    ]


def ending(screened: Screened, subject: Subject, lifetime: Lifetime) -> list[Change]:
    """The end of an object, where its lifetime was closed and not by the publisher's own user."""
    event = lifetime.closing
    if event is None or event.position in screened.silent:
        return []
    edits = row_that_went(subject, event)
    return [
        Change(
            row=subject.row,
            op=Op.DELETE,
            edits=edits,
            positions=(event.position,),
            time=event.time,
            whole=bool(edits),
            transaction=event.transaction,
        )
    ]


def has_images(subject: Subject) -> bool:
    """Whether the events of the object come with its whole row: then NULL before and after is a value that stayed."""
    return subject.table is not None and subject.table.images


def row_that_went(subject: Subject, event: Event) -> tuple[Edit, ...]:
    """The row that a delete brings, of the columns that there still are; none where it brings none that can be read."""
    table = subject.table
    if table is None or not table.images or event.old is None:
        return ()
    with suppress(msgspec.DecodeError, ValueError):
        values = msgspec.convert(json.loads(event.old, strict=False), dict[str, str | None])
        return tuple([Edit(column=name, old=value) for name, value in values.items() if name in table.loggable])
    return ()


def multiple_attributes(subject: Subject) -> Collection[str | None]:
    """The attributes that hold several values, for which repeating is natural."""
    return subject.table.multiple if subject.table is not None else ()


def _change(subject: Subject, op: Op, edits: list[Edit], positions: list[Position], last: Event) -> Change:
    return Change(
        row=subject.row,
        op=op,
        edits=tuple(edits),
        positions=tuple(positions),
        time=last.time,
        whole=has_images(subject),
        transaction=last.transaction,
    )
