"""Cycles: when they begin, in which order and how much they take, and the statements after them."""

from __future__ import annotations

import datetime as dt
import io
import json
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon import scheduling
from eventlog.daemon.logging import journal
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from tests.integration.publishing import config_of, finished, in_thread, publish_all, published, site, until
from tests.support.logged import run
from tests.support.xds_events import read_events

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
    monkeypatch.setattr(scheduling, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(scheduling.CycleWait.__init__, "__defaults__", (clock,))
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
        until(finished(log, 3), "all that waits, cycle after cycle")
        wall.looks()
        log.write(4, key="idu=4")
        wall.looks()
        wall.set(14)
        wall.looks()
        assert len(published(out)) == 3
        wall.set(15)
        until(finished(log, 4), "what came until the second time")
        wall.looks()
        log.write(5, key="idu=5")
        wall.set(1, days=1)
        wall.looks()
        assert len(published(out)) == 4
        wall.set(9, days=3)  # the machine slept
        until(finished(log, 5), "what was missed is made up for once")
        wall.looks()
        log.write(6, key="idu=6")
        wall.looks()
        assert log.statuses()[6] == "N"


NOW = dt.datetime(2025, 3, 23, 10, 0, 0)


def rows(engine: Engine, *written: tuple[int, int, str]) -> None:
    """Rows with these numbers, minutes and values, all of one object."""
    columns = "record_id, table_key, event_type, event_time, table_name, column_name, new_value"
    for number, minute, value in written:
        time = NOW + dt.timedelta(minutes=minute)
        run(
            engine,
            f"INSERT INTO event_log ({columns}) VALUES ({number}, 'idu=1', 2, '{time}', 'usr', 'fname', '{value}')",
        )


def values_of(engine: Engine, folder: Path, *, future: bool = True) -> list[str]:
    """The values in the documents, in the order of their names, after everything was published."""
    config = Config(
        source=SourceConfig(url=engine.url.render_as_string(hide_password=False), user="nobody"),
        publisher=PublisherConfig(handle_future_events=future, query_limit=2),
        output=(FilesOutput(path=str(folder)),),
    )
    publish_all(config)
    texts = [path.read_text() for path in sorted(folder.glob("*.xml"))]
    return [value for text in texts for value in "abcdefg" if f">{value}<" in text]


def test_names_follow_the_order_of_writing_where_times_order_the_log(engine: Engine, tmp_path: Path) -> None:
    install(engine)
    run(engine, "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64))")
    rows(engine, (5, 3, "c"), (7, 1, "a"), (6, 2, "b"))
    assert values_of(engine, tmp_path) == ["a", "b", "c"]
    rows(engine, (2, 4, "d"), (3, 5, "e"))
    assert values_of(engine, tmp_path) == ["a", "b", "c", "d", "e"]
    rows(engine, (20, 6, "f"))
    assert values_of(engine, tmp_path) == ["a", "b", "c", "d", "e", "f"]
    assert f"{20:020d}" in {path.stem for path in tmp_path.glob("*.xml")}


ROWS = 20_000
NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})",
    "postgresql": "WITH numbers AS (SELECT n FROM generate_series(1, {rows}) AS n)",
}
FILL = (
    "INSERT INTO event_log (record_id, table_key, status, event_type, event_time, table_name, column_name, old_value,"
    " new_value)"
)
UPDATES = (
    " SELECT n, 'idu=1', 'N', 2, '2026-01-01 00:00:00', 'usr', 'fname', CAST(n AS varchar(9)), CAST(n + 1 AS varchar(9))"
    " FROM numbers"
)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found


def test_an_object_with_very_many_rows_is_one_batch_in_its_order(database: Engine, tmp_path: Path) -> None:
    """However small the cycles are: the last object of one is not cut in two while there is room."""
    log = site(database)
    numbers = NUMBERS[database.dialect.name].format(rows=ROWS)
    parts = (numbers, FILL + UPDATES) if database.dialect.name == "sqlite" else (FILL, numbers + UPDATES)
    log.run(" ".join(parts))
    log.write(ROWS + 1, key="idu=2")
    with Publisher(config_of(database, tmp_path / "out", query_limit=100, batch_size=128)) as publisher:
        assert [publisher.run_once().finished, publisher.run_once().finished] == [ROWS, 1]
    said = [event for path in sorted((tmp_path / "out").glob("*.xml")) for event in read_events(path.read_bytes())]
    assert [event.event_id for event in said] == [str(number) for number in range(1, ROWS + 2)]


def test_a_value_of_50_mb_is_published_whole(database: Engine, tmp_path: Path) -> None:
    log = site(database)
    value = "0123456789" * 5_000_000
    log.write(1, new_value=value)
    with Publisher(config_of(database, tmp_path / "out")) as publisher:
        assert publisher.run_once().finished == 1
    [document] = (tmp_path / "out").glob("*.xml")
    assert value.encode() in document.read_bytes()
    assert log.statuses() == {1: "S"}


NOTED = (
    "INSERT INTO {0}cycles SELECT ':a 50% %s %%', count(*) FROM {0}event_log"
    " WHERE table_key LIKE 'idu=%' AND status = 'S'"
)


@pytest.mark.parametrize("wrong", ["nonsense %", "INSERT INTO nowhere VALUES ('%s')", "SELECT '"])
def test_a_statement_runs_as_it_is_written_after_cycles_that_published(
    engine: Engine, tmp_path: Path, wrong: str
) -> None:
    log = site(engine)
    log.run("CREATE TABLE cycles (text VARCHAR(20), n INTEGER)")
    told = io.StringIO()
    # There nothing is found without its schema.
    noted = NOTED.format("public." if engine.dialect.name == "postgresql" else "")
    config = config_of(engine, tmp_path / "out", post_poll_statements=(wrong, noted))
    with Publisher(config, journal=journal("json", stream=told)) as publisher:
        assert publisher.run_once().events == 0
        log.write(1)
        assert publisher.run_once().finished == 1
        assert publisher.run_once().events == 0
        log.write(2, event_type=9)
        assert publisher.run_once().errors == 1  # no document, so there was nothing to be active about
    assert log.ask("SELECT text, n FROM cycles") == [(":a 50% %s %%", 1)]
    failures = [line for line in map(json.loads, told.getvalue().splitlines()) if line["action"] == "post_poll_failed"]
    assert [failure["statement"] for failure in failures] == [wrong]
