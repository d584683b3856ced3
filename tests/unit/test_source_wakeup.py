"""How often waiting rows are looked for: often after work, seldom after none, and no oftener than a look may cost."""

from __future__ import annotations

from threading import Event as Flag

import pytest
from sqlalchemy import Engine

from eventlog.sources import wakeup
from eventlog.sources.seat import Seat
from eventlog.sources.wakeup import LONGEST, PART, SHORTEST, Wakeup, pause
from eventlog.sql.log import Log
from tests.conformance.event_logs import installed


class Time(Flag):
    """A clock that only goes on while somebody looks or waits."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0.0
        return False


class Looking(Wakeup):
    """Finds rows from a certain time on; a look takes `cost` seconds."""

    def __init__(self, seat: Seat, time: Time, cost: float, since: float = 10**9) -> None:
        super().__init__(seat)
        self.time, self.cost, self.since = time, cost, since
        self.looks: list[float] = []

    def _anything(self) -> bool:
        self.looks.append(self.time.now)
        self.time.now += self.cost
        return self.time.now >= self.since


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(wakeup, "monotonic", lambda: time.now)
    return time


@pytest.fixture
def seat(sqlite: Engine) -> Seat:
    return Seat(Log(sqlite, installed(sqlite).names), 5.0)


def test_pauses_grow_with_the_time_for_which_nothing_happened() -> None:
    assert (pause(0.0), pause(1000.0)) == (SHORTEST, LONGEST)
    assert SHORTEST < pause(0.5) < LONGEST


def test_cheap_looks_are_made_again_and_again_until_one_finds_something(time: Time, seat: Seat) -> None:
    looking = Looking(seat, time, 0.0005, since=1000.4)
    assert looking.wait(10.0, time)
    assert time.now == pytest.approx(1000.4, abs=0.1)
    assert len(looking.looks) > 10


def test_dear_looks_take_a_small_part_of_a_core_however_often_one_waits(time: Time, seat: Seat) -> None:
    looking = Looking(seat, time, 0.1)
    while time.now < 1060.0:
        assert not looking.wait(1.0, time)
    assert len(looking.looks) * looking.cost <= 60 / PART + 2 * looking.cost
    gaps = [later - earlier for earlier, later in zip(looking.looks, looking.looks[1:], strict=False)]
    assert min(gaps) >= PART * 0.1


def test_rows_behind_a_dear_look_are_found_all_the_same(time: Time, seat: Seat) -> None:
    looking = Looking(seat, time, 0.1, since=1007.0)
    while not looking.wait(1.0, time):
        assert time.now < 1020.0
    assert time.now < 1007.0 + PART * 0.1 + 1.0
