"""Times of MariaDB and MySQL as texts: dates of which parts are 0, and times that are lengths."""

from __future__ import annotations

import datetime as dt
import re

from eventlog.core.model import Value
from eventlog.core.sql_types import Category
from eventlog.core.times import read_clock, read_moment

# TIME is a length there: below zero too, and up to 838 hours.
_time = re.compile(r"(-?[0-9]{2,3}:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?)0*").fullmatch
# MySQL takes dates with zeros, such as 2024-00-00, and Python does not.
_zero_date = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?: (\d\d:\d\d:\d\d(?:\.\d{1,6})?)0{0,3})?", re.ASCII).fullmatch


def read_beyond(_sql_type: str, kind: Category, text: str) -> Value:
    """Read a value that Python has not: a zero date, a TIME beyond a day, a truth value that is a number."""
    try:
        if kind is Category.STATE:
            number = int(text)
            return number if -128 <= number <= 127 else None
        return _READERS[kind](text.strip(" "))
    except ValueError:
        return None


def read_date(written: str) -> str | None:
    """Read a day; ValueError or None where it is none."""
    try:
        return dt.date.fromisoformat(written).isoformat()
    except ValueError:
        return _zero(written, with_clock=False)


def read_datetime(written: str) -> str | None:
    """Read a day with its time; ValueError or None where it is none."""
    try:
        value = read_moment(written)
    except ValueError:
        return _zero(written, with_clock=True)
    return value.isoformat(" ") if value.tzinfo is None else None


def _zero(written: str, *, with_clock: bool) -> str | None:
    """Read a date with zero parts, impossible in Python; None for other dates."""
    match = _zero_date(written)
    if match is None or (match[4] is not None and not with_clock):
        return None
    year, month, day = map(int, match.groups()[:3])
    if year and month and day:
        return None
    # ValueError where there is no such day; 2000 was a leap year, as the year 0 may be.
    dt.date(2000 if year == 0 else year, month or 1, day or 1)
    read_clock(match[4] or "00:00")
    date = f"{match[1]}-{match[2]}-{match[3]}"
    return f"{date} {match[4]}" if match[4] else date


def read_span(written: str) -> str | None:
    """Read a length of time; None where it is none."""
    match = _time(written)
    return match[1] if match else None


_READERS = {Category.DATE: read_date, Category.TIME: read_span, Category.TIMESTAMP: read_datetime}
