"""One round: the one way from events to a decision, for the daemon, conversions, Spark and `eventlog explain`.

    screen   order, set aside what takes no part, gather by object
    wanted   which objects and attributes must be read back, by the round's reader
    judge    object by object, lifetime by lifetime: precedence and merging, with what was found

A stream's images are whole and need none of this; `tell` says what consumers are told of them. An object with more
events than memory should hold comes in pieces. Law: however they are cut, changes and outcomes are those of the whole.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, cast

from msgspec import Struct

from eventlog.core.model import (
    Captured,
    Change,
    Event,
    Image,
    Outcome,
    Outcomes,
    Position,
    ReadBack,
    Row,
    RowId,
    Unreadable,
)
from eventlog.core.rules import images
from eventlog.core.rules.coalesce import coalesce
from eventlog.core.rules.join import ending, join
from eventlog.core.rules.lifetimes import ROW_BACK, as_created, begins, inserts, lifetimes, wanted
from eventlog.core.rules.long_object import LongObject, Tell
from eventlog.core.rules.meaning import Options
from eventlog.core.rules.prefer import NOBODY_READS, prefer
from eventlog.core.rules.screen import Screened, Subject, screen
from eventlog.core.rules.times import moment
from eventlog.core.schema import Catalog
from eventlog.core.seams import RowReader

HANDED_EVENTS: Final = 50_000

Merge = Callable[[Screened, Subject, list[Event], Row | None], list[Change]]

Pieces = Callable[[], Iterable[Sequence[Event]]]
"""Begins anew with the first piece whenever it is called; the events are in the order of their positions."""


class Decision(NamedTuple):
    """Changes in the order in which they are published, and one outcome for every event."""

    changes: list[Change]
    outcomes: Outcomes


class Round(Struct, frozen=True, kw_only=True):
    """What a round goes by. Without a `reader` nobody can answer read-backs."""

    catalog: Catalog | None = None
    reader: RowReader | None = None
    options: Options = Options()

    def decide(self, events: Sequence[Captured]) -> Decision:
        """What events in any order amount to."""
        [decision] = self.decide_groups([events])
        return decision

    def decide_groups(self, groups: Iterable[Sequence[Captured]]) -> list[Decision]:
        """What groups of events amount to, each by itself; rows are read back once for all of them."""
        groups = list(groups)
        if any(group and isinstance(group[0], Image) for group in groups):  # a batch has nothing else then
            return [self._told(cast("Sequence[Image]", group)) for group in groups]
        screened = [screen(cast("Sequence[Event]", group), self.catalog, self.options) for group in groups]
        asked: dict[RowId, frozenset[str]] = {}
        for one in screened:
            for row, columns in wanted(one).items():
                asked[row] = asked.get(row, columns) | columns
        rows = self._read_back(asked)
        return [judge(one, rows, self.options) for one in screened]

    def decide_objects(self, events: Sequence[Event]) -> Decision:
        """What events amount to that come object by object; so do the changes."""
        screened = screen(events, self.catalog, self.options, by_object=True)
        changes = _changes(screened, self._read_back(wanted(screened)), self.options)
        return _decision(changes, screened)

    def decide_pieces(self, pieces: Pieces, tell: Tell) -> Iterator[list[Outcome]]:
        """Tells the changes of very long objects as they become certain, and yields the outcomes of all events.

        The outcomes of a change's events come after it was told. The pieces are gone through twice.
        """
        objects: dict[RowId, LongObject] = {}
        for piece in pieces():
            for identity, subject in screen(piece, self.catalog, self.options).subjects.items():
                if identity not in objects:
                    objects[identity] = LongObject(subject, tell, coalescing=self.options.coalesce)
                objects[identity].look_ahead(subject.events)
        asked = {one.subject.row: one.asked for one in objects.values() if one.asked is not None}
        rows = self._read_back(asked)
        for piece in pieces():
            screened = screen(piece, self.catalog, self.options)
            for identity, subject in screened.subjects.items():
                one = objects[identity]
                yield from _at_once(one.take(screened, subject.events, found_of(one.subject.row, rows)))
            yield [*screened.outcomes.values()]
        for one in objects.values():
            yield from _at_once(one.end(found_of(one.subject.row, rows)))

    def _told(self, group: Sequence[Image]) -> Decision:
        told = images.tell(group, self.catalog, self.options)
        return Decision(told.changes, Outcomes([image.position for image in group], told.others))

    def _read_back(self, asked: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack] | None:
        if self.reader is None:
            return None
        return self.reader.rows(asked) if asked else {}


def decide(
    events: Iterable[Event],
    rows: Mapping[RowId, ReadBack] | None = None,
    *,
    catalog: Catalog | None = None,
    options: Options | None = None,
) -> Decision:
    """The changes that the events amount to. `rows` answers read-backs; None says that nobody can answer them."""
    return judge(screen(list(events), catalog, options or Options()), rows, options or Options())


def judge(screened: Screened, rows: Mapping[RowId, ReadBack] | None, options: Options) -> Decision:
    """What the screened events amount to, with the rows that were read back for them."""
    changes = _changes(screened, rows, options)
    changes.sort(key=_due_place if options.future else _place)
    return _decision(changes, screened)


def found_of(row: RowId, rows: Mapping[RowId, ReadBack] | None) -> ReadBack | None:
    """What was read back of an object; None where nothing was found, or asked."""
    return NOBODY_READS if rows is None else rows.get(row)


def _at_once(outcomes: Iterator[Outcome]) -> Iterator[list[Outcome]]:
    """The outcomes, no more together than fit into memory: a change may be made of millions of events."""
    while some := list(islice(outcomes, HANDED_EVENTS)):
        yield some


def _decision(changes: list[Change], screened: Screened) -> Decision:
    return Decision(changes, Outcomes([event.position for event in screened.events], screened.outcomes))


def _changes(screened: Screened, rows: Mapping[RowId, ReadBack] | None, options: Options) -> list[Change]:
    """The changes object by object; what else became of events, `screened` knows then."""
    changes: list[Change] = []
    merge: Merge = coalesce if options.coalesce else join
    for subject in screened.subjects.values():
        if subject.plain:  # nothing to prefer, nothing to close: by far the most
            changes += merge(screened, subject, subject.events, None)
            continue
        found = found_of(subject.row, rows)
        row = found.row if isinstance(found, Unreadable) else found
        if row is not None and row is found and len(subject.events) == 1 and subject.events[0].kind in ROW_BACK:
            told = merge(screened, subject, subject.events, row)  # nothing to prefer here either
            changes += as_created(told) if inserts(subject, subject.events[0]) else told
            continue
        for lifetime in lifetimes(subject):
            told = merge(screened, subject, prefer(screened, lifetime, found), row)
            changes += as_created(told) if begins(subject, lifetime, row) else told
            changes += ending(screened, subject, lifetime)
    return changes


def _place(change: Change) -> Position:
    """A change stands where its last contributing event stands."""
    return change.positions[-1]


def _due_place(change: Change) -> tuple[dt.datetime, Position]:
    return (change.time and moment(change.time)) or dt.datetime.min, change.positions[-1]
