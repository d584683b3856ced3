"""Ranges of a load: wherever keys are cut, each is in one range, and what marks hold is one load or none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.core.errors import DataError
from eventlog.refresh.ranges import (
    RangeState,
    RangeStates,
    mark_name,
    marks_of,
    number_ranges,
    part_range,
    read,
    shares,
    write,
)
from tests.support.shares import met
from tests.support.shares import shares as least

KEYS = st.integers(-50, 50)
classes = st.text(min_size=1, max_size=250)


@st.composite
def stands(draw: st.DrawFn) -> RangeState:
    """A range with or without bounds, of which some rows are written."""
    low, high = sorted(draw(st.tuples(KEYS, KEYS)))
    after, upto = draw(st.sampled_from([("", ""), (f"k={low}", ""), ("", f"k={high}"), (f"k={low}", f"k={high}")]))
    rows = draw(st.integers(0, 100))
    return RangeState(after=after, upto=upto, rows=rows, total=rows + draw(st.integers(0, 1000)))


def holds(stand: RangeState, number: int) -> bool:
    """Whether a key is still to come in a range, as SQL has it."""
    after = not stand.after or number > int(stand.after[2:])
    return after and (not stand.upto or number <= int(stand.upto[2:]))


def cut(stand: RangeState, bounds: set[int], share: int = 1) -> list[RangeState]:
    inside = sorted(one for one in bounds if holds(stand, one))
    return part_range(stand, [f"k={one}" for one in inside], share)


@given(stand=stands(), bounds=st.sets(KEYS), again=st.sets(KEYS), number=st.integers(-60, 60))
def test_each_key_is_in_one_range_also_when_ranges_are_cut_again(
    stand: RangeState, bounds: set[int], again: set[int], number: int
) -> None:
    pieces = [piece for part in cut(stand, bounds) for piece in cut(part, again)]
    assert [holds(piece, number) for piece in pieces].count(True) == holds(stand, number)


@least(several=0.2)
@given(stand=stands(), most=st.integers(1, 40), chunk=st.integers(1, 100))
def test_no_range_is_smaller_than_a_transaction_and_their_rows_are_those_of_the_whole(
    stand: RangeState, most: int, chunk: int
) -> None:
    pieces, share = shares(stand, most, chunk)
    met(several=pieces > 1)
    assert 1 <= pieces <= most
    found = part_range(stand, [f"k={number}" for number in range(pieces - 1)], share)
    assert len(found) == pieces
    assert sum(piece.total for piece in found) == stand.total
    assert sum(piece.rows for piece in found) == stand.rows
    left = [piece.total - piece.rows for piece in found]
    assert pieces == 1 or min(left) >= chunk
    assert max(left) - min(left) < max(pieces, 2)


def test_ends_are_open_and_bounds_belong_to_the_range_before() -> None:
    first, second, third = part_range(RangeState(after="k=5", rows=5, total=30, where="x"), ["k=10", "k=20"], 8)
    assert first == RangeState(after="k=5", upto="k=10", rows=5, total=13, where="x")
    assert second == RangeState(after="k=10", upto="k=20", total=8, where="x")
    assert third == RangeState(after="k=20", total=9, where="x")


def ranges(load: str = "one", count: int = 3) -> RangeStates:
    return number_ranges([RangeState(after=f"k={place}", rows=place) for place in range(count)], load)


def marked(*stands: RangeState, called: str = "usr") -> dict[str, str]:
    return {mark_name(called, stand.place): write(stand) for stand in stands}


@least(other=0.2)
@given(called=classes, count=st.integers(1, 12), other=classes)
def test_what_is_marked_is_read_again_and_no_other_class_has_it(called: str, count: int, other: str) -> None:
    marks = marked(*ranges(count=count), called=called) | {"in hand": "60..62", "refreshing: x": "{"}
    assert read(called, marks) == ranges(count=count)
    assert len(marks_of(called, list(marks))) == count
    met(other=called[:180] != other[:180])
    if called[:180] != other[:180]:
        assert marks_of(other, list(marks)) == []
        assert read(other, marks) is None


def test_ranges_of_two_loads_are_none() -> None:
    mine, theirs = ranges("mine"), ranges("theirs")
    assert read("usr", marked(*mine)) == mine
    assert read("usr", marked(mine[0], theirs[1], mine[2])) is None
    assert read("usr", marked(*theirs, *mine[:1])) is None
    assert read("usr", marked(*mine[:2])) is None
    assert read("usr", marked(*mine[1:])) is None
    assert read("usr", marked(mine[0], replace(mine[1], ranges=2), mine[2])) is None


def test_a_load_in_one_piece_is_marked_as_it_was_before_there_were_ranges() -> None:
    [alone] = number_ranges([RangeState(after="k=3", rows=3, total=9)], "any")
    assert write(alone) == '{"after":"k=3","rows":3,"total":9}'
    assert read("usr", {"refresh: usr": '{"where": null, "after": "k=3", "rows": 3, "total": 9}'}) == (alone,)
    assert mark_name("usr", 0) == "refresh: usr"
    assert mark_name("usr", 12) == "refresh 12: usr"


@pytest.mark.parametrize("place", [0, 2])
def test_a_mark_that_is_none_is_named_with_the_way_out(place: int) -> None:
    marks = marked(*ranges()) | {mark_name("usr", place): "{"}
    with pytest.raises(DataError, match=f"The mark '{mark_name('usr', place)}' cannot be read.*--again"):
        read("usr", marks)
