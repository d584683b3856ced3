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

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.sources.marks import RowRanges, Run

MOST_GAPS: Final = 10_000
"""Gaps that an offset may have."""

NEAR_NUMBERS: Final = 100
"""RowRanges with no more numbers between them are read as one."""

NONE: Final = RowRanges()


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


class Offset(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every number up to `upto` was handed out or is known to be missing, those in the gaps apart.

    `late` are the numbers that came out of gaps in this batch.
    """

    upto: int = 0
    gaps: tuple[Gap, ...] = ()
    late: tuple[Run, ...] = ()

    def written(self) -> dict[str, object]:
        """Encode the offset as JSON, for Spark to keep."""
        made: dict[str, object] = msgspec.to_builtins(self)
        return made


class GapLook(Struct, frozen=True, kw_only=True):
    """What was seen: the next numbers, and those that have come in gaps; which rows somebody holds;
    who was writing before, and after that.

    Databases that cannot say who writes give None; then a gap is kept as long as patience lasts.
    """

    numbers: Sequence[int]
    arrived: Collection[int] = ()
    held: frozenset[int] = frozenset()
    before: frozenset[str] | None = frozenset()
    after: frozenset[str] | None = frozenset()
    now: float = 0
    patience: float = 0


class Step(Struct, frozen=True, kw_only=True):
    """What lies between two offsets: numbers from first to last without some of those between."""

    first: int
    last: int
    without: RowRanges = NONE


def read_offset(written: object) -> Offset:
    """Decode the offset from the JSON of `Offset.written`."""
    return msgspec.convert(written, Offset)


def advance_offset(offset: Offset, look: GapLook) -> Offset:
    """Return the offset after a look; the same one if nothing is new."""
    arrived, held = RowRanges.of(look.arrived), RowRanges.of(look.held)
    before = sorted(offset.gaps, key=_first)
    kept: list[Gap] = []
    late: list[Run] = []
    for gap in before:
        left, came = _look_at(gap, look, arrived, held)
        # There is no room for so many pieces: nothing is taken out of it for now.
        if len(left) > 1 and len(kept) + len(left) > MOST_GAPS:
            left, came = [gap], NONE
        kept += left
        late += came.parts
    upto, missed = _go_on(offset.upto, look, held, room=max(0, MOST_GAPS - len(kept)))
    # To Spark an offset that is another one is a batch, though it may have no rows.
    if upto == offset.upto and not late and kept == before:
        return offset
    return Offset(upto=upto, gaps=tuple(sorted((*kept, *missed), key=_first)), late=tuple(late))


def extend_offset(offset: Offset, look: GapLook) -> Offset:
    """Extend an offset already advanced for the same batch; its gaps are not looked at again."""
    room = max(0, MOST_GAPS - len(offset.gaps))
    upto, missed = _go_on(offset.upto, look, RowRanges.of(look.held), room=room)
    return replace(offset, upto=upto, gaps=tuple(sorted((*offset.gaps, *missed), key=_first)))


def steps(start: Offset, end: Offset) -> list[Step]:
    """List the steps between two offsets, always the same: late numbers first, then new ones."""
    if start == end:
        return []
    missing = RowRanges([(gap.first, gap.last) for gap in end.gaps])
    wanted = together(end.late)
    new = RowRanges.run(start.upto + 1, end.upto)
    without = missing.within(start.upto + 1, end.upto)
    # Nothing is new, or all that is new is missing.
    if new != without:
        wanted.append(Step(first=start.upto + 1, last=end.upto, without=without))
    return wanted


def together(runs: Iterable[Run]) -> list[Step]:
    """Join runs into steps, each worth a query: runs near each other are one step."""
    wanted = RowRanges(runs)
    ends: list[Run] = []
    for first, last in wanted.parts:
        if ends and first - ends[-1][1] <= NEAR_NUMBERS:
            ends[-1] = (ends[-1][0], last)
        else:
            ends.append((first, last))
    between = RowRanges(ends) - wanted
    return [Step(first=first, last=last, without=between.within(first, last)) for first, last in ends]


def _first(gap: Gap) -> int:
    return gap.first


def _look_at(gap: Gap, look: GapLook, arrived: RowRanges, held: RowRanges) -> tuple[list[Gap], RowRanges]:
    """Split a gap into its remaining gaps and the numbers to hand out; held rows stay in it."""
    numbers = RowRanges.run(gap.first, gap.last)
    waiting = held.within(gap.first, gap.last)
    # Its rows are there: what nobody holds any more comes out, without a look at the writers.
    if gap.held:
        return _list_held(waiting), numbers - waiting
    there = arrived.within(gap.first, gap.last)
    # What came after the numbers were read is of the next look.
    left = _list_held(waiting & there)
    # Who was writing before we looked may have come after we had.
    if look.before is None:
        may_still_come = look.now - gap.since < look.patience
    else:
        may_still_come = not look.before.isdisjoint(gap.writers)
    # Else all who may have drawn its numbers have ended, and what is not there never comes.
    if may_still_come:
        left += [replace(gap, first=first, last=last) for first, last in (numbers - there).parts]
    return sorted(left, key=_first), there - waiting


def _go_on(upto: int, look: GapLook, held: RowRanges, *, room: int) -> tuple[int, list[Gap]]:
    """Find how far the next numbers lead, and their gaps; stop before one without room."""
    if not look.numbers:
        return upto, []
    last = look.numbers[-1]
    there = RowRanges.of(look.numbers)
    # Whoever writes after the numbers were read may have drawn what is missing among them.
    writers = tuple(sorted(look.after or ()))
    # The time matters only where nobody can say who writes.
    since = look.now if look.after is None else 0
    missing = RowRanges.run(upto + 1, last) - there
    gaps = [Gap(first=first, last=end, writers=writers, since=since) for first, end in missing.parts]
    gaps += _list_held(held.within(upto + 1, last) & there)
    gaps.sort(key=_first)
    if len(gaps) > room:
        # Before the first gap that has no room: what follows is new at the next look.
        return gaps[room].first - 1, gaps[:room]
    return last, gaps


def _list_held(numbers: RowRanges) -> list[Gap]:
    return [Gap(first=first, last=last, held=True) for first, last in numbers.parts]
