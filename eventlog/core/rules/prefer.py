"""Precedence in one lifetime: vanished rows drop out, rows beat fields, read-backs beat data."""

from __future__ import annotations

from eventlog.core.model import Event, Outcome, ReadBack, Reason, Status, Unreadable, format_position
from eventlog.core.rules.images import without_columns
from eventlog.core.rules.lifetimes import BACK, ROW_BACK, Lifetime
from eventlog.core.rules.meaning import STATUS
from eventlog.core.rules.screen import Screened

NOBODY_READS = Unreadable(
    note="its values must be read back from the table, and there is no database or snapshot to read from."
)
"""What is found of an object whose table nobody can read."""

NO_TEXT = "table_key has bytes that are no UTF-8 text, so its row cannot be read back."


def prefer(screened: Screened, lifetime: Lifetime, row: ReadBack | None) -> list[Event]:
    """Choose the events that remain; give the others of the object's life their outcome.

    `row` was read back, None when nothing was found. While a row waits to be read, so do all events
    of this life: those without reading would come before an earlier one with it.
    """
    events = lifetime.events
    if lifetime.closing is not None:
        closed = f"the object was deleted by event {format_position(lifetime.closing.position)}."
        return _without_back(screened, events, Reason.VANISHED, closed)
    if row is None:
        # A database that keeps any bytes has the row, and nobody can ask for it.
        if not all(_is_text(event.key or "") for event in events):
            return _without_back(screened, events, Reason.INVALID, NO_TEXT)
        return _without_back(screened, events, Reason.VANISHED, "reading back found no such row.")
    if isinstance(row, Unreadable):
        # All of the lifetime waits, not only what is read back: later events must not overtake it.
        if STATUS[row.reason] is Status.NEW and any(event.kind in BACK for event in events):
            for event in events:
                screened.aside(event, row.reason, row.note)
            return []
        readable: list[Event] = []
        for event in events:
            # What cannot be read is never taken for NULL, nor a part of a row for the row.
            if event.kind in ROW_BACK or (event.kind in BACK and event.column not in row.row):
                screened.aside(event, row.reason, row.note)
            else:
                readable.append(event)
        events, row = readable, row.row
    # From here on the row is there. The last event that reads all of it says what all others would.
    whole = [event for event in events if event.kind in ROW_BACK]
    if whole:  # a row that was read as a whole has no key columns, which a field may name
        winner = whole[-1]
        for event in events:
            if event is not winner:
                _supersede(screened, event, winner, "which reads the whole row back")
        return [winner]
    usable: list[Event] = []
    for event in events:
        # A column that the row read back does not have is never taken for NULL.
        if event.kind in BACK and event.column not in row:
            note = f"the row that was read back has no column {event.column}."
            screened.aside(event, Reason.INVALID, note)
        else:
            usable.append(event)
    return _prefer_columns(screened, usable)


def _prefer_columns(screened: Screened, events: list[Event]) -> list[Event]:
    """Leave out columns a query-back tells better; of an image only that column."""
    winners = {event.column: event for event in events if event.kind in BACK}
    remaining = []
    for event in events:
        if event.image is not None and winners:
            left = without_columns(event, winners)
            if left is None:
                _supersede(screened, event, next(reversed(winners.values())), "which reads its columns back")
            else:
                remaining.append(left)
        elif event.kind in BACK or event.column not in winners:
            remaining.append(event)
        else:
            _supersede(screened, event, winners[event.column], "which reads the column back")
    return remaining


def _is_text(key: str) -> bool:
    """Return True if Unicode can carry the key: other bytes have become halves of surrogate pairs."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_back(screened: Screened, events: list[Event], reason: Reason, note: str) -> list[Event]:
    for event in events:
        if event.kind in BACK:
            screened.aside(event, reason, note)
    return [event for event in events if event.kind not in BACK]


def _supersede(screened: Screened, event: Event, winner: Event, why: str) -> None:
    screened.outcomes[event.position] = Outcome(
        position=event.position,
        status=STATUS[Reason.SUPERSEDED],
        reason=Reason.SUPERSEDED,
        note=f"superseded by event {format_position(winner.position)}, {why}.",
        winner=winner.position,
    )
