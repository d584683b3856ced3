"""What the benchmarks of growth share: sizes, contestants that belong to a series, and the promise that holds for each."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from bench.growth.fit import growth
from bench.measure import Contestant, Target, Timing, Timings


class Grown(Protocol):
    """What grows, at one size: the work that it makes, and whether one run must do."""

    @property
    def size(self) -> int: ...
    @property
    def units(self) -> int: ...
    @property
    def once(self) -> bool: ...


def powers(first: int, last: int) -> tuple[int, ...]:
    """The powers of ten from one to another."""
    return tuple(10**number for number in range(first, last + 1))


def contestant(
    series: str, grown: Grown, *, prepare: Callable[[], Any], run: Callable[[], Any], done: Callable[[], Any]
) -> Contestant:
    """One size of a series."""
    return Contestant(
        name=f"{series}: {grown.size:,}",
        prepare=prepare,
        run=run,
        done=done,
        units=grown.units,
        series=series,
        size=grown.size,
        once=grown.once,
    )


def by_series(timings: Sequence[Timing]) -> dict[str, list[Timing]]:
    """The timings of every series, in the order in which they stand; what belongs to none is left out."""
    found: dict[str, list[Timing]] = {}
    for timing in timings:
        if timing.series:
            found.setdefault(timing.series, []).append(timing)
    return found


def targets(timings: Timings) -> list[Target]:
    """Nothing is worse than n log n."""
    return list(_targets(timings))


def noise_of(timings: Sequence[Timing]) -> float:
    """How far a median may lie beside the truth: half of what its runs spread over, as most sizes do."""
    return statistics.median(timing.spread for timing in timings) / 2


def _targets(timings: Timings) -> Iterator[Target]:
    for series, found in by_series(list(timings.values())).items():
        grown = growth([(timing.size, timing.each) for timing in found], noise_of(found))
        yield Target(
            promise=f"{series}: no worse than n log n, which is n^{grown.allowed:.2f} here, noise included",
            measured=f"n^{grown.power:.2f}",
            reached=grown.bearable,
        )
