"""How far a stream has come in a log whose numbers are drawn before they are committed; pure.

Law: a number that is missing while a greater one is there may still come, as long as a transaction
runs that may have drawn it. Such a gap is kept with those transactions and looked at again; it is
given up when it was looked at after all of them had ended. A row that somebody holds is such a gap
until it is released. So a stream misses no row, however late it commits or is released, and hands
out none twice.

An offset has MOST_GAPS gaps at most. Where there would be more the stream waits: it takes no new
numbers until some gaps have come or are given up, and it takes nothing out of a gap that would fall
into too many pieces.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

MOST_GAPS: Final = 10_000
"""Gaps that an offset may have."""

NEAR_NUMBERS: Final = 100
"""Stretches with no more numbers between them are read as one."""


class Gap(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Missing numbers, both ends included; who may have drawn them, and in what second they were
    first missed.

    Those that are `held` are there, and wait until somebody releases them.
    """

    first: int
    last: int
    writers: tuple[str, ...] = ()
    since: float = 0
    held: bool = False


Run = tuple[int, int]
"""Numbers side by side: the first and the last of them."""


class Offset(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every number up to `upto` was handed out or is known to be missing, those in the gaps apart.

    `late` are the numbers that came out of gaps in this batch. Offsets of versions before 0.3 do
    not say it.
    """

    upto: int = 0
    gaps: tuple[Gap, ...] = ()
    late: tuple[Run, ...] | None = None

    def written(self) -> dict[str, object]:
        """The offset as Spark keeps it, in JSON."""
        made: dict[str, object] = msgspec.to_builtins(self)
        return made


class GapLook(Struct, frozen=True, kw_only=True):
    """What was seen: the next numbers, and those that have come in gaps; which rows somebody holds;
    who was writing before, and after that.

    Databases that cannot say who writes give None; then a gap is kept as long as patience lasts.
    """

    numbers: Sequence[int]
    found: Collection[int] = ()
    held: frozenset[int] = frozenset()
    before: frozenset[str] | None = frozenset()
    after: frozenset[str] | None = frozenset()
    now: float = 0
    patience: float = 0


class Step(Struct, frozen=True, kw_only=True):
    """What lies between two offsets: numbers from first to last without those in between, which
    come in order.
    """

    first: int
    last: int
    without: tuple[Run, ...] = ()


def read_offset(written: object) -> Offset:
    """The offset that `Offset.written` wrote."""
    return msgspec.convert(written, Offset)


def advanced(offset: Offset, look: GapLook) -> Offset:
    """The offset after a look; the same one where nothing is new."""
    found, held = sorted(look.found), sorted(look.held)
    kept: list[Gap] = []
    late: list[Run] = []
    for gap in sorted(offset.gaps, key=_first):
        left, came = _looked_at(gap, look, found, held)
        # There is no room for so many pieces: nothing is taken out of it for now.
        if len(left) > 1 and len(kept) + len(left) > MOST_GAPS:
            left, came = [gap], []
        kept += left
        late += came
    upto, missed = _gone_on(offset.upto, look, held, room=max(0, MOST_GAPS - len(kept)))
    # To Spark an offset that is another one is a batch, though it may have no rows.
    if upto == offset.upto and not late and kept == sorted(offset.gaps, key=_first):
        return offset
    return Offset(upto=upto, gaps=tuple(sorted((*kept, *missed), key=_first)), late=tuple(late))


def steps(start: Offset, end: Offset) -> list[Step]:
    """What is handed out between two offsets, the same whenever it is asked: what was late, then
    what is new.
    """
    if start == end:
        return []
    gaps = [(gap.first, gap.last) for gap in sorted(end.gaps, key=_first)]
    late = end.late
    if late is None:
        # An offset of a former version: what its gaps have lost since came out of them.
        late = tuple(run for gap in start.gaps for run in _beside(gap.first, gap.last, _within(gaps, gap)))
    wanted = together(late)
    new = Gap(first=start.upto + 1, last=end.upto)
    without = _within(gaps, new)
    # Nothing is new, or all that is new is missing.
    if new.last >= new.first and without != ((new.first, new.last),):
        wanted.append(Step(first=new.first, last=new.last, without=without))
    return wanted


def together(runs: Iterable[Run]) -> list[Step]:
    """The runs as steps, of which each is worth a question: those that are near each other are one
    step.
    """
    steps: list[Step] = []
    for first, last in sorted(runs):
        if not steps or first - steps[-1].last > NEAR_NUMBERS:
            steps.append(Step(first=first, last=last))
            continue
        former = steps[-1]
        without = former.without
        if first > former.last + 1:
            without = (*without, (former.last + 1, first - 1))
        steps[-1] = Step(first=former.first, last=last, without=without)
    return steps


def chosen(step: Step, numbers: Iterable[int]) -> list[bool]:
    """Of each number whether the step hands it out."""
    firsts = [first for first, _ in step.without]
    is_chosen = []
    for number in numbers:
        at = bisect_right(firsts, number)
        is_chosen.append(not at or number > step.without[at - 1][1])
    return is_chosen


def _first(gap: Gap) -> int:
    return gap.first


def _looked_at(gap: Gap, look: GapLook, found: list[int], held: list[int]) -> tuple[list[Gap], list[Run]]:
    """What is left of a gap, and what comes out of it; rows that came in it and are held stay in
    it.
    """
    waiting = _between(held, gap.first, gap.last)
    # Its rows are there: what nobody holds any more comes out, without a look at the writers.
    if gap.held:
        runs = list(_runs(waiting))
        return [_held(run) for run in runs], list(_beside(gap.first, gap.last, runs))
    there = _between(found, gap.first, gap.last)
    known = set(there)
    # What came after the numbers were read is of the next look.
    stays = [_held(run) for run in _runs(number for number in waiting if number in known)]
    came = list(_runs(number for number in there if number not in look.held))
    left = []
    # Else all who may have drawn its numbers have ended, and what is not there never comes.
    if _open(gap, look):
        for first, last in _beside(gap.first, gap.last, _runs(there)):
            left.append(msgspec.structs.replace(gap, first=first, last=last))
    return sorted((*stays, *left), key=_first), came


def _gone_on(upto: int, look: GapLook, held: list[int], *, room: int) -> tuple[int, list[Gap]]:
    """How far the next numbers lead, and the gaps among them: only so far that there is room for
    these.
    """
    if not look.numbers:
        return upto, []
    last = look.numbers[-1]
    # Whoever writes after the numbers were read may have drawn what is missing among them.
    writers = tuple(sorted(look.after or ()))
    # The time matters only where nobody can say who writes.
    since = look.now if look.after is None else 0
    missing = _beside(upto + 1, last, _runs(look.numbers))
    gaps = [Gap(first=first, last=end, writers=writers, since=since) for first, end in missing]
    known = set(look.numbers)
    held_here = [number for number in _between(held, upto + 1, last) if number in known]
    gaps += map(_held, _runs(held_here))
    gaps.sort(key=_first)
    if len(gaps) > room:
        # Before the first gap that has no room: what follows is new at the next look.
        return gaps[room].first - 1, gaps[:room]
    return last, gaps


def _held(run: Run) -> Gap:
    return Gap(first=run[0], last=run[1], held=True)


def _open(gap: Gap, look: GapLook) -> bool:
    """Whether somebody may still fill it: who was writing before we looked may have come after we
    had.
    """
    if look.before is None:
        return look.now - gap.since < look.patience
    return not look.before.isdisjoint(gap.writers)


def _between(numbers: list[int], first: int, last: int) -> list[int]:
    """Those of the ordered numbers that lie in a stretch."""
    return numbers[bisect_left(numbers, first) : bisect_right(numbers, last)]


def _runs(numbers: Iterable[int]) -> Iterator[Run]:
    """Ordered numbers as runs."""
    run: Run | None = None
    for number in numbers:
        if run is not None and number > run[1] + 1:
            yield run
            run = None
        run = (number if run is None else run[0], number)
    if run is not None:
        yield run


def _beside(first: int, last: int, runs: Iterable[Run]) -> Iterator[Run]:
    """What is left of a stretch without the runs, which come in order."""
    for start, end in runs:
        if start > first:
            yield first, start - 1
        first = end + 1
    if first <= last:
        yield first, last


def _within(runs: list[Run], gap: Gap) -> tuple[Run, ...]:
    """The parts of the ordered runs that lie in a stretch."""
    begin = bisect_left(runs, gap.first, key=lambda run: run[1])
    end = bisect_right(runs, gap.last, key=lambda run: run[0])
    return tuple((max(first, gap.first), min(last, gap.last)) for first, last in runs[begin:end])
