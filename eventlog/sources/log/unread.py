"""Tables that the publisher may not read: their rows are passed over, and tried again after a while, for a right can be granted."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from time import monotonic

import msgspec

from eventlog.core.backoff import Backoff
from eventlog.core.model import Captured, Event, Outcome, Reason, exceptional

Notes = Mapping[str, str]
"""What was said of tables, by their names as rows have written them."""


class Unread:
    """Which tables are passed over; what is known of them stands in a mark, for people to see, and outlives us."""

    def __init__(self, backoff: Backoff) -> None:
        self.notes: Notes = {}
        self._backoff = backoff
        self._attempts: dict[str, int] = {}
        self._next: dict[str, float] = {}

    def learn(self, mark: str | None) -> None:
        """Takes over what the mark says; a table that somebody else has met is tried at once."""
        self.notes = read_notes(mark)

    def tables(self) -> set[str]:
        """The tables whose time has not come."""
        now = monotonic()
        return {table for table in self.notes if self._next.get(table, now) > now}

    def settle(self, events: Sequence[Captured], outcomes: Sequence[Outcome]) -> Notes:
        """What is known of tables after a batch with these events."""
        failed = failed_tables(events, outcomes)
        if not self.notes and not failed:
            return {}
        tried = {event.table for event in events if event.table is not None}
        for table in failed:
            attempts = self._attempts[table] = self._attempts.get(table, 0) + 1
            self._next[table] = monotonic() + self._backoff.delay(attempts, secrets.SystemRandom().random())
        left = {table: note for table, note in self.notes.items() if table not in tried}
        for table in tried.difference(failed):
            self._attempts.pop(table, None)
        return left | failed


def failed_tables(events: Sequence[Captured], outcomes: Sequence[Outcome]) -> dict[str, str]:
    """The tables of the events that could not be read for want of a right, and what was said of each."""
    notes = {one.position: one.note or "" for one in exceptional(outcomes) if one.reason is Reason.NO_RIGHT}
    if not notes:
        return {}
    named = [event for event in events if isinstance(event, Event) and event.position in notes]
    return {event.table: notes[event.position] for event in named if event.table is not None}


def read_notes(mark: str | None) -> dict[str, str]:
    """What `write_notes` wrote; what cannot be read is forgotten, for the tables are tried again."""
    try:
        return msgspec.json.decode(mark or "{}", type=dict[str, str])
    except msgspec.DecodeError:
        return {}


def write_notes(notes: Notes) -> str:
    """The notes as text."""
    return msgspec.json.encode(notes).decode()
