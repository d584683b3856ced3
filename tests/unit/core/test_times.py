"""Points in time in log rows: ISO 8601, and the forms in which Db2 and Sybase write them."""

from __future__ import annotations

import datetime as dt
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.model import Event, Kind, Reason
from eventlog.core.rules import Options, decide
from eventlog.core.times import MONTHS, moment, read_clock

MOMENT = dt.datetime(2025, 3, 23, 10, 57, 19, 250_000)


@pytest.mark.parametrize(
    "text",
    [
        "2025-03-23 10:57:19.25",
        "2025-03-23T10:57:19.250000",
        "2025-03-23 12:57:19.25+02:00",
        " 2025-03-23-10.57.19.250000 ",
        "2025-03-23-10.57.19.250000000000",
        "2025-03-23-10.57.19.25",
        "Mar 23 2025 10:57:19:250AM",
    ],
)
def test_one_moment_in_many_forms(text: str) -> None:
    assert moment(text) == MOMENT


def test_a_time_without_a_zone_is_not_taken_for_this_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert moment("2025-03-23 10:57:19.25") == moment(MOMENT) == MOMENT
        assert moment("2025-03-23 12:57:19.25+02:00") == MOMENT
    finally:
        monkeypatch.undo()
        time.tzset()


@given(st.datetimes(dt.datetime(1000, 1, 1)).map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)))
def test_what_db2_and_sybase_write_is_read_back(at: dt.datetime) -> None:
    assert moment(at.strftime("%Y-%m-%d-%H.%M.%S.%f")) == at
    day = f"{MONTHS[at.month - 1]} {at.day:>2} {at.year}"
    half = "PM" if at.hour >= 12 else "AM"
    assert moment(f"{day} {(at.hour + 11) % 12 + 1:>2}:{at:%M:%S}:{at.microsecond // 1000:03d}{half}") == at


def test_db2_may_leave_the_fraction_out() -> None:
    assert moment("2025-03-23-10.57.19") == MOMENT.replace(microsecond=0)


@pytest.mark.parametrize(
    "hour, of_day", [("12:57:19:250AM", 0), (" 1:57:19:250AM", 1), ("12:57:19:250PM", 12), (" 1:57:19:250PM", 13)]
)
def test_hours_count_from_twelve_over_one(hour: str, of_day: int) -> None:
    assert moment(f"Mar 23 2025 {hour}") == MOMENT.replace(hour=of_day)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2025-02-30-10.57.19",
        "2025-03-23-25.57.19",
        "Mar 32 2025 10:57:19:250AM",
        "Mär 23 2025 10:57:19:250AM",
        "Foo 23 2025 10:57:19:250AM",
        "Mar 23 2025 13:57:19:250AM",
        "Mar 23 2025  0:57:19:250AM",
        "0001-01-01 00:00:00+05:00",
        "2025-03-23 24:00:00",
        "20250323T240000Z",
        "2025-03-23T24",
    ],
)
def test_anything_else_is_no_moment(text: str) -> None:
    assert moment(text) is None


@pytest.mark.parametrize("text", ["2400-01-01 00:00:00", "2025-03-24 00:00:24", "2025-03-23T00:24:00.24+00:24"])
def test_24_is_no_hour_elsewhere(text: str) -> None:
    assert moment(text) is not None


def test_a_clock_has_no_hour_24_on_any_python() -> None:
    assert read_clock("23:24:00") == dt.time(23, 24)
    with pytest.raises(ValueError, match="24:00"):
        read_clock("24:00")


def test_future_events_are_held_whatever_the_form_and_a_text_that_is_no_time_is_an_error() -> None:
    times = ["2025-03-23-10.57.19.000001", "Mar 23 2025 10:57:18:999AM", "2025-03-23-10.57.21.000000", "soon"]
    events = [
        Event(
            position=(number,),
            kind=Kind.INSERT_FIELD,
            table="usr",
            key="idu=1",
            column=f"c{number}",
            new="x",
            time=time,
        )
        for number, time in enumerate(times, start=1)
    ]
    decision = decide(events, options=Options(future=True, now=dt.datetime(2025, 3, 23, 10, 57, 20)))
    assert [change.positions for change in decision.changes] == [((2,), (1,))]
    found = {outcome.position: (outcome.reason, outcome.note) for outcome in decision.outcomes}
    assert found[3,] == (Reason.NOT_DUE, None)
    assert found[4,] == (Reason.INVALID, "event_time 'soon' is not a date and time.")
