"""How far a stream has come in a log whose numbers are drawn before they are committed; pure.

Law: a number that is missing while a greater one is there may still come, as long as a transaction runs that may have
drawn it. Such a gap is kept with those transactions and looked at again; it is given up when it was looked at after
all of them had ended. A row that somebody holds is such a gap until it is released. So a stream misses no row, however
late it commits or is released, and hands out none twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

import msgspec
from msgspec import Struct


class Gap(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Missing numbers, both ends included; who may have drawn them, and in what second they were first missed.

    Those that are `held` are there, and wait until somebody releases them.
    """

    first: int
    last: int
    writers: tuple[str, ...] = ()
    since: float = 0
    held: bool = False


class Offset(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every number up to `upto` was handed out or is known to be missing, those in the gaps apart."""

    upto: int = 0
    gaps: tuple[Gap, ...] = ()

    def written(self) -> dict[str, object]:
        """The offset as Spark keeps it, in JSON."""
        made: dict[str, object] = msgspec.to_builtins(self)
        return made


class GapLook(Struct, frozen=True, kw_only=True):
    """What was seen: the next numbers, and those that have come in gaps; which rows somebody holds; who was writing
    before, and after that.

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
    """What lies between two offsets: numbers from first to last without those of the gaps left out."""

    first: int
    last: int
    without: tuple[Gap, ...] = ()


def read_offset(written: object) -> Offset:
    """The offset that `Offset.written` wrote."""
    return msgspec.convert(written, Offset)


def advanced(offset: Offset, look: GapLook) -> Offset:
    """The offset after a look."""
    kept = [piece for gap in offset.gaps for piece in _kept(gap, look)]
    upto = look.numbers[-1] if look.numbers else offset.upto
    since = look.now if look.after is None else 0
    writers = tuple(sorted(look.after or ()))
    missed = [
        Gap(first=first, last=last, writers=writers, since=since) for first, last in _missing(offset.upto, look.numbers)
    ]
    return Offset(upto=upto, gaps=(*kept, *missed, *_held(look.held.intersection(look.numbers))))


def steps(start: Offset, end: Offset) -> list[Step]:
    """What is handed out between two offsets, the same whenever it is asked: what was late, then what is new."""
    late = [Step(first=gap.first, last=gap.last, without=_within(end.gaps, gap.first, gap.last)) for gap in start.gaps]
    new = Step(first=start.upto + 1, last=end.upto, without=_within(end.gaps, start.upto + 1, end.upto))
    wanted = [*late, *([new] if new.last >= new.first else [])]
    return [step for step in wanted if step.without != (_whole(step),)]


def left_out(number: int, gaps: Iterable[Gap]) -> bool:
    """Whether the number is in a gap."""
    return any(gap.first <= number <= gap.last for gap in gaps)


def _kept(gap: Gap, look: GapLook) -> Iterator[Gap]:
    """What is left of a gap, and rows that have come in it and are held."""
    there = range(gap.first, gap.last + 1) if gap.held else look.found
    yield from _held({number for number in there if number in look.held and gap.first <= number <= gap.last})
    if not gap.held and _open(gap, look):
        yield from _without(gap, look.found)


def _held(numbers: Collection[int]) -> Iterator[Gap]:
    """The numbers as gaps, those side by side as one."""
    for _, run in groupby(enumerate(sorted(numbers)), lambda one: one[1] - one[0]):
        several = [number for _, number in run]
        yield Gap(first=several[0], last=several[-1], held=True)


def _open(gap: Gap, look: GapLook) -> bool:
    """Whether somebody may still fill it: who was writing before we looked may have come after we had."""
    if look.before is None:
        return look.now - gap.since < look.patience
    return not look.before.isdisjoint(gap.writers)


def _without(gap: Gap, found: Collection[int]) -> Iterator[Gap]:
    """What is left of a gap when some of its numbers have come."""
    start = gap.first
    for number in sorted(number for number in found if gap.first <= number <= gap.last):
        if number > start:
            yield msgspec.structs.replace(gap, first=start, last=number - 1)
        start = number + 1
    if start <= gap.last:
        yield msgspec.structs.replace(gap, first=start)


def _missing(upto: int, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The stretches between the numbers that have none."""
    for number in numbers:
        if number > upto + 1:
            yield upto + 1, number - 1
        upto = number


def _within(gaps: Iterable[Gap], first: int, last: int) -> tuple[Gap, ...]:
    """The parts of the gaps that lie in a stretch, as mere numbers."""
    return tuple(
        Gap(first=max(gap.first, first), last=min(gap.last, last))
        for gap in gaps
        if gap.first <= last and gap.last >= first
    )


def _whole(step: Step) -> Gap:
    return Gap(first=step.first, last=step.last)
