"""Dates and times: from the log's text or the database's value to one of the three time syntaxes.

1: seconds since 1970-01-01 UTC, unsigned 32 bit. 2: `CCYYMMDDHHMMSSNNNNNNNNN`. 3: `yyyy-mm-dd hh:mm:ss.fffffffff`.
A value without a zone counts as UTC. Syntaxes 2 and 3 write a date column as a date and a time column as a time of
day, unless the value says more (Oracle's DATE has a time of day): then in full, so that nothing is lost.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Literal

from msgspec import Struct

from eventlog.core.errors import ExpressionError
from eventlog.core.sql_types import Category
from eventlog.xds.text import shown

TimeSyntax = Literal[1, 2, 3]
EPOCH = dt.date(1970, 1, 1).toordinal()
DAY = 86_400
_DATE = r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
_ZONE = r"(?: ?(?:Z|(?P<sign>[+-])(?P<zone_hours>\d\d)(?::?(?P<zone_minutes>\d\d))?))?"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,12}))?)?" + _ZONE
_DB2_TIME = r"(?P<hour>\d\d)\.(?P<minute>\d\d)\.(?P<second>\d\d)(?:\.(?P<fraction>\d{1,12}))?"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SYBASE = (
    rf"(?P<name>{'|'.join(_MONTHS)}) +(?P<day>\d\d?) +(?P<year>\d{{4}}) +"
    r"(?P<hour>\d\d?):(?P<minute>\d\d):(?P<second>\d\d):(?P<fraction>\d{3}) ?(?P<half>[AP]M)"
)
_FORMS = tuple(
    re.compile(form, re.ASCII | re.IGNORECASE).fullmatch
    for form in (f"{_DATE}(?:[T ]{_TIME})?", f"{_DATE}-{_DB2_TIME}", _TIME, _DB2_TIME, _SYBASE)
)


class Moment(Struct, frozen=True):
    """A day (as an ordinal), a second of it, nanoseconds of that, all UTC; the day or the second may be unknown."""

    day: int | None
    second: int | None
    nanos: int = 0


def moment(value: object) -> Moment:
    """Reads a database's value, or its text in ISO 8601, in Db2's form or in Sybase's style 109."""
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, dt.datetime):
        return _utc(value.toordinal(), _second(value.time()), value.microsecond * 1000, _offset(value.utcoffset()))
    if isinstance(value, dt.date):
        return Moment(value.toordinal(), None)
    if isinstance(value, dt.time):
        return _utc(None, _second(value), value.microsecond * 1000, _offset(value.utcoffset()))
    raise _unread(value)


def time_text(value: object, category: Category, syntax: TimeSyntax) -> str:
    """The value of a date, time or timestamp column in the given syntax."""
    at = moment(value)
    if at.second is None if category is Category.TIME else at.day is None:
        raise ExpressionError(f"{shown(value)} is not a {category.value}; write it as yyyy-mm-dd hh:mm:ss.fffffffff")
    if syntax == 1:
        return _seconds(at, value)
    if at.day is None:
        return _clock(at, syntax)
    if category is Category.DATE and not at.second and not at.nanos:
        return _calendar(at.day, syntax)
    if syntax == 2:
        return f"{_calendar(at.day, syntax)}{_clock(at, syntax)}{at.nanos:09d}"
    return f"{_calendar(at.day, syntax)} {_clock(at, syntax)}.{at.nanos:09d}"


def _seconds(at: Moment, value: object) -> str:
    seconds = ((EPOCH if at.day is None else at.day) - EPOCH) * DAY + (at.second or 0)
    if not 0 <= seconds < 1 << 32:
        raise ExpressionError(
            f"{shown(value)} is outside 1970-01-01 00:00:00 to 2106-02-07 06:28:15 UTC, all that time-syntax 1 can"
            " express; choose time-syntax 2 or 3"
        )
    return str(seconds)


def _calendar(day: int, syntax: TimeSyntax) -> str:
    date = dt.date.fromordinal(day).isoformat()
    return date.replace("-", "") if syntax == 2 else date


def _clock(at: Moment, syntax: TimeSyntax) -> str:
    minutes, second = divmod(at.second or 0, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}{minute:02d}{second:02d}" if syntax == 2 else f"{hour:02d}:{minute:02d}:{second:02d}"


def _from_text(text: str) -> Moment:
    trimmed = text.strip(" ")
    for form in _FORMS:
        match = form(trimmed)
        if match is not None:
            try:
                return _from_groups({name: found for name, found in match.groupdict().items() if found})
            except (ValueError, ExpressionError):  # 30 February, 25 o'clock, a zone that leads out of the calendar
                break
    raise _unread(text)


def _from_groups(groups: dict[str, str]) -> Moment:
    month = _MONTHS.index(groups["name"].lower()) + 1 if "name" in groups else int(groups.get("month", 1))
    day = dt.date(int(groups["year"]), month, int(groups["day"])).toordinal() if "year" in groups else None
    if "hour" not in groups:
        return Moment(day, None)
    hour = _hour(int(groups["hour"]), groups.get("half"))
    second = _second(dt.time(hour, int(groups["minute"]), int(groups.get("second", 0))))
    nanos = int(groups.get("fraction", "0").ljust(9, "0")[:9])
    zone = dt.timedelta(hours=int(groups.get("zone_hours", 0)), minutes=int(groups.get("zone_minutes", 0)))
    return _utc(day, second, nanos, _offset(-zone if groups.get("sign") == "-" else zone))


def _hour(hour: int, half: str | None) -> int:
    """The hour of the day; with AM or PM it counts from 12 over 1 to 11."""
    if half is None:
        return hour
    if not 1 <= hour <= 12:
        raise ValueError(hour)
    return hour % 12 + (12 if half.upper() == "PM" else 0)


def _utc(day: int | None, second: int, nanos: int, offset: int) -> Moment:
    carry, second = divmod(second - offset, DAY)
    if day is None:
        return Moment(None, second, nanos)
    if not 1 <= day + carry <= dt.date.max.toordinal():
        raise ExpressionError("the zone leads out of the years 1 to 9999; correct the value")
    return Moment(day + carry, second, nanos)


def _second(time: dt.time) -> int:
    return time.hour * 3600 + time.minute * 60 + time.second


def _offset(zone: dt.timedelta | None) -> int:
    return 0 if zone is None else zone // dt.timedelta(seconds=1)


def _unread(value: object) -> ExpressionError:
    return ExpressionError(
        f"{shown(value)} is no date or time that can be read; write it as yyyy-mm-dd hh:mm:ss.fffffffff"
    )
