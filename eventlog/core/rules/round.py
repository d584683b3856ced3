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
from itertools import chain, islice
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import (
    ABSENT,
    Captured,
    Change,
    Event,
    Image,
    Outcome,
    Outcomes,
    Position,
    ReadBack,
    Reason,
    Refusal,
    Row,
    RowId,
    Unreadable,
)
from eventlog.core.rules import images
from eventlog.core.rules.coalesce import coalesce
from eventlog.core.rules.lifetimes import ROW_BACK, as_created, begins, ending, inserts, join, lifetimes, wanted
from eventlog.core.rules.long_object import LongObject, Tell
from eventlog.core.rules.meaning import STATUS, Decision, Options
from eventlog.core.rules.prefer import NOBODY_READS, prefer
from eventlog.core.rules.screen import Screened, Subject, SubjectId, screen
from eventlog.core.rules.times import moment
from eventlog.core.rules.without_key import is_whole_row, whole_row_changes
from eventlog.core.schema import Catalog
from eventlog.core.seams import RowReader

HANDED_EVENTS: Final = 50_000

AGAIN: Final = frozenset({Reason.NO_ROOM, Reason.NO_RIGHT})
"""Why a row that cannot be read now may be read later."""

Merge = Callable[[Screened, Subject, list[Event], Row | None], list[Change]]

Looks = Callable[[Change], Mapping[str, tuple[RowId, str]]]

Pieces = Callable[[], Iterable[Sequence[Event]]]
"""Begins anew with the first piece whenever it is called; the events are in the order of their positions."""


class Round(Struct, frozen=True, kw_only=True):
    """What a round goes by. Without a `reader` nobody can answer read-backs."""

    catalog: Catalog | None = None
    reader: RowReader | None = None
    options: Options = Options()
    needs: Callable[[Change], frozenset[str]] | None = None
    """What policies must know of a change's object beside what the change brings."""
    looks: Looks | None = None
    """What policies must know of rows of other tables that the change does not bring yet, by the names of `Change.looked`."""

    def decide(self, events: Sequence[Captured]) -> Decision:
        """What events in any order amount to."""
        [decision] = self.decide_groups([events])
        return decision

    def decide_groups(self, groups: Iterable[Sequence[Captured]]) -> list[Decision]:
        """What groups of events amount to, each by itself; rows are read back once for all of them."""
        groups = list(groups)
        if any(group and isinstance(group[0], Image) for group in groups):  # a batch has nothing else then
            return [images.tell(cast("Sequence[Image]", group), self.catalog, self.options) for group in groups]
        screened = [screen(cast("Sequence[Event]", group), self.catalog, self.options) for group in groups]
        asked: dict[RowId, frozenset[str]] = {}
        for one in screened:
            for row, columns in wanted(one).items():
                asked[row] = asked.get(row, columns) | columns
        rows = self._read_back(asked)
        return self._completed([judge(one, rows, self.options) for one in screened])

    def decide_objects(self, events: Sequence[Event]) -> Decision:
        """What events amount to that come object by object; so do the changes."""
        screened = screen(events, self.catalog, self.options, by_object=True)
        changes = _changes(screened, self._read_back(wanted(screened)), self.options)
        return self._completed([_decision(changes, screened)])[0]

    def decide_pieces(self, pieces: Pieces, tell: Tell) -> Iterator[list[Outcome]]:
        """Tells the changes of very long objects as they become certain, and yields the outcomes of all events.

        The outcomes of a change's events come after it was told. The pieces are gone through twice.
        """
        objects: dict[SubjectId, LongObject] = {}
        told = tell if self.needs is None and self.looks is None else self._completing(tell)
        for piece in pieces():
            for identity, subject in screen(piece, self.catalog, self.options).subjects.items():
                if identity not in objects:
                    # An object is called as it was when it was first met, though one output's rows of it come later.
                    row = objects[identity[0]].subject.row if isinstance(identity, tuple) else subject.row
                    called = Subject(row, subject.table, [])
                    objects[identity] = LongObject(called, told, coalescing=self.options.coalesce)
                objects[identity].look_ahead(subject.events)
        asked: dict[RowId, frozenset[str]] = {}
        for one in objects.values():
            if (columns := one.asked) is not None:
                asked[one.subject.row] = asked.get(one.subject.row, columns) | columns
        rows = self._read_back(asked)
        for piece in pieces():
            screened = screen(piece, self.catalog, self.options)
            for identity, subject in screened.subjects.items():
                one = objects[identity]
                yield from _at_once(one.take(screened, subject.events, found_of(one.subject.row, rows)))
            yield [*screened.outcomes.values()]
        for one in objects.values():
            yield from _at_once(one.end(found_of(one.subject.row, rows)))

    def _completed(self, decisions: list[Decision]) -> list[Decision]:
        """The decisions, with what policies need beside their changes; rows are read once for all of them.

        Where a row cannot be read yet, all changes of its object wait.
        """
        decisions = decisions if self.needs is None else self._with_beside(decisions, self.needs)
        return decisions if self.looks is None else [self._with_looked(decision, self.looks) for decision in decisions]

    def _with_looked(self, decision: Decision, looks: Looks) -> Decision:
        """A decision with what policies find in rows of other tables."""
        changes = decision.changes
        waiting: dict[RowId, Unreadable] = {}
        while places := [looks(change) for change in changes]:
            asked: dict[RowId, frozenset[str]] = {}
            for row, column in chain.from_iterable(one.values() for one in places):
                asked[row] = asked.get(row, frozenset()) | {column}
            if not asked:
                break
            found = self._read_back(asked)
            for change, mine in zip(changes, places, strict=True):
                for row, _ in mine.values():
                    one = found_of(row, found)
                    if isinstance(one, Unreadable) and one.reason in AGAIN:
                        waiting[change.row] = one
            changes = [_looked(change, mine, found) for change, mine in zip(changes, places, strict=True)]
        return _without_waiting(Decision(changes, decision.outcomes), waiting)

    def _with_beside(self, decisions: list[Decision], needs: Callable[[Change], frozenset[str]]) -> list[Decision]:
        wanted = [[(change, needs(change)) for change in decision.changes] for decision in decisions]
        asked: dict[RowId, frozenset[str]] = {}
        for change, columns in chain.from_iterable(wanted):
            if columns:
                asked[change.row] = asked.get(change.row, columns) | columns
        if not asked:
            return decisions
        found = self._read_back(asked) or {}
        waiting = {row: one for row, one in found.items() if isinstance(one, Unreadable) and one.reason in AGAIN}
        return [_beside(decision, columns, found, waiting) for decision, columns in zip(decisions, wanted, strict=True)]

    def _completing(self, tell: Tell) -> Tell:
        """Tells changes with what policies need beside them, where they come one by one: few objects are that long."""
        known: dict[RowId, tuple[frozenset[str], ReadBack | None]] = {}

        def told(change: Change) -> Refusal | None:
            columns = frozenset[str]() if self.needs is None else self.needs(change)
            if columns:
                had, row = known.get(change.row, (frozenset[str](), None))
                if not columns <= had:
                    had |= columns
                    row = (self._read_back({change.row: had}) or {}).get(change.row)
                    known[change.row] = had, row
                change = replace(change, beside=beside_of(row, columns))
            while self.looks is not None and (places := self.looks(change)):
                change = _looked(
                    change, places, self._read_back({row: frozenset([name]) for row, name in places.values()})
                )
            return tell(change)

        return told

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


