"""Sets of numbers as stretches behave like sets."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from eventlog.publisher.unsealed import fewer
from eventlog.sources.marks import Stretches
from tests.support.shares import met, shares

numbers = st.sets(st.integers(-5, 60)) | st.sets(st.integers(0, 12), min_size=4)
"""Scattered ones, and such as lie close together."""


@shares(common=0.2, cut=0.01)
@given(numbers, numbers)
@example(set(range(10)), {1, 2, 3, 5, 7, 8})
def test_they_are_sets(one: set[int], other: set[int]) -> None:
    mine, others = Stretches.of(one), Stretches.of(other)
    met(common=one & other, cut=len((mine - others).parts) > len(mine.parts))
    assert [*mine] == sorted(one)
    assert [*(mine | others)] == sorted(one | other)
    assert [*(mine - others)] == sorted(one - other)
    assert [*(mine & others)] == sorted(one & other)
    assert len(mine) == len(one)
    assert bool(mine) is bool(one)
    assert (mine == others) is (one == other)
    assert all((number in mine) is (number in one) for number in range(-7, 63))
    assert len({mine, Stretches.of(one)}) == 1
    assert mine | others == Stretches.of(one | other)


@given(numbers)
def test_they_are_as_short_as_can_be_and_read_back(one: set[int]) -> None:
    found = Stretches.of(one)
    assert all(first - last > 1 for (_, last), (first, _) in zip(found.parts, found.parts[1:], strict=False))
    assert Stretches.read(found.text()) == found


@shares(more=0.2, fewer=0.1)
@given(numbers, st.integers(1, 8))
def test_fewer_gaps_hold_all_that_were_there(one: set[int], most: int) -> None:
    every = [(first, last) for first, last in gaps_of(one)]
    met(more=len(every) > most, fewer=len(every) <= most)
    found = fewer(every, most)
    assert len(found) <= most
    covered = Stretches(found)
    assert all(number in covered for first, last in every for number in range(first, last + 1))
    assert found == sorted(found)


def gaps_of(one: set[int]) -> list[tuple[int, int]]:
    return [*(Stretches([(-6, max(one))]) - Stretches.of(one)).parts] if one else []
