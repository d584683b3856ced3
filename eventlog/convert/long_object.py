"""An object with more events than memory should hold: its events come in pieces, twice. Law: however
they are cut, changes and outcomes are those of the whole.

The first time it is seen how each lifetime ends, the second time the round's own precedence and
merging are applied to one piece after the other. What is held is one unfinished change, and eight
bytes for each delete.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, overload

from msgspec.structs import replace

from eventlog.core.model import Change, Event, Outcome, Position, ReadBack, Refusal, Row, RowId, Unreadable
from eventlog.core.rules.coalesce import NetEdits, coalesce, make_cancelled
from eventlog.core.rules.lifetimes import (
    BACK,
    DELETE_ROW,
    ROW_BACK,
    Lifetime,
    Unfinished,
    as_created,
    ending,
    find_read_back,
    inserts,
    join,
    lifetimes,
    spell_as_row,
)
from eventlog.core.rules.meaning import end_event
from eventlog.core.rules.prefer import prefer
from eventlog.core.rules.round import Round, add_called, add_looked_up, beside_of, list_named, row_back_of
from eventlog.core.rules.screen import Screened, Subject, SubjectId, screen
from eventlog.core.rules.without_key import whole_row_changes

HANDED_EVENTS: Final = 50_000

Pieces = Callable[[], Iterable[Sequence[Event]]]
"""Begins again with the first piece whenever it is called; events are in order of position."""

WriteChange = Callable[[Change], Refusal | None]
"""Takes a change; the answer is why it, or a value of it, cannot be published, or None."""


class PackedPositions(Sequence[Position]):
    """Positions of a log, one number each, in eight bytes each: a lifetime may have millions."""

    def __init__(self) -> None:
        self._numbers = array("q")

    def append(self, position: Position) -> None:
        self._numbers.append(position[0])

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Position: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Position]: ...
    def __getitem__(self, index: int | slice) -> Position | Sequence[Position]:
        if isinstance(index, slice):
            return [(number,) for number in self._numbers[index]]
        return (self._numbers[index],)


class LongObject:
    """One object on its way through the rules."""

    def __init__(self, subject: Subject, write_one: WriteChange, *, coalescing: bool) -> None:
        self.subject = Subject(subject.row, subject.table, [], loose=subject.loose)
        self._write_one = write_one
        self._closings = array("q")
        """The deletes, by the numbers of their positions."""
        self._winners: dict[str | None, Event] = {}
        """The read-backs of the open lifetime that others lose to: the last of each column, and of
        the whole row.
        """
        self._over = 0
        """How many lifetimes are over."""
        self._begun = False
        """Whether the object is new in the open lifetime, and nothing of it is written yet."""
        self._names: dict[int, RowId] = {}
        """What the object is called in its lifetimes, by their numbers, where it is not as it was first met."""
        self._open: RowId | None = None
        """What it is called in the open lifetime, if there is one; only of a key with several spellings."""
        self._coalescing = coalescing
        self._unfinished, self._net = Unfinished(), NetEdits(PackedPositions)

    def look_ahead(self, screened: Screened, met: Subject) -> None:
        """Note where lifetimes end."""
        # A row without a key is written by itself, so nothing of what follows matters to it.
        if self.subject.table is not None and self.subject.table.whole_row:
            return
        for event in met.events:
            if self.subject.loose:
                self._call(screened.spelled.get((event.table, event.key), met.row), event)
            if event.kind == DELETE_ROW:
                self._closings.append(event.position[0])
                # What was to be read back before a delete has vanished.
                self._winners = {}
                self._begun = False
                continue
            self._begun = self._begun or inserts(self.subject, event)
            if event.kind in BACK:
                column = None if event.kind in ROW_BACK else event.column
                self._winners[column] = event

    def _call(self, called: RowId, event: Event) -> None:
        """Note the object's name: by the delete at a lifetime's end, else by its first row."""
        if event.kind != DELETE_ROW:
            self._open = self._open or called
            return
        self._open = None
        if called != self.subject.row:
            self._names[len(self._closings)] = called

    def _named(self, row: Row | None) -> Subject:
        """Return the object under the name of its present lifetime."""
        if not self.subject.loose:
            return self.subject
        if self._over < len(self._closings):
            called = self._names.get(self._over, self.subject.row)
        else:
            called = spell_as_row(self._open or self.subject.row, self.subject.table, row)
        return Subject(called, self.subject.table, [], loose=self.subject.loose)

    @property
    def asked(self) -> frozenset[str] | None:
        """Return the attributes to read back; None if there are none."""
        asked = find_read_back(self.subject, Lifetime([*self._winners.values()]))
        if self._open is not None:
            return (asked or frozenset()) | self.subject.loose
        return asked

    def take(self, screened: Screened, events: list[Event], read_back: ReadBack | None) -> Iterator[Outcome]:
        """Write the changes certain after a piece, and yield the outcomes of their events."""
        if self.subject.table is not None and self.subject.table.whole_row:
            yield from self._write(whole_row_changes(screened, self.subject, events))
            return
        row = read_back.row if isinstance(read_back, Unreadable) else read_back
        for lifetime in lifetimes(Subject(self.subject.row, self.subject.table, events)):
            over = lifetime.closing is not None
            yield from self._merge(screened, self._prefer(screened, lifetime, read_back), row, over=over)
            yield from self._write(ending(screened, self._named(row), lifetime))
            self._over += over

    def end(self, read_back: ReadBack | None) -> Iterator[Outcome]:
        """Write the changes still open, and yield the outcomes of their events."""
        row = read_back.row if isinstance(read_back, Unreadable) else read_back
        yield from self._merge(Screened(()), [], row, over=True)

    def _prefer(self, screened: Screened, lifetime: Lifetime, read_back: ReadBack | None) -> list[Event]:
        """Choose the remaining events of a lifetime's piece, by all known of other pieces."""
        if lifetime.closing is not None:
            return prefer(screened, lifetime, read_back)
        # This lifetime's delete stands in a later piece; that it comes is all that matters here.
        if self._over < len(self._closings):
            closing = Event(position=(self._closings[self._over],), kind=DELETE_ROW, table=None, key=None)
            return prefer(screened, Lifetime(lifetime.events, closing), read_back)
        # The winners of other pieces take part, or what they supersede here would be written.
        here = {event.position for event in lifetime.events}
        others = [winner for winner in self._winners.values() if winner.position not in here]
        remaining = prefer(screened, Lifetime([*lifetime.events, *others]), read_back)
        elsewhere = {winner.position for winner in others}
        for position in elsewhere:  # they have their outcomes in the pieces where they stand
            screened.outcomes.pop(position, None)
        return [event for event in remaining if event.position not in elsewhere]

    def _merge(self, screened: Screened, events: list[Event], row: Row | None, *, over: bool) -> Iterator[Outcome]:
        """Write the changes no event can join any more."""
        if not self._coalescing:
            changes = join(screened, self._named(row), events, row, self._unfinished, over=over)
            yield from self._write(self._begin(changes, row))
        else:
            changes = coalesce(screened, self._named(row), events, row, self._net, over=over)
            yield from self._write(self._begin(changes, row))
            yield from map(make_cancelled, chain.from_iterable(self._net.cancelled))
            self._net.cancelled = []
        if over:
            self._unfinished, self._net = Unfinished(), NetEdits(PackedPositions)

    def _begin(self, changes: list[Change], row: Row | None) -> list[Change]:
        """Turn the first changes of a new object into those of a creation."""
        if not changes or self._over < len(self._closings):
            return changes
        begun = self._begun and row is not None and bool(self._winners)
        self._begun = False
        if begun:
            return as_created(changes)
        return changes

    def _write(self, changes: list[Change]) -> Iterator[Outcome]:
        for change in changes:
            refusal = self._write_one(change)
            for position in change.positions:
                yield end_event(position, refusal)