def place_of(options: Options) -> Callable[[Change], Any]:
    """By what changes are put in the order in which they are published."""
    return _due_place if options.future else _place


def found_of(row: RowId, rows: Mapping[RowId, ReadBack] | None) -> ReadBack | None:
    """What was read back of an object; None where nothing was found, or asked."""
    return NOBODY_READS if rows is None else rows.get(row)


def beside_of(found: ReadBack | None, columns: frozenset[str]) -> Row | None:
    """What is known beside a change of these attributes: nothing where its object is gone, None where it cannot be read."""
    row = found.row if isinstance(found, Unreadable) else found or {}
    known = {name: row[name] for name in sorted(columns) if name in row}
    return None if isinstance(found, Unreadable) and not known else known


def _beside(
    decision: Decision,
    wanted: Sequence[tuple[Change, frozenset[str]]],
    found: Mapping[RowId, ReadBack],
    waiting: Mapping[RowId, Unreadable],
) -> Decision:
    """A decision with what was read beside its changes."""
    changes = [
        replace(change, beside=beside_of(found.get(change.row), columns)) if columns else change
        for change, columns in wanted
    ]
    return _without_waiting(Decision(changes, decision.outcomes), waiting)


def _looked(change: Change, places: Mapping[str, tuple[RowId, str]], found: Mapping[RowId, ReadBack] | None) -> Change:
    """A change with what was found in rows of other tables: NULL where there is no such row."""
    looked = dict(change.looked or {})
    for name, (row, column) in places.items():
        one = found_of(row, found)
        values = one.row if isinstance(one, Unreadable) else one
        looked[name] = None if values is None else values.get(column, ABSENT)
    return replace(change, looked=looked) if places else change


def _without_waiting(decision: Decision, waiting: Mapping[RowId, Unreadable]) -> Decision:
    """A decision without the changes of objects that must be read later."""
    if not waiting:
        return decision
    others = dict(decision.outcomes.others)
    for change in decision.changes:
        why = waiting.get(change.row)
        if why is not None:
            for position in change.positions:
                others[position] = Outcome(
                    position=position, status=STATUS[why.reason], reason=why.reason, note=why.note
                )
    changes = [change for change in decision.changes if change.row not in waiting]
    return Decision(changes, Outcomes(decision.outcomes.positions, others))


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
        if is_whole_row(subject):
            changes += whole_row_changes(screened, subject, subject.events)
            continue
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
