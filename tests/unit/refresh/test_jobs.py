"""Threads of a load: each range is taken once, what is told is the sum, and one failure ends all after a stretch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event

import pytest
from msgspec.structs import replace

from eventlog.core.errors import DataError, SinkError, SourceError
from eventlog.refresh import GO_ON, Refresh, RefreshPace, Stand, work_on
from eventlog.refresh.loads import Gate

LONG = 3_000


class Pretended(Refresh):
    """A load that writes nothing: ranges end when their total is reached, the one at `bad` with a failure."""

    def __init__(self, failure: Exception | None = None, bad: int = -1) -> None:
        self.gate = Gate(RefreshPace(), lambda _: 0)
        self.failure = failure
        self.bad = bad
        self.taken: list[int] = []
        self.ended: list[int] = []
        self.finished = 0
        self._others, self._tick = Event(), Event()

    def stretches(self, stand: Stand) -> Iterator[Stand]:
        self.taken.append(stand.place)
        if stand.place == self.bad and self.failure is not None:
            assert self._others.wait(timeout=60)
            raise self.failure
        while stand.rows < stand.total and self.gate.enter():
            stand = replace(stand, rows=stand.rows + 1)
            self._others.set()
            yield stand
            if self.failure is not None:
                self._tick.wait(0.001)
        self.ended.append(stand.rows)

    def end(self, stands: Sequence[Stand]) -> None:
        self.finished += 1


def ranges(count: int, total: int) -> list[Stand]:
    return [Stand(place=place, ranges=count, total=total) for place in range(count)]


@pytest.mark.parametrize("jobs", [1, 2, 5, 12])
def test_each_range_is_taken_once_and_the_sum_is_told(jobs: int) -> None:
    load, told = Pretended(), list[int]()
    stands = [*ranges(9, 10), Stand(place=9, rows=7, total=7, done=True), Stand(place=10, rows=4, total=10)]
    work_on(load, stands, jobs, told.append)
    assert sorted(load.taken) == [*range(9), 10]
    assert told == list(range(12, 108))
    assert load.finished == 1


@pytest.mark.parametrize(
    "failure, hint",
    [
        (SourceError("Gone."), GO_ON),
        (SinkError("Gone.", hint="Look.", may_pass=False), f"Look. {GO_ON}"),
        (DataError("Bad.", hint="Leave it out."), "Leave it out."),
        (ZeroDivisionError("Bad."), None),
    ],
)
def test_what_goes_wrong_in_one_range_ends_the_others_and_is_raised(failure: Exception, hint: str | None) -> None:
    load = Pretended(failure, bad=1)
    with pytest.raises(type(failure)) as raised:
        work_on(load, ranges(6, LONG), 2, lambda _: None)
    assert raised.value is failure
    assert getattr(failure, "hint", None) == hint
    assert sorted(load.taken)[:2] == [0, 1]
    assert max(load.ended) < LONG
    assert sum(load.ended) < LONG
    assert load.finished == 0
