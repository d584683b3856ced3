"""The rules for objects with more events than memory should hold: the same steps, taken piece by piece.

    asked   the first pass: what of the object must be read back
    flow    two more: one that runs ahead and knows how each lifetime ends, one that decides

Law: however the events are cut into pieces, the changes and outcomes are those of `decide`. Precedence is `prefer`'s on
each piece with the winners of the lifetime added to it; merging is `join`'s on what is left, where the last change of a
piece stays open; only one change with its events, and what tells the winners, is held.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from eventlog.core.model import Event, Outcome, Position, ReadBack, Row, RowId, Unreadable
from eventlog.core.rules.fold import Fold, Tell, ended
from eventlog.core.rules.join import delete, join
from eventlog.core.rules.lifetimes import BACK, DELETE_ROW, ROW_BACK, Lifetime, asked_for, lifetimes
from eventlog.core.rules.meaning import Options
from eventlog.core.rules.prefer import prefer
from eventlog.core.rules.screen import Screened, Subject, screen
from eventlog.core.schema import Catalog

Pieces = Callable[[], Iterable[Sequence[Event]]]
"""Begins anew with the first piece whenever it is called; the events are in the order of their positions."""

Closings = Generator[Event, None, None]


class Merging(Protocol):
    """Makes changes of what remains of a lifetime."""

    def take(self, screened: Screened, events: list[Event], row: Row | None) -> Iterator[list[Outcome]]:
        """Takes the next of the remaining events; the outcomes of those that are certain."""

    def end(self, screened: Screened, row: Row | None) -> Iterator[list[Outcome]]:
        """The outcomes of the others: the lifetime is over, or nobody logs any more."""


class Ahead(Struct, gc=False):
    """What an object's first event must know of its last: how many lifetimes are closed, and who wins in the open one."""

    subject: Subject
    closed: int = 0
    whole: Event | None = None
    columns: dict[str | None, Event] = field(default_factory=dict)

    def winners(self) -> list[Event]:
        """The events that the others of the open lifetime lose to."""
        return [self.whole] if self.whole is not None else list(self.columns.values())


def asked(pieces: Pieces, catalog: Catalog | None, options: Options) -> Mapping[RowId, frozenset[str]]:
    """The objects and attributes that must be read back, as `wanted` says it of a batch."""
    found: dict[RowId, frozenset[str]] = {}
    for ahead in _look_ahead(pieces, catalog, options).values():
        attributes = asked_for(ahead.subject, Lifetime(ahead.winners()))
        if attributes is not None:
            found[ahead.subject.row] = attributes
    return found


def flow(
    pieces: Pieces,
    rows: Mapping[RowId, ReadBack] | None,
    tell: Tell,
    *,
    catalog: Catalog | None = None,
    options: Options | None = None,
) -> Iterator[list[Outcome]]:
    """Tells the changes, each object's in their order, and yields the outcomes of all events, with every change's told before."""
    options = options or Options()
    streams = {
        identity: _Stream(ahead, rows, tell, _closings(pieces, identity, catalog, options), options)
        for identity, ahead in _look_ahead(pieces, catalog, options).items()
    }
    for piece in pieces():
        screened = screen(piece, catalog, options)
        gathered: set[Position] = set()
        for identity, subject in screened.subjects.items():
            gathered.update([event.position for event in subject.events])
            yield from streams[identity].take(screened, subject.events)
        yield [screened.outcomes[event.position] for event in screened.events if event.position not in gathered]
    for stream in streams.values():
        yield from stream.end()


