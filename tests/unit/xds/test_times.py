"""Dates and times: every form that is read, every syntax that is written, and the limits."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import ExpressionError
from eventlog.core.sql_types import Category
from eventlog.xds.values import TimeSyntax, time_text
from tests.support.shares import met, shares
from tests.support.strategies_xds import zones

DATE, TIME, TIMESTAMP = Category.DATE, Category.TIME, Category.TIMESTAMP
SAMPLE = "2025-03-23 10:57:19.25"
syntaxes = st.sampled_from([1, 2, 3])


@pytest.mark.parametrize(
    "category, value, expected",
    [
        (TIMESTAMP, SAMPLE, ("1742727439", "20250323105719250000000", "2025-03-23 10:57:19.250000000")),
        (DATE, "2025-03-23", ("1742688000", "20250323", "2025-03-23")),
        (TIME, "10:57:19.25", ("39439", "105719", "10:57:19.250000000")),
        (TIME, "10:57:19", ("39439", "105719", "10:57:19")),
        # A value that says more than its column is written in full.
        (DATE, SAMPLE, ("1742727439", "20250323105719250000000", "2025-03-23 10:57:19.250000000")),
        (DATE, "2025-03-23 00:00:00.000000001", ("1742688000", "20250323000000000000001", "2025-03-23 00:00:00.000000001")),
        (DATE, "2025-03-23 00:00:00.000000000", ("1742688000", "20250323", "2025-03-23")),
        (TIME, "2025-03-23 10:57:19", ("1742727439", "20250323105719000000000", "2025-03-23 10:57:19.000000000")),
        (TIMESTAMP, "2025-03-23", ("1742688000", "20250323000000000000000", "2025-03-23 00:00:00.000000000")),
        (TIMESTAMP, "1970-01-01 00:00:00", ("0", "19700101000000000000000", "1970-01-01 00:00:00.000000000")),
        (TIMESTAMP, "2106-02-07 06:28:15.999", ("4294967295", "21060207062815999000000", "2106-02-07 06:28:15.999000000")),
    ],
)  # fmt: skip
def test_the_three_syntaxes(category: Category, value: str, expected: tuple[str, str, str]) -> None:
    assert (time_text(value, category, 1), time_text(value, category, 2), time_text(value, category, 3)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "2025-03-23 10:57:19.25",
        "2025-03-23T10:57:19.25",
        "2025-03-23 10:57:19.250000000",
        "2025-03-23 10:57:19.250000000999",
        "2025-03-23T10:57:19.25Z",
        "2025-03-23T10:57:19.25z",
        "2025-03-23 12:57:19.25+02",
        "2025-03-23 12:57:19.25 +02:00",
        "2025-03-23 05:27:19.25-0530",
        "2025-03-24 00:57:19.25+14",
        "  2025-03-23 10:57:19.25 ",
        "2025-03-23-10.57.19.250000",
        "Mar 23 2025 10:57:19:250AM",
        "mar 23 2025 10:57:19:250 am",
    ],
)
def test_every_form_of_one_moment(text: str) -> None:
    assert time_text(text, TIMESTAMP, 3) == "2025-03-23 10:57:19.250000000"


@pytest.mark.parametrize(
    "category, text, expected",
    [
        (TIMESTAMP, "2025-03-23 10:57", "2025-03-23 10:57:00.000000000"),
        (TIMESTAMP, "2025-03-23-10.57.19", "2025-03-23 10:57:19.000000000"),
        (TIMESTAMP, "Mar  3 2025 12:00:00:000AM", "2025-03-03 00:00:00.000000000"),
        (TIMESTAMP, "Dec  3 2025 12:30:00:001PM", "2025-12-03 12:30:00.001000000"),
        (TIMESTAMP, "Dec  3 2025  1:30:00:001PM", "2025-12-03 13:30:00.001000000"),
        (DATE, "Dec  3 2025 12:00:00:000AM", "2025-12-03"),
        (TIME, "10:57", "10:57:00"),
        (TIME, "10.57.19", "10:57:19"),
        (TIME, "01:00:00+02", "23:00:00"),
        (TIME, "23:30:00-01:00", "00:30:00"),
        (DATE, "0001-01-01", "0001-01-01"),
        (DATE, "9999-12-31", "9999-12-31"),
    ],
)
def test_forms_in_detail(category: Category, text: str, expected: str) -> None:
    assert time_text(text, category, 3) == expected


@pytest.mark.parametrize(
    "value",
    ["", "soon", "infinity", "2025-02-30", "0000-00-00", "2025-03-23 25:00:00", "10:60", "2025-3-23", "٢٠٢٥-03-23"]
    + ["Mar 23 2025 13:00:00:000AM", "Mar 23 2025 0:00:00:000PM", "Mer 23 2025 1:00:00:000PM", "20250323"]
    + ["0001-01-01 00:00:00+01", "9999-12-31 23:59:59-01", "2025-03-23 10:57:19.25\n", 5, 1.5, True, b"2025-03-23", None],
)  # fmt: skip
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(ExpressionError, match="is no date or time that can be read; write it as yyyy-mm-dd hh:mm:ss"):
        time_text(value, TIMESTAMP, 3)


@pytest.mark.parametrize(
    "category, value",
    [(DATE, "10:57:19"), (TIMESTAMP, dt.time(10)), (TIMESTAMP, "10.57.19"), (TIME, "2025-03-23"), (TIME, dt.date(2025, 3, 23))],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused(category: Category, value: object) -> None:
    with pytest.raises(ExpressionError, match=f"is not a {category.value}; write it as"):
        time_text(value, category, 2)


@pytest.mark.parametrize("value", ["1969-12-31 23:59:59.9", "2106-02-07 06:28:16", dt.date(1066, 10, 14)])
def test_syntax_1_ends_with_its_32_bits(value: object) -> None:
    with pytest.raises(ExpressionError, match=r"is outside 1970-01-01 .* choose time-syntax 2 or 3"):
        time_text(value, TIMESTAMP, 1)
    assert len(time_text(value, TIMESTAMP, 2)) == 23


@shares(written=0.3)
@given(st.datetimes(timezones=zones), syntaxes)
def test_text_and_value_of_one_moment_agree(moment: dt.datetime, syntax: TimeSyntax) -> None:
    def written(value: object) -> str:
        try:
            return time_text(value, TIMESTAMP, syntax)
        except ExpressionError as error:
            return type(error).__name__

    met(written=written(moment) != ExpressionError.__name__)
    assert written(moment) == written(moment.isoformat()) == written(str(moment))


def without_fraction(time: dt.time) -> dt.time:
    return time.replace(microsecond=0)


@shares(whole=0.1, fraction=0.2)
@given(st.times(timezones=zones) | st.times(timezones=zones).map(without_fraction), st.sampled_from([2, 3]))
def test_a_time_of_day_has_a_fixed_length_but_for_its_fraction(time: dt.time, syntax: TimeSyntax) -> None:
    met(whole=not time.microsecond, fraction=time.microsecond)
    text = time_text(time, TIME, syntax)
    assert len(text) == {2: 6, 3: 18 if time.microsecond else 8}[syntax]
    assert text == time_text(time.isoformat(), TIME, syntax)
