"""A very long object, fed piece by piece or lifetime by lifetime: the same changes, outcomes and bytes as at once."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import astuple, replace

from eventlog.convert.long_object import LongObject, PackedPositions, decide_pieces
from eventlog.core.model import (
    REFRESH_FOR,
    Change,
    Event,
    Kind,
    Outcome,
    ReadBack,
    Reason,
    Refusal,
    Row,
    RowId,
    Status,
    Unreadable,
)
from eventlog.core.rules import Options, Round, decide, list_wanted, screen
from eventlog.core.rules.screen import Screened, Subject
from eventlog.core.schema import Catalog, Column
from tests.support.daily import daily
from tests.support.memory import MemoryRows
from tests.support.shares import met, shares
from tests.support.strategies import CATALOG, PHONE, careless_logs, events_of_any_quality, histories, pieces

FOR_FAR = f"{REFRESH_FOR}far"
USR1 = RowId(None, "usr", "idu=1")
FOUND: dict[RowId, Row] = {USR1: {"fname": "a", "lname": None, PHONE: ("1", "2")}}

options = st.builds(Options, user=st.sampled_from([None, "idm"]), allow_loopback=st.booleans(), coalesce=st.booleans())
catalogs = st.sampled_from([CATALOG, None])
UNREAD = [
    Unreadable(note="cannot be read.", row={"fname": "a"}),
    Unreadable(note="cannot be read."),
    Unreadable(note="may not be read.", reason=Reason.NO_RIGHT),
]
answers: list[dict[RowId, ReadBack] | None] = [None, {}, {**FOUND}, {USR1: {"fname": "a"}}, {USR1: {}}]
answers += [{USR1: one} for one in UNREAD]
found_rows = st.sampled_from(answers)


LONG = settings(max_examples=settings().max_examples * 2 // 5)
"""Each example is a log of many pieces."""


@st.composite
def cut_logs(draw: st.DrawFn) -> list[list[Event]]:
    """Many rows of one or two objects, cut into pieces anywhere."""
    one_object = st.integers(0, 40).flatmap(lambda count: st.tuples(*map(_about_one_object, range(count)))).map(list)
    events = draw(st.one_of(one_object, careless_logs(), histories().map(lambda history: history.events)))
    places = draw(st.lists(st.integers(0, len(events)), max_size=6).map(sorted))
    return list(pieces(events, places))


def _about_one_object(number: int) -> st.SearchStrategy[Event]:
    kinds = st.sampled_from([1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8])
    return events_of_any_quality(number).flatmap(
        lambda event: st.builds(
            replace,
            st.just(replace(event, table="usr", key="idu=1", time="2026-01-01")),
            kind=kinds,
            column=st.sampled_from(["fname", "LNAME", PHONE]),
        )
    )


class Told:
    """Collects changes; refuses those whose first event has a number that it is told to refuse."""

    def __init__(self, refused: frozenset[int]) -> None:
        self.refused = refused
        self.changes: list[Change] = []

    def take(self, change: Change) -> Refusal | None:
        self.changes.append(change)
        refusal = Refusal(positions=change.positions, note="cannot be said.")
        return refusal if self.refuses(change) else None

    def refuses(self, change: Change) -> bool:
        return change.positions[0][0] in self.refused


def expected(
    events: Sequence[Event], rows: dict[RowId, ReadBack] | None, told: Told, catalog: Catalog | None, chosen: Options
) -> tuple[list[Change], list[Outcome]]:
    decision = decide(events, rows, catalog=catalog, options=chosen)
    lost = {position for change in decision.changes if told.refuses(change) for position in change.positions}
    outcomes = [
        Outcome(position=one.position, status=Status.ERROR, reason=Reason.REFUSED, note="cannot be said.")
        if one.position in lost
        else replace(one, winner=None)
        for one in decision.outcomes
    ]
    return decision.changes, outcomes


def shape(change: Change) -> tuple[object, ...]:
    """All of a change, to compare: its positions may be held in a form of their own."""
    return astuple(replace(change, positions=tuple(change.positions)))


def fed(
    cut: Callable[[], Iterable[list[Event]]],
    rows: dict[RowId, ReadBack] | None,
    told: Told,
    catalog: Catalog | None = CATALOG,
    chosen: Options | None = None,
) -> list[Outcome]:
    """The outcomes of the pieces."""
    reader = None if rows is None else MemoryRows(rows)
    way = Round(catalog=catalog, reader=reader, options=chosen or Options())
    return [one for some in decide_pieces(way, cut, told.take) for one in some]


@daily
@shares(changes=0.4, refused=0.1)
@LONG
@given(cut_logs(), found_rows, catalogs, options, st.frozensets(st.integers(0, 11)))
def test_pieces_give_the_changes_and_outcomes_of_the_whole(
    cut: list[list[Event]],
    rows: dict[RowId, ReadBack] | None,
    catalog: Catalog | None,
    chosen: Options,
    refused: frozenset[int],
) -> None:
    told = Told(refused)
    outcomes = fed(lambda: cut, rows, told, catalog, chosen)
    events = [event for piece in cut for event in piece]
    changes, ended = expected(events, rows, told, catalog, chosen)
    met(changes=changes, refused=any(map(told.refuses, changes)))
    assert [shape(change) for change in sorted(told.changes, key=lambda one: one.positions[-1])] == list(
        map(shape, changes)
    )
    by_position = sorted((replace(one, winner=None) for one in outcomes), key=lambda one: one.position)
    assert by_position == ended


@pytest.mark.parametrize("first, then", [("USR", "idu=1"), ("usr", "IDU=1")])
def test_an_object_whose_name_is_written_in_two_ways_is_one_for_an_output_alone_too(first: str, then: str) -> None:
    """Without a catalog: the second row is for one output, and is read back by the name that the object was first met by."""
    events = [
        Event(position=(0,), kind=Kind.INSERT_FIELD, table=first, key="idu=1", column="fname", new="a", time="now"),
        Event(position=(1,), kind=Kind.INSERT_ROW_BACK, table="usr", key=then, time="now", perpetrator=FOR_FAR),
    ]
    told = Told(frozenset())
    outcomes = fed(lambda: [[event] for event in events], {**FOUND}, told, None)
    changes, ended = expected(events, {**FOUND}, told, None, Options())
    assert sorted(map(shape, told.changes), key=str) == sorted(map(shape, changes), key=str)
    assert {change.row for change in changes} == {RowId(None, first, "idu=1")}
    assert sorted(outcomes, key=lambda one: one.position) == ended
    assert ended[1].reason is (Reason.PUBLISHED if first == "usr" else Reason.VANISHED)


@daily
@shares(asked=0.2)
@LONG
@given(cut_logs(), catalogs, options)
def test_pieces_ask_for_what_the_whole_asks_for(
    cut: list[list[Event]], catalog: Catalog | None, chosen: Options
) -> None:
    events = [event for piece in cut for event in piece]
    whole = list_wanted(screen(events, catalog, chosen))
    met(asked=whole)
    reader = MemoryRows({})
    list(decide_pieces(Round(catalog=catalog, reader=reader, options=chosen), lambda: cut, Told(frozenset()).take))
    assert reader.asked == ([whole] if whole else [])


def field(number: int, column: str, kind: Kind = Kind.INSERT_FIELD) -> Event:
    return Event(position=(number,), kind=kind, table="usr", key="idu=1", column=column, new=str(number), time="now")


@pytest.mark.parametrize("coalesce", [False, True])
def test_a_closed_lifetime_is_told_before_the_end_is_seen(coalesce: bool) -> None:
    seen: list[int] = []

    def cut() -> Iterator[list[Event]]:
        for number in range(0, 100, 2):
            seen.append(number)
            yield [field(number, "fname"), field(number + 1, "fname", Kind.DELETE_ROW)]

    told = Told(frozenset())
    stream = decide_pieces(Round(catalog=CATALOG, options=Options(coalesce=coalesce)), cut, told.take)
    while not told.changes:
        next(stream)
    assert seen[-1] < 10
    stream.close()  # type: ignore[attr-defined]  # a generator, as the closing of a file behind it needs


def test_a_long_object_holds_one_change_and_not_its_events() -> None:
    """A row that is updated for years: each change goes when the next one begins, and coalesced, two events stay."""
    for coalesce, held in ((False, 1), (True, 2)):
        one = LongObject(Subject(USR1, None, []), Told(frozenset()).take, coalescing=coalesce)
        for number in range(100):
            list(one.take(Screened(()), [replace(field(number, "fname", Kind.UPDATE_FIELD), old="a")], None))
        assert len(_events_in(one)) == held


def _events_in(one: LongObject) -> set[int]:
    """The events that can still be reached from the object."""
    reached: set[int] = set()
    todo: list[Any] = [one]
    seen: set[int] = set()
    while todo:
        found = todo.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, Event):
            reached.add(found.position[0])
        elif not isinstance(found, (type, str, int)) and not callable(found):
            todo += gc.get_referents(found) if not isinstance(found, Struct) else astuple(found)
    return reached


def test_positions_in_eight_bytes_are_what_tuples_are() -> None:
    packed = PackedPositions()
    for number in (7, 8, 2**62):
        packed.append((number,))
    assert len(packed) == 3
    assert packed[0] == (7,)
    assert packed[-1] == (2**62,)
    assert list(packed[1:]) == [(8,), (2**62,)]


SPELLED = Catalog(
    [
        replace(
            CATALOG.tables[0],
            columns=(Column(name="idu", key=1, alike=("case", "blanks")), Column(name="fname"), Column(name="lname")),
        )
    ]
)
WRITTEN = ["idu=ab", "idu=Ab", "IDU=AB", 'idu="ab "']
spelled_rows = st.sampled_from(
    [None, {}, {"idu": "aB", "fname": "a", "lname": None, PHONE: ("1", "2")}, {"fname": "a"}]
)


@st.composite
def spelled_logs(draw: st.DrawFn) -> list[list[Event]]:
    """Rows of one object of which several texts are the key, cut anywhere."""
    events = draw(st.integers(0, 20).flatmap(lambda count: st.tuples(*map(_about_one_object, range(count)))))
    called = [replace(event, key=draw(st.sampled_from(WRITTEN))) for event in events]
    return list(pieces(called, draw(st.lists(st.integers(0, len(called)), max_size=4).map(sorted))))


@shares(changes=0.4, several=0.2)
@given(spelled_logs(), spelled_rows, options)
def test_pieces_of_an_object_with_many_spellings_are_called_as_in_the_whole(
    cut: list[list[Event]], row: Row | None, chosen: Options
) -> None:
    spellings = [RowId(None, "usr", key) for key in ("idu=ab", "idu=Ab", "idu=AB", 'idu="ab "')]
    rows: dict[RowId, ReadBack] | None = None if row is None else {one: row for one in spellings if row}
    told = Told(frozenset())
    outcomes = fed(lambda: cut, rows, told, SPELLED, chosen)
    events = [event for piece in cut for event in piece]
    changes, ended = expected(events, rows, told, SPELLED, chosen)
    met(changes=changes, several=len({event.key for event in events}) > 1 and len(changes) > 1)
    assert [shape(one) for one in sorted(told.changes, key=lambda one: one.positions[-1])] == list(map(shape, changes))
    assert sorted((replace(one, winner=None) for one in outcomes), key=lambda one: one.position) == ended
    # The row is that of the last life, which a deletion ends also where it is nobody's business.
    ended_at = max((event.position for event in events if event.kind == Kind.DELETE_ROW), default=(-1,))
    if row and "idu" in row and changes and changes[-1].positions[-1] > ended_at:
        assert changes[-1].row.key == "idu=aB"
    assert all("idu" not in [edit.column for edit in change.edits] for change in changes)
