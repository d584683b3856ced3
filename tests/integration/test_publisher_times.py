"""When a publisher begins its cycles: at times of day, each of several, and for events that lie ahead when the database says so."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.daemon import rest
from eventlog.daemon.publisher import Publisher
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import config_of, in_thread, published, settled, site, until

DAY = dt.datetime(2026, 3, 29)


class Wall:
    """A clock on the wall that somebody sets; `looked` counts who looked at it."""

    def __init__(self, hour: int) -> None:
        self.time = DAY.replace(hour=hour)
        self.looked = 0

    def __call__(self) -> dt.datetime:
        self.looked += 1
        return self.time

    def set(self, hour: int, days: int = 0) -> None:
        self.time = DAY.replace(hour=hour) + dt.timedelta(days=days)

    def looks(self) -> None:
        """Returns when somebody has seen the time and nothing came of it; no cycle is under way then."""
        seen = self.looked
        until(lambda: self.looked > seen + 2, "it looks at the clock")


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    """A clock that says one at night, looked at again and again by every publisher that is made after this."""
    clock = Wall(1)
    monkeypatch.setattr(rest, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(rest.CycleWait.__init__, "__defaults__", (clock,))
    return clock


def test_cycles_begin_at_each_of_several_times_of_day_and_at_no_other(
    sqlite: Engine, tmp_path: Path, wall: Wall
) -> None:
    log = site(sqlite)
    out = tmp_path / "out"
    config = config_of(sqlite, out, time_of_day=("14:30", "02:00"), query_limit=1, polling_interval=1)
    with in_thread(Publisher(config)):
        for number in (1, 2, 3):
            log.write(number, key=f"idu={number}")
        wall.looks()
        assert published(out) == {}
        wall.set(3)
        until(settled(log, 3), "all that waits, cycle after cycle")
        wall.looks()
        log.write(4, key="idu=4")
        wall.looks()
        wall.set(14)
        wall.looks()
        assert len(published(out)) == 3
        wall.set(15)
        until(settled(log, 4), "what came until the second time")
        wall.looks()
        log.write(5, key="idu=5")
        wall.set(1, days=1)
        wall.looks()
        assert len(published(out)) == 4
        wall.set(9, days=3)  # the machine slept
        until(settled(log, 5), "what was missed is made up for once")
        wall.looks()
        log.write(6, key="idu=6")
        wall.looks()
        assert log.statuses()[6] == "N"


def test_an_event_that_lies_ahead_waits_for_the_databases_clock_whatever_the_machines_says(
    engine: Engine, tmp_path: Path, wall: Wall
) -> None:
    log = site(engine)
    out = tmp_path / "out"
    log.write(1, event_time=moment(log, 3600), new_value="later")
    log.write(2, key="idu=2", event_time=moment(log, -3600))
    log.write(3, key="idu=1", event_time=moment(log, -7200), new_value="first")
    with Publisher(config_of(engine, out, handle_future_events=True, batch_size=1)) as publisher:
        wall.set(23, days=9)
        assert publisher.run_once().settled == 2
        assert publisher.run_once().settled == 0
        assert log.statuses() == {1: "N", 2: "S", 3: "S"}
        log.run(f"UPDATE event_log SET event_time = '{moment(log, -1)}' WHERE record_id = 1")
        assert publisher.run_once().settled == 1
    assert sorted(ids for [ids] in published(out).values()) == ["1", "2", "3"]


def moment(log: LogTable, seconds: int) -> str:
    """A time by the database's clock, in UTC."""
    clocks = {
        "sqlite": "strftime('%Y-%m-%d %H\\:%M\\:%S', 'now')",
        "postgresql": "CURRENT_TIMESTAMP(0) AT TIME ZONE 'UTC'",
        "mysql": "UTC_TIMESTAMP()",
    }
    [(now,)] = log.ask(f"SELECT {clocks[log.engine.dialect.name]}")
    found = dt.datetime.fromisoformat(str(now)) + dt.timedelta(seconds=seconds)
    return found.isoformat(" ")
