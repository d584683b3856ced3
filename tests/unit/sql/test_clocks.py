"""Times of a place: daylight saving times, odd offsets, the bound for what is due, and settings that name no zone."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine

from eventlog.check.server import judge_clock
from eventlog.config.settings import SourceConfig
from eventlog.core.errors import ConfigError
from eventlog.core.times import in_utc, in_zone, moment
from eventlog.sql.clocks import due_clock, offset_name, zone_of
from eventlog.sql.dialect import dialect_of, dialects
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    "local, utc",
    [
        ("2025-01-15 12:00:00", "2025-01-15 11:00:00"),
        ("2025-07-15 12:00:00.250000", "2025-07-15 10:00:00.250000"),
        ("2025-07-15T12:00:00.123456789", "2025-07-15 10:00:00.123456789"),
        ("2025-10-26 02:30:00", "2025-10-26 00:30:00"),  # occurs twice: the first
        ("2025-10-26 03:00:00", "2025-10-26 02:00:00"),
        ("2025-03-30 02:30:00", "2025-03-30 01:30:00"),  # never occurs: as long after the change as it says
        ("2025-07-15 12:00:00+00:00", "2025-07-15 12:00:00+00:00"),  # says its zone itself
        ("2025-07-15-12.00.00.250000", "2025-07-15 10:00:00.250000"),  # Db2
        ("Jul 15 2025 12:00:00:000PM", "2025-07-15 10:00:00"),  # Sybase
        ("Jul 15 2025 12:00:00:250PM", "2025-07-15 10:00:00.250000"),
        ("0001-01-01 00:30:00", "0001-01-01 00:30:00"),  # lies before every date in UTC
        ("soon", "soon"),
    ],
)
def test_a_time_of_a_place_is_told_in_utc(local: str, utc: str) -> None:
    assert in_utc(local, BERLIN) == utc


@given(
    st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2037, 1, 1)), st.sampled_from(["Asia/Tokyo", "+05:45", "-03:30"])
)
def test_there_and_back_is_the_same_moment_where_clocks_are_never_set(utc: dt.datetime, clock: str) -> None:
    zone = zone_of(clock)
    assert zone is not None
    assert moment(in_utc(str(in_zone(utc, zone)), zone)) == utc


@given(st.datetimes(dt.datetime(2000, 1, 1), dt.datetime(2037, 1, 1)))
def test_what_is_due_is_never_kept_back_by_clocks_that_are_set_back(utc: dt.datetime) -> None:
    """Every local time whose moment has come lies below the bound, in the two hours after the change too."""
    at = utc.replace(tzinfo=dt.UTC)
    bound = due_clock(dialect_of("sqlite://"), "'now'", BERLIN, at)
    seconds = int(bound.split("'")[-2].split()[0])
    assert in_zone(utc, BERLIN) <= utc + dt.timedelta(seconds=seconds)


@pytest.mark.parametrize("clock", ["Asia/Tokio", "local", "+99:00", "../etc/passwd", "/etc/localtime"])
def test_what_names_no_zone_is_refused_with_what_fits(clock: str) -> None:
    with pytest.raises(ConfigError, match="names no time zone"):
        SourceConfig(clock=clock)


def test_the_database_is_asked_later_and_utc_needs_nothing() -> None:
    assert SourceConfig(clock="database").wanted_names.clock == "database"
    assert SourceConfig().wanted_names.clock == "utc"
    engine = create_engine("sqlite://")
    assert f"{dialect_of(engine).now}, '-'" in str(Log(engine, LogNames()).query("cutoff"))
    for dialect in dialects():
        assert "32400" in due_clock(dialect, dialect.now, ZoneInfo("Asia/Tokyo"), dt.datetime.now(dt.UTC))


@pytest.mark.parametrize("seconds, name", [(32400, "+09:00"), (-12600, "-03:30"), (0, "+00:00")])
def test_offsets_are_written_with_their_sign(seconds: float, name: str) -> None:
    assert offset_name(seconds) == name
    assert zone_of(name) == (dt.timezone(dt.timedelta(seconds=seconds)) if seconds else None)


@pytest.mark.parametrize(
    "seconds, future, said",
    [
        ([-3.0], False, None),
        ([32_398.0, -5.0], False, None),  # one of them is of now
        ([32_398.0], True, "+09:00"),
        ([-18_003.0], False, "-05:00"),
        ([20_700.0], True, "+05:45"),
        ([-86_400.0], False, None),  # old rows say nothing
        ([1_200.0], False, "ahead"),
        ([1_200.0], True, None),
        ([-1_300.0], False, None),
    ],
)
def test_rows_are_odd_when_they_are_a_zone_away(seconds: list[float], future: bool, said: str | None) -> None:
    found = judge_clock(seconds, future=future)
    assert found is None if said is None else said in (found or "")
