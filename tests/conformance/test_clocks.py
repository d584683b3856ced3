"""Logs whose triggers write the time of a place: due, told, purged and measured by that place's clock."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.care.status import facts
from eventlog.check.point import PointLevel
from eventlog.check.server import time_points
from eventlog.cli.main import exit_code
from eventlog.core.errors import InstallError
from eventlog.core.times import in_zone
from eventlog.purge.deleting import Purge, purge
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.clocks import DATABASE, zone_of
from eventlog.sql.dialect import dialect_of
from eventlog.sql.findlog import log_columns
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.support.log_rows import LogRows
from tests.support.logged import USR, run

ZONES: Final = ("Asia/Tokyo", "America/New_York", "+05:45")
FUTURE: Final = LogSettings(handle_future_events=True)


def written(engine: Engine, key: str, zone: str, ahead: dt.timedelta) -> dt.datetime:
    """Write a row due so much later than now, by the zone's clock; return that moment in UTC."""
    utc = dt.datetime.now(dt.UTC).replace(tzinfo=None, microsecond=0) + ahead
    local = in_zone(utc, zone_of(zone))
    columns = "table_key, event_type, event_time, table_name, column_name, new_value"
    run(engine, f"INSERT INTO event_log ({columns}) VALUES ('idu={key}', 1, '{local}', 'usr', 'fname', 'x')")
    return utc


@pytest.mark.parametrize("zone", ZONES)
def test_rows_are_due_by_the_clock_of_their_place_and_told_in_utc(engine: Engine, zone: str) -> None:
    install(engine)
    due = written(engine, "1", zone, -dt.timedelta(minutes=1))
    written(engine, "2", zone, dt.timedelta(hours=3))
    names = log_columns(engine, LogNames(clock=zone))
    source = LogRows(engine, names, settings=FUTURE)
    batch = source.read(10)
    assert [event.key for event in batch.events if str(event.time)[:19] == str(due)] == ["idu=1"]
    now = source.journal.moment()
    assert abs((now - due).total_seconds() - 60) < 50
    ready = [event for event in batch.events if dt.datetime.fromisoformat(str(event.time)) <= now]
    assert [event.key for event in ready] == ["idu=1"]


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_lag_and_purge_go_by_that_clock(engine: Engine, zone: str) -> None:
    install(engine)
    names = log_columns(engine, LogNames(clock=zone))
    written(engine, "1", zone, -dt.timedelta(minutes=10))
    found = facts(engine, names)
    assert found.lag_seconds is not None
    assert 550 < found.lag_seconds < 900
    run(engine, "UPDATE event_log SET status = 'S'")
    *_, kept = purge(Log(engine, names), Purge(age=3600))
    assert kept.rows == 0
    *_, gone = purge(Log(engine, names), Purge(age=300))
    assert gone.rows == 1


def test_check_names_the_offset_that_the_newest_rows_have(engine: Engine) -> None:
    install(engine)
    names = log_columns(engine, LogNames())
    run(engine, "DROP TABLE event_log_hold")  # another point tells that it is missing
    assert [point.level for point in time_points(engine, names, None, future=False)] == [PointLevel.OK]
    written(engine, "1", "Asia/Tokyo", dt.timedelta())
    [point] = time_points(engine, names, None, future=True)
    assert point.level is PointLevel.WARNING
    assert "+09:00" in point.said
    [point] = time_points(engine, replace(names, clock="Asia/Tokyo"), None, future=True)
    assert point.level is PointLevel.OK


CLOCKS = {
    "a zone of PostgreSQL by its name": (
        "postgresql",
        "ALTER DATABASE {database} SET TimeZone = 'America/New_York'",
        DATABASE,
        "America/New_York",
    ),
    "a column of PostgreSQL that has a zone": (
        "postgresql",
        "ALTER TABLE event_log ALTER event_time TYPE timestamptz",
        "Asia/Tokyo",
        "utc",
    ),
    "an offset of MariaDB, which tells no place": ("mariadb", "SET GLOBAL time_zone = '+09:00'", DATABASE, "+09:00"),
    "a column of MariaDB that is a moment": (
        "mariadb",
        "ALTER TABLE event_log MODIFY event_time TIMESTAMP NULL",
        "Asia/Tokyo",
        "utc",
    ),
}
"""A database, a statement that sets it up, the clock that is asked for, and the one that is taken."""


@pytest.mark.parametrize("what", CLOCKS)
def test_the_clock_that_is_taken(request: pytest.FixtureRequest, what: str) -> None:
    database, statement, said, taken = CLOCKS[what]
    engine: Engine = request.getfixturevalue(database)
    install(engine)
    try:
        run(engine, statement.format(database=engine.url.database))
        engine.dispose()
        assert log_columns(engine, LogNames(clock=said)).clock == taken
    finally:
        if database == "mariadb":
            run(engine, "SET GLOBAL time_zone = 'SYSTEM'")  # the server is that of other tests too


def test_the_zone_is_that_of_the_database_in_a_session_that_has_read_before(engine: Engine) -> None:
    """Reading sets the zone of a session to UTC, and a pool hands the same session out again."""
    install(engine)
    if engine.name == "postgresql":
        run(engine, f"ALTER DATABASE {engine.url.database} SET TimeZone = 'Asia/Tokyo'")
        engine.dispose()
    names = LogNames(clock=DATABASE)
    fresh = log_columns(engine, names).clock
    facts(engine, log_columns(engine, LogNames()))
    assert log_columns(engine, names).clock == fresh
    assert engine.name != "postgresql" or fresh == "Asia/Tokyo"


def test_files_have_no_database_whose_clock_could_be_asked(
    postgresql: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The one that answers read-backs is asked, where one is named."""
    install(postgresql)
    run(postgresql, *USR, f"ALTER DATABASE {postgresql.url.database} SET TimeZone = 'America/New_York'")
    (tmp_path / "eventlog.toml").write_text('[source]\nclock = "database"\n')
    row = {"record_id": 1, "status": "N", "event_type": 1, "event_time": "2025-11-02T01:30:00", "perpetrator": None}
    row |= {"table_name": "usr", "table_key": "idu=1", "column_name": "fname", "old_value": None, "new_value": "Ida"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    shared = ("--config", str(tmp_path / "eventlog.toml"), "--to", "messages", "--engine", "local[1]")
    words = ["convert", str(tmp_path / "rows.jsonl"), *shared, "--out", str(tmp_path / "out")]
    assert exit_code(words) == 64
    assert (
        'source.clock is "database", and files have none that could be asked. Name the zone' in capsys.readouterr().err
    )
    url = postgresql.url.render_as_string(hide_password=False)
    assert exit_code([*words, "--database", url]) == 0
    [message] = [path.read_text() for path in (tmp_path / "out").rglob("*.jsonl")]
    assert "2025-11-02T05:30:00.000" in message


def test_triggers_of_ours_do_not_mix_clocks_in_one_log(engine: Engine) -> None:
    install(engine)
    run(engine, *USR)
    with pytest.raises(InstallError, match="are those of Asia/Tokyo"):
        track(engine, ["usr"], names=LogNames(clock="Asia/Tokyo"))
    assert dialect_of(engine).later
