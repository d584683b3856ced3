"""The rules piece by piece: whatever the pieces, the same changes and outcomes as from the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.core.model import Change, Event, Kind, Outcome, Position, ReadBack, Reason, Row, RowId, Status, Unreadable
from eventlog.core.rules import Options, decide, screen, wanted
from eventlog.core.rules.flow import asked, flow
from eventlog.core.rules.join import join
from eventlog.core.schema import Catalog
from tests.support.shares import met, shares
from tests.support.strategies import CATALOG, PHONE, careless_logs, events_of_any_quality, histories, pieces

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
        self.notes: dict[Position, str] = {}

    def take(self, change: Change) -> str | None:
        self.changes.append(change)
        return "cannot be said." if self.refuses(change) else None

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
    """A change without the events between its first and its last, which a folded one does not name."""
    return change.row, change.op, change.edits, change.event_id, change.positions[-1], change.time


@shares(changes=0.4, refused=0.1)
@given(cut_logs(), found_rows, catalogs, options, st.frozensets(st.integers(0, 11)))
def test_pieces_give_the_changes_and_outcomes_of_the_whole(
    cut: list[list[Event]],
    rows: dict[RowId, ReadBack] | None,
    catalog: Catalog | None,
    chosen: Options,
    refused: frozenset[int],
) -> None:
    told = Told(refused)
    outcomes = [one for some in flow(lambda: cut, rows, told.take, catalog=catalog, options=chosen) for one in some]
    events = [event for piece in cut for event in piece]
    changes, ended = expected(events, rows, told, catalog, chosen)
    met(changes=changes, refused=any(map(told.refuses, changes)))
    assert [shape(change) for change in sorted(told.changes, key=lambda one: one.positions[-1])] == list(
        map(shape, changes)
    )
    by_position = sorted((replace(one, winner=None) for one in outcomes), key=lambda one: one.position)
    assert by_position == ended


@shares(asked=0.2)
@given(cut_logs(), catalogs, options)
def test_pieces_ask_for_what_the_whole_asks_for(
    cut: list[list[Event]], catalog: Catalog | None, chosen: Options
) -> None:
    events = [event for piece in cut for event in piece]
    whole = wanted(screen(events, catalog, chosen))
    met(asked=whole)
    assert asked(lambda: cut, catalog, chosen) == whole


def field(number: int, column: str, kind: Kind = Kind.INSERT_FIELD) -> Event:
    return Event(position=(number,), kind=kind, table="usr", key="idu=1", column=column, new=str(number), time="now")


def test_a_change_of_many_pieces_is_not_put_together_at_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of a child table may all join one change; the work stays in proportion to the events."""
    joined: list[int] = []

    def counted(screened: object, subject: object, events: list[Event], row: object) -> list[Change]:
        joined.append(len(events))
        return join(screened, subject, events, row)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr("eventlog.core.rules.flow.join", counted)
    cut = [[field(number, PHONE)] for number in range(1000)]
    told = Told(frozenset())
    outcomes = [one for some in flow(lambda: cut, None, told.take, catalog=CATALOG) for one in some]
    assert (len(outcomes), len(told.changes), len(told.changes[0].edits)) == (1000, 1, 1000)
    assert sum(joined) < 4000


@pytest.mark.parametrize("coalesce", [False, True])
def test_a_closed_lifetime_is_told_before_the_end_is_seen(coalesce: bool) -> None:
    seen: list[int] = []

    def cut() -> Iterator[list[Event]]:
        for number in range(0, 100, 2):
            seen.append(number)
            yield [field(number, "fname"), field(number + 1, "fname", Kind.DELETE_ROW)]

    told = Told(frozenset())
    stream = flow(cut, None, told.take, catalog=CATALOG, options=Options(coalesce=coalesce))
    while not told.changes:
        next(stream)
    assert seen[-1] < 10
    stream.close()  # type: ignore[attr-defined]  # a generator, as the closing of a file behind it needs


def test_a_delete_by_the_publishers_own_user_closes_and_says_nothing() -> None:
    own = replace(field(2, "fname", Kind.DELETE_ROW), perpetrator="idm")
    cut = [[field(1, "fname"), field(3, "fname", Kind.UPDATE_ROW_BACK)], [replace(own, position=(4,))]]
    told = Told(frozenset())
    chosen = Options(user="idm")
    outcomes = [one for some in flow(lambda: cut, FOUND, told.take, catalog=CATALOG, options=chosen) for one in some]
    assert [(one.position[0], one.reason) for one in sorted(outcomes, key=lambda one: one.position)] == [
        (1, Reason.PUBLISHED),
        (3, Reason.VANISHED),
        (4, Reason.LOOPBACK),
    ]
    assert [change.positions for change in told.changes] == [((1,),)]


def test_the_one_that_runs_ahead_meets_every_delete_of_its_object() -> None:
    from eventlog.core.rules.flow import _closings

    other = replace(field(5, "fname", Kind.DELETE_ROW), key="idu=2")
    cut = [[field(1, "fname", Kind.DELETE_ROW)], [other], [field(7, "fname", Kind.DELETE_ROW)]]
    assert [event.position for event in _closings(lambda: cut, USR1, CATALOG, Options())] == [(1,), (7,)]


def test_changes_of_many_pieces_that_cancel_each_other_out_make_nothing() -> None:
    there = replace(field(1, "fname", Kind.UPDATE_FIELD), old="a", new="b")
    back = replace(field(2, "fname", Kind.UPDATE_FIELD), old="b", new="a")
    told = Told(frozenset())
    chosen = Options(coalesce=True)
    outcomes = [one for some in flow(lambda: [[there], [back]], None, told.take, options=chosen) for one in some]
    assert [(one.position[0], one.reason) for one in outcomes] == [(1, Reason.NOTHING), (2, Reason.NOTHING)]
    assert told.changes == []
