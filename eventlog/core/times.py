"""Points in time as log rows have them: to compare with a clock and with each other."""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

DB2: Final = re.compile(r"(\d{4}-\d\d-\d\d)-(\d\d)\.(\d\d)\.(\d\d)(?:\.(\d{1,12}))?", re.ASCII).fullmatch
"""`2025-03-23-10.57.19.250000`, as Db2 writes a timestamp."""

# The names of months are those of English, whatever the server's language.
SYBASE: Final = re.compile(
    r"([A-Z][a-z]{2}) +(\d\d?) +(\d{4}) +(\d\d?):(\d\d):(\d\d):(\d{3}) ?([AP]M)", re.ASCII | re.IGNORECASE
).fullmatch
"""`Mar 23 2025 10:57:19:250AM`, Sybase's style 109."""

MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


# The digits of a second as they were written, of which datetime would keep six.
FRACTION: Final = re.compile(r".*:\d\d(\.\d+)\s*", re.ASCII).fullmatch

# A clock that says 24: behind the date, before a colon, a dot or the text's end.
HOUR_24: Final = re.compile(r"\d[^-+\d.,:]24", re.ASCII).search


def read_moment(text: str) -> dt.datetime:
    """Parse ISO 8601; refuse hour 24, read as the next day by Python 3.14."""
    time = dt.datetime.fromisoformat(text)
    if time.hour == 0 and HOUR_24(text):  # pragma: no cover  # Python 3.14 alone comes so far
        raise ValueError(text)
    return time


def read_clock(text: str) -> dt.time:
    """Parse a time of day in ISO 8601, without hour 24 as well."""
    if text.startswith("24"):
        raise ValueError(text)
    return dt.time.fromisoformat(text)


def moment(time: dt.datetime | str) -> dt.datetime | None:
    """Convert a point in time to UTC without a zone, for comparison; None when the text is not one.

    A text is ISO 8601, or in the form of Db2 or Sybase.
    """
    try:
        if isinstance(time, str):
            time = read_moment(in_iso_form(time.strip()))
        if time.tzinfo is None:
            return time
        return time.astimezone(dt.UTC).replace(tzinfo=None)
    # An hour of the year 1 east of Greenwich lies before every date in UTC.
    except (ValueError, OverflowError):
        return None


def in_utc(time: str, zone: dt.tzinfo) -> str:
    """Convert a time of a zone to UTC, keeping all its digits. Leave it if it says its zone or is no time."""
    try:
        local = read_moment(in_iso_form(time.strip()))
        if local.tzinfo is not None:
            return time
        there = local.replace(tzinfo=zone).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return time
    fraction = FRACTION(time) if time[:1].isdecimal() else None
    text = there.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")  # years before 1000 may lack zeros
    if fraction:  # as it was written: nine digits, perhaps, of which datetime holds six
        return text + fraction[1]
    if there.microsecond:
        return f"{text}.{there.microsecond:06d}"
    return text


def in_zone(time: dt.datetime, zone: dt.tzinfo | None) -> dt.datetime:
    """Convert a time of UTC, without a zone, to the clocks of a zone."""
    if zone is None:
        return time
    return time.replace(tzinfo=dt.UTC).astimezone(zone).replace(tzinfo=None)


def in_iso_form(text: str) -> str:
    """Convert Db2's and Sybase's forms to ISO 8601, leave others; raise ValueError for a wrong hour
    or month.
    """
    if "." in text[10:14] and (match := DB2(text)) is not None:
        day, hour, minute, second, fraction = match.groups(default="0")
        return f"{day}T{hour}:{minute}:{second}.{fraction}"
    if text[:1].isalpha() and (match := SYBASE(text)) is not None:
        name, date, year, hour, minute, second, millis, half = match.groups()
        month = MONTHS.index(name.capitalize()) + 1
        # The hour of the day: with AM and PM it counts from 12 over 1 to 11.
        if not 1 <= int(hour) <= 12:
            raise ValueError(hour)
        of_day = int(hour) % 12
        if half.upper() == "PM":
            of_day += 12
        return f"{year}-{month:02d}-{int(date):02d}T{of_day:02d}:{minute}:{second}.{millis}"
    return text