def decide_pieces(round_: Round, pieces: Pieces, write_one: WriteChange) -> Iterator[list[Outcome]]:
    """Write changes of very long objects as they become certain; yield the outcomes of all events.

    The outcomes of a change's events come after it was written. The pieces are read twice: an
    object's end shows what to read back for its beginning.
    """
    objects: dict[SubjectId, LongObject] = {}
    if round_.needs is not None or round_.looks is not None or round_.references:
        write_one = _completing(round_, write_one)
    for piece in pieces():
        met = screen(piece, round_.catalog, round_.options)
        for identity, subject in met.subjects.items():
            if identity not in objects:
                row = subject.row
                # Rows for one output may come later, and call the object by another spelling:
                # it is called as it was when it was first met.
                if isinstance(identity, tuple):
                    row = objects[identity[0]].subject.row
                called = Subject(row, subject.table, [], loose=subject.loose)
                objects[identity] = LongObject(called, write_one, coalescing=round_.options.coalesce)
            objects[identity].look_ahead(met, subject)
    asked: dict[RowId, frozenset[str]] = {}
    for long_object in objects.values():
        if (columns := long_object.asked) is not None:
            row = long_object.subject.row
            asked[row] = asked.get(row, columns) | columns
    rows = round_.read_back(asked)
    for piece in pieces():
        screened = screen(piece, round_.catalog, round_.options)
        for identity, subject in screened.subjects.items():
            long_object = objects[identity]
            row_back = row_back_of(long_object.subject.row, rows)
            yield from _at_once(long_object.take(screened, subject.events, row_back))
        yield [*screened.outcomes.values()]
    for long_object in objects.values():
        yield from _at_once(long_object.end(row_back_of(long_object.subject.row, rows)))


def _completing(round_: Round, write_one: WriteChange) -> WriteChange:
    """Write changes one by one, each with the values its policies need."""
    # Of the few objects that are so long their rows are read one by one, and kept.
    known: dict[RowId, tuple[frozenset[str], ReadBack | None]] = {}
    references = round_.references

    def complete(change: Change) -> Refusal | None:
        columns = frozenset[str]()
        if round_.needs is not None:
            columns = round_.needs(change)
        if columns:
            had, row = known.get(change.row, (frozenset[str](), None))
            if not columns <= had:
                had |= columns
                row = (round_.read_back({change.row: had}) or {}).get(change.row)
                known[change.row] = had, row
            change = replace(change, beside=beside_of(row, columns))
        while round_.looks is not None and (places := round_.looks(change)):
            asked = {row: frozenset([name]) for row, name in places.values()}
            change = add_looked_up(change, places, round_.read_back(asked))
        if named := list_named(change, references):
            asked = {row: reference.table.loose_key for row, reference in named.items()}
            change = add_called(change, named, round_.read_back(asked))
        return write_one(change)

    return complete


def _at_once(outcomes: Iterator[Outcome]) -> Iterator[list[Outcome]]:
    """Yield the outcomes in pieces: a change may be made of millions of events."""
    while some := list(islice(outcomes, HANDED_EVENTS)):
        yield some
