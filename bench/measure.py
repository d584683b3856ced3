"""Measures contestants in turn, so that what the machine does meanwhile hits all of them alike.

Law: a figure is the median of five or more runs and stands beside its spread and the machine it was measured on;
what is compared was measured in the same run.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

QUICK_RUNS = 1
RUNS = 5


class Contestant(Struct, frozen=True, kw_only=True):
    """Something that does `units` of work when it is called. The floor is the least that anybody would have to do.

    `prepare` is called before every run and `done` after it; neither is measured. A run that does its own measuring
    returns its seconds. Where something grows, contestants of one `series` differ in the `size` of it; the largest may
    run `once` only, because the size before it tells the noise.
    """

    name: str
    run: Callable[[], Any]
    prepare: Callable[[], Any] = bool
    done: Callable[[], Any] = bool
    units: int = 1
    floor: bool = False
    series: str = ""
    size: int = 0
    once: bool = False


class Timing(Struct, frozen=True, kw_only=True):
    """What the runs of one contestant took, in the order in which they were made."""

    name: str
    units: int
    seconds: tuple[float, ...]
    floor: bool = False
    series: str = ""
    size: int = 0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """From the quickest run to the slowest, as a part of the median."""
        return (max(self.seconds) - min(self.seconds)) / self.median

    @property
    def rate(self) -> float:
        """Units per second."""
        return self.units / self.median

    @property
    def each(self) -> float:
        """Seconds per unit."""
        return self.median / self.units


Timings = dict[str, Timing]


class Target(Struct, frozen=True, kw_only=True):
    """What was promised, what was measured, and whether that is enough."""

    promise: str
    measured: str
    reached: bool


class Benchmark(Struct, frozen=True, kw_only=True):
    """A question, those who answer it, and what the answers are held against."""

    name: str
    question: str
    unit: str
    contestants: Sequence[Contestant]
    targets: Callable[[Timings], list[Target]]
    note: str = ""


def measure(contestants: Sequence[Contestant], runs: int) -> Timings:
    """Each contestant once to warm up, then all of them in turn, `runs` times; what runs once is not warmed up."""
    if runs > QUICK_RUNS:
        for contestant in _repeated(contestants):
            contestant.prepare()
            contestant.run()
            contestant.done()
    seconds: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for contestant in _in_turn(contestants, runs):
        contestant.prepare()
        seconds[contestant.name].append(_time(contestant.run))
        contestant.done()
    return {
        contestant.name: Timing(
            name=contestant.name,
            units=contestant.units,
            seconds=tuple(seconds[contestant.name]),
            floor=contestant.floor,
            series=contestant.series,
            size=contestant.size,
        )
        for contestant in contestants
    }


def _in_turn(contestants: Sequence[Contestant], runs: int) -> Iterator[Contestant]:
    """Every second round goes backwards, so that nobody always comes after the one that heats the caches."""
    yield from contestants
    for number in range(1, runs):
        yield from _repeated(contestants) if number % 2 == 0 else reversed(_repeated(contestants))


def _repeated(contestants: Sequence[Contestant]) -> list[Contestant]:
    return [contestant for contestant in contestants if not contestant.once]


def _time(run: Callable[[], object]) -> float:
    gc.collect()  # what the last one left behind is not this one's cost; collecting stays on while it runs
    start = time.perf_counter()
    measured = run()
    return measured if isinstance(measured, float) else time.perf_counter() - start
