"""A full load in ranges while rows change: whatever crosses a bound, consumers end with what the table holds."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from sqlalchemy import Engine

from eventlog.refresh import Refresh, RefreshPace, Stand, loads, work_on
from tests.integration.test_refresh_circle import Circle, kept, some_changes
from tests.support.servers import databases


def refresh(circle: Circle, chunk: int) -> Refresh:
    [load] = loads(circle.engine, circle.log.names, ["t"], None, None)
    return Refresh(circle.log, load, RefreshPace(chunk=chunk))


class Walks:
    """The ranges of a load, of which any may go on next, and which is broken off and gone on with at times."""

    def __init__(self, circle: Circle, dice: random.Random) -> None:
        self.circle = circle
        self.dice = dice
        self.counts: set[int] = set()
        self.go_on()

    def go_on(self) -> None:
        self.work = refresh(self.circle, self.dice.randint(1, 4))
        self.stands = self.work.begin(jobs=self.dice.randint(1, 4))
        self.counts.add(len(self.stands))
        self.walks = [self.work.stretches(stand) for stand in self.stands if not stand.done]

    def step(self) -> None:
        walk = self.dice.choice(self.walks)
        if next(walk, None) is None:
            self.walks.remove(walk)


@pytest.mark.in_turn
@pytest.mark.parametrize("style", ["row-back", "field", "field-back"])
def test_keys_cross_bounds_between_stretches_of_any_range(engine: Engine, style: str) -> None:
    circle, dice = Circle(engine, style), random.Random(7)
    load = Walks(circle, dice)
    while load.walks:
        some_changes(engine, dice, 4)
        if dice.random() < 0.1:
            load.go_on()
        load.step()
        some_changes(engine, dice, 3)
        if dice.random() < 0.5:
            circle.publish()
    load.work.end(load.stands)
    circle.check()
    assert max(load.counts) > 4
    assert refresh(circle, 4).begin() == (Stand(total=len(circle.rows("t"))),)


@contextmanager
def at_work(threads: Sequence[Thread], done: Event) -> Iterator[None]:
    """Threads that work until the block is left, and have ended then."""
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


@pytest.mark.in_turn
@pytest.mark.parametrize("style", ["row-back", "field"])
@pytest.mark.parametrize("database", databases()[1:])
def test_writers_publisher_and_ranges_at_the_same_time(
    request: pytest.FixtureRequest, database: str, style: str
) -> None:
    engine: Engine = request.getfixturevalue(database)
    circle = Circle(engine, style)
    done = Event()
    failures: list[Exception] = []
    ranges: list[int] = []

    def write(seed: int) -> None:
        dice = random.Random(seed)
        while not done.is_set():
            some_changes(engine, dice, 5)

    def load(_: int) -> None:
        for chunk in (1, 2, 3):
            work = refresh(circle, chunk)
            stands = work.begin(jobs=3)
            ranges.append(len(stands))
            work_on(work, stands, 3, ranges.append)

    writers = [Thread(target=kept(write, failures), args=(seed,)) for seed in (1, 2)]
    loader = Thread(target=kept(load, failures), args=(0,))
    with at_work([*writers, loader], done):
        while loader.is_alive():
            circle.publish()
    assert failures == []
    assert ranges[0] == 12
    circle.check()
