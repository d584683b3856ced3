"""Two publishers in one folder, each stopped at any step of its own, and a third one that looks at what they left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

import pytest

from eventlog.core.errors import OccupiedError
from eventlog.core.seams import Sink
from tests.conformance.test_sink_plans import EVERYWHERE, steps
from tests.support.sink_places import Place
from tests.support.sinks import KilledError, dying, opened, patch_steps, tenure

__all__ = ["steps"]
PATIENCE = 30


class Worker(Thread):
    """Does its work in a thread, and waits before that step at the file system, counted from 1, until it may go on."""

    def __init__(self, work: Callable[[], object], before: int) -> None:
        super().__init__()
        self._work = work
        self._left = before
        self._waits, self._free = Event(), Event()
        self.stopped = False
        self.refused = False
        self.done = False

    def run(self) -> None:
        try:
            self._work()
        except OccupiedError:
            self.refused = True
        else:
            self.done = True
        finally:
            self._waits.set()

    def step(self) -> None:
        """Count a step; stop before the chosen one until released."""
        self._left -= 1
        if not self._left:
            self.stopped = True
            self._waits.set()
            assert self._free.wait(PATIENCE)

    def until_it_waits(self) -> None:
        """Start, and wait until it stops before its step or ends."""
        self.start()
        assert self._waits.wait(PATIENCE)

    def end(self) -> None:
        self._free.set()
        self.join(PATIENCE)


@contextmanager
def watched(*workers: Worker) -> Iterator[None]:
    """Tell the workers of each of their steps at the file system."""

    def stepping(function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*positional: Any, **named: Any) -> Any:
            for worker in workers:
                if worker is current_thread():
                    worker.step()
            return function(*positional, **named)

        return step

    with pytest.MonkeyPatch.context() as patch:
        patch_steps(patch, stepping)
        yield


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "kind",
    [
        "files",
        "change files",
        "files in a store",
        "change files in a store",
        *[pytest.param(name, marks=pytest.mark.long) for name in ("delta", "iceberg")],
    ],
)
def test_a_former_publisher_that_goes_on_while_another_takes_over_changes_nothing(tmp_path: Path, kind: str) -> None:
    """Whatever the second one finds, the third one finds the same, and what the first one has committed is there."""
    fates: set[bool] = set()
    for first in count(1):
        for second in count(1):
            with EVERYWHERE[kind](tmp_path / f"{first}-{second}") as place:
                former, heir, there = _raced(place, first, second)
            fates.add(there)
            assert former.refused or (former.done and there)
            if not heir.stopped:
                break
        if not former.stopped:
            break
    assert fates == {True, False}


def _raced(place: Place, first: int, second: int) -> tuple[Worker, Worker, bool]:
    """Run two publishers against each other; return both, and whether the former one's plan is there."""
    sink, later = opened(place.make(), tenure()), place.make()
    sink.commit("a", place.documents(1))
    sink.prepare("b", place.documents(2, 3))
    former = Worker(lambda: sink.commit("b", place.documents(2, 3)), first)
    heir = Worker(lambda: later.open(tenure(2)), second)
    with watched(former, heir):
        former.until_it_waits()
        heir.until_it_waits()
        former.end()
        heir.end()
    assert heir.done
    return former, heir, _agreed(place, later, place.make())


def _agreed(place: Place, heir: Sink, third: Sink) -> bool:
    """Check that both find the plan whole, or both nothing of it; return True if it is there."""
    there = heir.resolve("b").documents is None
    assert place.found() == ([1, 2, 3] if there else [1])
    third.open(tenure(3))
    assert third.resolve("b").documents == (None if there else frozenset())
    assert place.found() == ([1, 2, 3] if there else [1])
    return there


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", EVERYWHERE)
def test_what_a_former_publisher_has_prepared_is_not_taken_for_what_its_successor_began(
    tmp_path: Path, kind: str, steps: Iterator[int]
) -> None:
    """The successor repeats the plan with what is left of it, and dies."""
    fates: set[bool] = set()
    for before in steps:
        with EVERYWHERE[kind](tmp_path / str(before)) as place:
            former, heir = opened(place.make(), tenure()), place.make()
            former.commit("a", place.documents(1))
            heir.open(tenure(2))
            former.prepare("b", place.documents(2, 3, 4))
            with dying(before) as died, suppress(KilledError):
                heir.commit("b", place.documents(2, 3))
            fates.add(_agreed(place, opened(place.make(), tenure(2)), place.make()))
        if not died.happened:
            break
    assert fates == {True, False}
