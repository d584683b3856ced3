"""Notes about the batch in hand: what they say of events, and that nothing comes twice or at another place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import DataError
from eventlog.core.model import Position
from eventlog.sources.marks import as_text
from eventlog.sources.notes import (
    COUNTED,
    Counted,
    Planned,
    Progress,
    once_each,
    parts,
    read_counted,
    read_positions,
    read_progress,
    split_counted,
    told_before,
    write_counted,
    write_positions,
)
from tests.support.memory import inserts
from tests.support.shares import met, shares

Numbers = Sequence[int]
groups = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True), max_size=4)


def at(*numbers: int) -> list[Position]:
    return [(number,) for number in numbers]


def plans(found: Sequence[Numbers]) -> tuple[Planned, ...]:
    return tuple([Planned(f"d{place}", write_positions(at(*one)), "p") for place, one in enumerate(found)])


def numbers(found: Sequence[Planned]) -> list[tuple[str, list[int]]]:
    return [(one.id, [number for (number,) in read_positions(one.positions)]) for one in found]


@shares(several=0.3, twice=0.2)
@given(groups, st.sets(st.integers(1, 9), max_size=3))
def test_a_planned_event_stands_once_in_the_first_of_its_documents(found: list[list[int]], done: set[int]) -> None:
    seen, expected = set(done), []
    for place, one in enumerate(found):
        left = sorted(set(one) - seen)
        seen |= set(one)
        if left:
            expected.append((f"d{place}", left))
    every = [number for one in found for number in one]
    met(several=len(found) > 1, twice=len(every) > len(set(every)))
    assert numbers(once_each(plans(found), write_positions(at(*done)))) == expected


@shares(planned=0.3, done=0.3)
@given(groups, st.sets(st.integers(1, 9), max_size=3))
def test_an_output_gets_the_events_of_each_planned_document_and_then_all_others(
    found: list[list[int]], done: set[int]
) -> None:
    planned = once_each(plans(found), "")
    events = inserts(9)
    groups = parts(events, Progress(done=write_positions(at(*done)), planned=planned))
    told = [[event.position[0] for event in one.events] for one in groups]
    met(planned=any(one.planned for one in groups), done=done)
    assert sorted(number for one in told for number in one) == sorted(set(range(1, 10)) - done)
    assert all(one == sorted(one) and one for one in told)
    for one, mine in zip(groups, told, strict=True):
        here = {number for (number,) in read_positions(one.planned.positions)} if one.planned else set()
        assert set(mine) == (here - done if one.planned else set(range(1, 10)) - done - _all(planned))
    places = [planned.index(one.planned) for one in groups if one.planned]
    assert places == sorted(places)
    assert all(one.planned for one in groups[:-1])


def _all(planned: Sequence[Planned]) -> set[int]:
    return {number for one in planned for (number,) in read_positions(one.positions)}


def test_changes_that_were_left_are_apart_and_known_until_their_events_come() -> None:
    counted = Counted(left=("1..2", "4"), away=("5",))
    found = [[event.position[0] for event in one] for one in counted.apart(inserts(6))]
    assert found == [[5], [1, 2], [4], [3, 6]]
    assert Counted().apart(inserts(2)) == [inserts(2)]
    assert counted.without(inserts(2)) == ("5", "4")
    assert counted.without(inserts(4)) == ("5",)
    assert Counted().without(inserts(2)) == ()
    events = inserts(4)
    assert counted.covers([events[0], events[3]])
    assert not counted.covers(events)
    assert not counted.covers(inserts(5)[4:]), "what is away is not left"


def test_what_outputs_were_told_is_known_by_their_names_and_former_names() -> None:
    counted = Counted(told={"now": {7: 2}, "then": {7: 1}})
    assert told_before(counted, {}, "now", "then") == {7: 2}
    assert told_before(counted, {}, "other", "then") == {7: 1}
    assert told_before(counted, {}, "other") == {}
    noted = {"then": as_text(Progress(told={7: 5}))}
    assert told_before(counted, noted, "now", "then") == {7: 5}
    assert told_before(counted, {"else": as_text(Progress())}, "now") == {7: 2}
    assert read_progress(noted, "now", "then").told == {7: 5}
    assert read_progress({**noted, "now": as_text(Progress(told={8: 1}))}, "now", "then").told == {8: 1}
    assert read_progress(noted, "now") == Progress()


def test_a_note_of_transactions_is_written_where_one_goes_on_or_changes_are_left() -> None:
    assert write_counted(Counted(told={"a": {}}, away=("5",))) == {}
    for counted in (Counted(left=("1",), told={"a": {}}), Counted(told={"a": {7: 1}, "b": {}})):
        notes = write_counted(counted)
        assert list(notes) == [COUNTED]
        told = {name: counts for name, counts in counted.told.items() if counts}
        assert read_counted(notes[COUNTED]) == Counted(told=told, left=counted.left)
        assert split_counted({"a": "x", **notes}) == ({"a": "x"}, notes[COUNTED])
    assert split_counted({"a": "x"}) == ({"a": "x"}, None)


def test_a_note_that_cannot_be_read_says_what_becomes_of_that() -> None:
    with pytest.raises(DataError, match=r"^A note about the current batch cannot be read: .+\.$") as told:
        read_counted("{")
    assert told.value.hint == ("It is in the file of marks; without it documents may be published twice.")