class _Stream:
    """One object on its way through the rules."""

    def __init__(
        self, ahead: Ahead, rows: Mapping[RowId, ReadBack] | None, tell: Tell, closings: Closings, options: Options
    ) -> None:
        self._ahead = ahead
        self._subject = ahead.subject
        self._readable = rows is not None
        self._found = None if rows is None else rows.get(ahead.subject.row)
        self._row = self._found.row if isinstance(self._found, Unreadable) else self._found
        self._tell = tell
        self._closings = closings
        self._closing: Event | None = None
        self._met = 0  # deletes that the one that runs ahead has met
        self._closed = 0  # lifetimes that are over
        self._merging: Merging = Fold(ahead.subject, tell) if options.coalesce else _Join(ahead.subject, tell)

    def take(self, screened: Screened, events: list[Event]) -> Iterator[list[Outcome]]:
        """The outcomes that are certain after the object's events of one more piece."""
        for lifetime in lifetimes(Subject(self._subject.row, self._subject.table, events)):
            remaining = self._prefer(screened, lifetime)
            remain = {event.position for event in remaining}
            yield [screened.outcomes[event.position] for event in lifetime.events if event.position not in remain]
            yield from self._merging.take(screened, remaining, self._row)
            if lifetime.closing is not None:
                yield from self._merging.end(screened, self._row)
                yield [self._deleted(screened, lifetime.closing)]
                self._closed += 1

    def end(self) -> Iterator[list[Outcome]]:
        """The outcomes of what was still open."""
        self._closings.close()
        yield from self._merging.end(Screened(()), self._row)

    def _prefer(self, screened: Screened, lifetime: Lifetime) -> list[Event]:
        """What remains of a lifetime's piece, judged with what is known of the rest."""
        closing = lifetime.closing
        winners: list[Event] = []
        if closing is None and self._closed < self._ahead.closed:
            closing = self._closing_of_this() if any(event.kind in BACK for event in lifetime.events) else None
        elif closing is None:
            here = {event.position for event in lifetime.events}
            winners = [winner for winner in self._ahead.winners() if winner.position not in here]
        whole = Lifetime([*lifetime.events, *winners], closing)
        remaining = prefer(screened, whole, self._found, readable=self._readable)
        elsewhere = {winner.position for winner in winners}
        return [event for event in remaining if event.position not in elsewhere] if winners else remaining

    def _closing_of_this(self) -> Event | None:
        """The delete that closes the lifetime, which may stand many pieces further on."""
        while self._met <= self._closed:
            self._closing = next(self._closings)
            self._met += 1
        return self._closing

    def _deleted(self, screened: Screened, event: Event) -> Outcome:
        """Tells the end of the object, unless the publisher's own user brought it about."""
        if event.position in screened.silent:
            return screened.outcomes[event.position]
        return ended(event.position, self._tell(delete(self._subject, event)))


class _Join:
    """Merges what remains of a lifetime; the last change stays open until nothing can join it any more."""

    def __init__(self, subject: Subject, tell: Tell) -> None:
        self._subject = subject
        self._tell = tell
        self._held: list[Event] = []
        self._open = 0

    def take(self, screened: Screened, events: list[Event], row: Row | None) -> Iterator[list[Outcome]]:
        self._held += events
        # Joined only when as much again has come, so that a change of many pieces is not put together at every piece.
        if len(self._held) >= 2 * self._open:
            yield self._join(screened, row, last=False)

    def end(self, screened: Screened, row: Row | None) -> Iterator[list[Outcome]]:
        yield self._join(screened, row, last=True)

    def _join(self, screened: Screened, row: Row | None, *, last: bool) -> list[Outcome]:
        events = self._held
        changes = join(screened, self._subject, events, row)
        still_open = set() if last or not changes else set(changes.pop().positions)
        for change in changes:
            note = self._tell(change)
            if note is not None:
                screened.outcomes |= {position: ended(position, note) for position in change.positions}
        self._held = [event for event in events if event.position in still_open]
        self._open = len(self._held)
        said = screened.outcomes.get
        over = [event.position for event in events if event.position not in still_open]
        return [said(position) or Outcome(position=position) for position in over]


def _look_ahead(pieces: Pieces, catalog: Catalog | None, options: Options) -> dict[RowId, Ahead]:
    """What must be known of each object before its first event is judged."""
    found: dict[RowId, Ahead] = {}
    for piece in pieces():
        for identity, subject in screen(piece, catalog, options).subjects.items():
            ahead = found.get(identity)
            if ahead is None:
                ahead = found[identity] = Ahead(Subject(subject.row, subject.table, []))
            for event in subject.events:
                if event.kind == DELETE_ROW:
                    ahead.closed, ahead.whole, ahead.columns = ahead.closed + 1, None, {}
                elif event.kind in ROW_BACK:
                    ahead.whole = event
                elif event.kind in BACK:
                    ahead.columns[event.column] = event
    return found


def _closings(pieces: Pieces, identity: RowId, catalog: Catalog | None, options: Options) -> Closings:
    """The deletes of one object."""
    for piece in pieces():
        subject = screen(piece, catalog, options).subjects.get(identity)
        if subject is not None:
            yield from [event for event in subject.events if event.kind == DELETE_ROW]
