"""Offsets of a stream: no row is missed and none comes twice, whenever transactions commit and whenever we look."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, field
from msgspec.structs import replace

from eventlog.sources.marks import RowRanges
from eventlog_spark import gaps
from eventlog_spark.gaps import Gap, GapLook, Offset, Step, advance_offset, read_offset, steps, together


class World(Struct):
    """A log whose numbers are drawn before they are committed."""

    drawn: int = 0
    running: dict[str, set[int]] = field(default_factory=dict)
    committed: set[int] = field(default_factory=set)
    held: set[int] = field(default_factory=set)
    begun: int = 0

    def draw(self, which: int, *, fresh: bool) -> None:
        """A transaction, new or running, draws a number."""
        if fresh or not self.running:
            self.begun += 1
            self.running[f"t{self.begun}"] = set()
        self.drawn += 1
        sorted(self.running.items())[which % len(self.running)][1].add(self.drawn)

    def end(self, which: int, *, commit: bool) -> None:
        if self.running:
            numbers = self.running.pop(sorted(self.running)[which % len(self.running)])
            self.committed |= numbers if commit else set()

    def hold(self, which: int) -> None:
        """Somebody holds a row, or releases it, whether it was handed out or not."""
        if self.committed:
            self.held ^= {sorted(self.committed)[-1 - which % len(self.committed)]}

    def look(self, offset: Offset, limit: int, before: frozenset[str]) -> GapLook:
        """What is seen now; `before` was asked earlier, and afterwards comes now too."""
        new = sorted(number for number in self.committed if number > offset.upto)[:limit]
        missing = [(gap.first, gap.last) for gap in offset.gaps]
        found = [number for number in self.committed if any(first <= number <= last for first, last in missing)]
        return GapLook(
            numbers=new, arrived=found, held=frozenset(self.held), before=before, after=frozenset(self.running)
        )


kinds = st.sampled_from(["draw", "draw", "begin", "commit", "roll back", "hold", "look", "look"])
moves = st.tuples(kinds, st.integers(0, 3))


def handed_out(world: World, start: Offset, end: Offset) -> list[int]:
    """The committed numbers that lie between two offsets."""
    return [
        number
        for step in steps(start, end)
        for number in range(step.first, step.last + 1)
        if number in world.committed and number not in step.without
    ]


@given(st.lists(st.tuples(moves, moves), max_size=60), st.integers(1, 5), st.sampled_from([1, 2, 4, 10_000]))
def test_every_committed_row_is_handed_out_once(
    history: list[tuple[tuple[str, int], ...]], limit: int, most_gaps: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaps, "MOST_GAPS", most_gaps)
        world, taken = _hand_out(history, limit)
    assert sorted(taken) == sorted(world.committed)


def _hand_out(history: list[tuple[tuple[str, int], ...]], limit: int) -> tuple[World, list[int]]:
    """The log after its history, and the rows that were handed out."""
    world, offset = World(), Offset()
    taken: list[int] = []
    batches: list[tuple[Offset, Offset, list[int]]] = []

    def move(what: str, which: int) -> None:
        if what in ("draw", "begin"):
            world.draw(which, fresh=what == "begin")
        elif what == "hold":
            world.hold(which)
        elif what != "look":
            world.end(which, commit=what == "commit")

    for (what, which), meanwhile in history:
        move(what, which)
        if what == "look":
            before = frozenset(world.running)
            move(*meanwhile)  # between asking who writes and reading the numbers
            end = read_offset(advance_offset(offset, world.look(offset, limit, before)).written())
            batches.append((offset, end, handed_out(world, offset, end)))
            assert not world.held.intersection(batches[-1][2])
            assert len(end.gaps) <= gaps.MOST_GAPS
            taken += batches[-1][2]
            offset = end
    while world.running:
        world.end(0, commit=True)
    world.held.clear()
    for _ in range(world.drawn + 2):
        end = advance_offset(offset, world.look(offset, limit, frozenset()))
        taken += handed_out(world, offset, end)
        offset = end
    assert offset.gaps == ()
    # A batch that Spark repeats later is the same, whatever has been committed since.
    assert [handed_out(world, start, end) for start, end, _ in batches] == [found for _, _, found in batches]
    return world, taken


def test_without_knowing_who_writes_a_gap_is_given_up_when_patience_ends() -> None:
    start = advance_offset(Offset(), GapLook(numbers=[2], before=None, after=None, now=100.0, patience=60))
    assert start == Offset(upto=2, gaps=(Gap(first=1, last=1, since=100.0),), late=())
    assert advance_offset(start, GapLook(numbers=[], before=None, after=None, now=159.0, patience=60)) == start
    assert advance_offset(start, GapLook(numbers=[], before=None, after=None, now=160.0, patience=60)).gaps == ()


def test_a_gap_of_which_a_part_has_come_keeps_the_rest() -> None:
    start = Offset(upto=9, gaps=(Gap(first=3, last=7, writers=("a", "b")),))
    end = advance_offset(start, GapLook(numbers=[], arrived=[5], before=frozenset("b"), after=frozenset("b")))
    assert [(gap.first, gap.last) for gap in end.gaps] == [(3, 4), (6, 7)]
    assert steps(start, end) == [Step(first=5, last=5)]


def test_a_row_that_is_held_waits_until_it_is_released() -> None:
    start = advance_offset(Offset(), GapLook(numbers=[1, 2, 3, 4], held=frozenset({2, 3, 4})))
    assert start == Offset(upto=4, gaps=(Gap(first=2, last=4, held=True),), late=())
    end = advance_offset(start, GapLook(numbers=[], held=frozenset({2})))
    assert end == Offset(upto=4, gaps=(Gap(first=2, last=2, held=True),), late=((3, 4),))
    assert steps(start, end) == [Step(first=3, last=4)]


def test_a_row_that_commits_late_and_is_held_waits_too() -> None:
    start = Offset(upto=9, gaps=(Gap(first=3, last=5, writers=("a",)),))
    end = advance_offset(start, GapLook(numbers=[], arrived=[3, 4], held=frozenset({4})))
    assert end == Offset(upto=9, gaps=(Gap(first=4, last=4, held=True),), late=((3, 3),))


def test_nothing_new_is_no_step() -> None:
    offset = Offset(upto=9, gaps=(Gap(first=3, last=7, writers=("a",)),))
    assert advance_offset(offset, GapLook(numbers=[], before=frozenset("a"), after=frozenset("a"))) is offset
    assert steps(offset, Offset(upto=9, late=())) == []


def test_runs_that_are_near_each_other_are_read_together() -> None:
    assert together([(200, 201), (3, 3), (5, 6), (7, 7)]) == [
        Step(first=3, last=7, without=RowRanges.of([4])),
        Step(first=200, last=201),
    ]


def test_an_offset_has_so_many_gaps_and_no_more() -> None:
    """Every second number is missing, as where two servers number in turn."""
    look = GapLook(numbers=range(2, 100_000, 2), before=None, after=None, now=1.0, patience=60)
    offset = advance_offset(Offset(), look)
    assert (len(offset.gaps), offset.upto) == (gaps.MOST_GAPS, 2 * gaps.MOST_GAPS)
    assert advance_offset(offset, replace(look, numbers=range(offset.upto + 2, 100_000, 2))) is offset
    later = advance_offset(offset, GapLook(numbers=[], arrived=range(1, 100, 2), before=None, now=99.0, patience=60))
    assert later.gaps == ()
    assert [(step.first, step.last) for step in steps(offset, later)] == [(1, 99)]
    [new] = steps(Offset(), offset)
    assert new.last - len(new.without) == gaps.MOST_GAPS
