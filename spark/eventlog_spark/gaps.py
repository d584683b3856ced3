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
        if len(left) > 1 and len(kept) + len(left) > MOST_GAPS:
            left, came = [gap], []
        kept += left
        late += came
    upto, missed = _gone_on(offset.upto, look, held, room=max(0, MOST_GAPS - len(kept)))
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
        late = tuple(run for gap in start.gaps for run in _beside(gap.first, gap.last, _within(gaps, gap)))
    new = Gap(first=start.upto + 1, last=end.upto)
    without = _within(gaps, new)
    wanted = [Step(first=new.first, last=new.last, without=without)] if new.last >= new.first else []
    return [*together(late), *(step for step in wanted if step.without != ((step.first, step.last),))]


def together(runs: Iterable[Run]) -> list[Step]:
    """The runs as steps, of which each is worth a question: those that are near each other are one
    step.
    """
    found: list[Step] = []
    for first, last in sorted(runs):
        if found and first - found[-1].last <= NEAR_NUMBERS:
            former = found[-1]
            between = ((former.last + 1, first - 1),) if first > former.last + 1 else ()
            found[-1] = Step(first=former.first, last=last, without=(*former.without, *between))
        else:
            found.append(Step(first=first, last=last))
    return found


def chosen(step: Step, numbers: Iterable[int]) -> list[bool]:
    """Of each number whether the step hands it out."""
    firsts = [first for first, _ in step.without]
    found = []
    for number in numbers:
        place = bisect_right(firsts, number)
        found.append(not place or number > step.without[place - 1][1])
    return found


def _first(gap: Gap) -> int:
    return gap.first


def _looked_at(gap: Gap, look: GapLook, found: list[int], held: list[int]) -> tuple[list[Gap], list[Run]]:
    """What is left of a gap, and what comes out of it; rows that came in it and are held stay in
    it.
    """
    waiting = _between(held, gap.first, gap.last)
    if gap.held:
        runs = list(_runs(waiting))
        return [_held(run) for run in runs], list(_beside(gap.first, gap.last, runs))
    there = _between(found, gap.first, gap.last)
    known = set(there)
    stays = [_held(run) for run in _runs(number for number in waiting if number in known)]
    came = list(_runs(number for number in there if number not in look.held))
    left = []
    if _open(gap, look):
        missing = _beside(gap.first, gap.last, _runs(there))
        left = [msgspec.structs.replace(gap, first=first, last=last) for first, last in missing]
    return sorted((*stays, *left), key=_first), came


def _gone_on(upto: int, look: GapLook, held: list[int], *, room: int) -> tuple[int, list[Gap]]:
    """How far the next numbers lead, and the gaps among them: only so far that there is room for
    these.
    """
    if not look.numbers:
        return upto, []
    last = look.numbers[-1]
    since = look.now if look.after is None else 0
    writers = tuple(sorted(look.after or ()))
    missing = _beside(upto + 1, last, _runs(look.numbers))
    gaps = [Gap(first=first, last=end, writers=writers, since=since) for first, end in missing]
    known = set(look.numbers)
    gaps += [_held(run) for run in _runs(number for number in _between(held, upto + 1, last) if number in known)]
    gaps.sort(key=_first)
    return (gaps[room].first - 1, gaps[:room]) if len(gaps) > room else (last, gaps)


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
