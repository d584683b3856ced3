"""When the publisher looks again: times of day, growing waits, and pauses that follow the work."""

from __future__ import annotations

import datetime as dt
from threading import Event as Flag

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.config.settings import PublisherConfig
from eventlog.config.timetable import Timetable, read_times
from eventlog.core.backoff import Backoff
from eventlog.core.errors import ConfigError
from eventlog.daemon import scheduling
from eventlog.daemon.scheduling import LONGEST_SECONDS, SHORTEST_SECONDS, CycleWait, pause
from tests.support.shares import met, shares

DAY = dt.datetime(2026, 3, 29)
moments = st.datetimes(dt.datetime(2020, 1, 1), dt.datetime(2030, 1, 1))
tables = st.lists(st.times(), min_size=1, max_size=4).map(lambda times: Timetable(times=tuple(times)))


class Clock(Flag):
    """A flag that nobody sets, whose waits take no time: they move the clock of those who rest."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.seconds = 0.0
        monkeypatch.setattr(scheduling, "monotonic", lambda: self.seconds)

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds += timeout
        return False


@pytest.mark.parametrize("text", ["", "2", "24:00", "02:60", "02:00:60", "02.00", "02:00pm", "-1:00", "02:00:00:00"])
def test_what_is_no_time_of_day_is_refused_with_the_way_to_write_it(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a time of day; it is written as 02:00"):
        PublisherConfig(time_of_day=(text,))


@given(tables, moments)
def test_the_next_time_is_on_the_table_and_within_a_day(table: Timetable, now: dt.datetime) -> None:
    following = table.next_after(now)
    assert now < following <= now + dt.timedelta(days=1)
    assert following.time() in table.times
    assert not table.was_due(now, following - dt.timedelta(microseconds=1))
    assert table.was_due(now, following)


def test_what_was_missed_is_due_once() -> None:
    table = read_times(["02:00", " 03:30:15", "7:05"])
    assert table.times == (dt.time(2), dt.time(3, 30, 15), dt.time(7, 5))
    woken = DAY.replace(hour=9)
    assert table.was_due(DAY, woken)
    assert not table.was_due(woken, woken + dt.timedelta(hours=1))


def test_a_clock_that_goes_back_makes_nothing_due() -> None:
    assert not read_times(["02:00"]).was_due(DAY.replace(hour=3), DAY.replace(hour=1))
    assert not Timetable().was_due(DAY, DAY + dt.timedelta(days=3))


@given(st.integers(1, 10_000), st.floats(0, 1), st.floats(0, 100), st.floats(0, 1000))
def test_waits_grow_up_to_their_limit_and_are_spread(attempts: int, chance: float, first: float, more: float) -> None:
    backoff = Backoff(first=first, longest=first + more)
    wait = backoff.delay(attempts, chance)
    assert first / 2 <= wait <= backoff.longest
    assert backoff.delay(attempts + 1, chance) >= wait


def test_waits_double() -> None:
    assert [Backoff(first=1, longest=7).delay(attempts, 1.0) for attempts in (1, 2, 3, 4, 99)] == [1, 2, 4, 7, 7]


@shares(between=0.1, beyond=0.1)
@given(st.floats(0, 1e9) | st.floats(0, 11 * LONGEST_SECONDS))
def test_pauses_are_a_tenth_of_the_idle_time_within_bounds(idle: float) -> None:
    met(between=pause(idle) == idle / 10, beyond=idle > 10 * LONGEST_SECONDS)
    assert SHORTEST_SECONDS <= pause(idle) <= LONGEST_SECONDS
    assert pause(idle) in (SHORTEST_SECONDS, LONGEST_SECONDS, idle / 10)


def test_by_time_of_day_it_waits_for_the_wall_clock_and_notices_that_it_jumped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "LOOK_SECONDS", 0.01)
    looked: list[int] = []

    def wall() -> dt.datetime:
        return DAY.replace(hour=5 if len(looked) == 3 else 1)

    resting = CycleWait(PublisherConfig(time_of_day=("02:00",)), None, Flag(), lambda: None, wall)
    resting.until_next(lambda: looked.append(1))
    assert len(looked) == 3


def test_by_time_of_day_rows_that_are_offered_again_do_not_wait_for_the_next_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    settings = PublisherConfig(time_of_day=("02:00",))
    CycleWait(settings, None, clock, lambda: None, lambda: DAY.replace(hour=3)).until_next(lambda: None, later=90.5)
    assert 90.5 <= clock.seconds < 92


def test_a_rest_ends_when_it_is_told_to_and_shows_life_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "LOOK_SECONDS", 0.01)
    stopped = Flag()
    signs: list[int] = []

    def live() -> None:
        signs.append(len(signs))
        if len(signs) == 3:
            stopped.set()

    CycleWait(PublisherConfig(), None, stopped, live).until_next(lambda: None)
    assert signs == [0, 1, 2]
