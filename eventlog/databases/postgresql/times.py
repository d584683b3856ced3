"""PostgreSQL's dates and times as texts: also those that Python lacks, and how a session reads them."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, Final

from eventlog.core.model import Value
from eventlog.core.sql_types import Category, is_zoned
from eventlog.core.times import read_clock, read_moment

LAST_YEARS: Final = {"date": 5_874_897, "timestamp": 294_276}
FIRST_DAY: Final = (-4712, 11, 24)
"""What PostgreSQL's dates and times reach; the years before Christ are counted from 0 down."""

_ENDLESS: Final = frozenset({"infinity", "-infinity"})
# PostgreSQL has years that Python has not: beyond 9999, and before Christ. Sessions that read moments are in UTC.
_far_moment = re.compile(
    r"(\d{4,7})-(\d\d)-(\d\d)(?:[ T](\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:\+00)?)?( BC)?", re.ASCII
).fullmatch
# PostgreSQL takes 24:00 for the end of a day.
_midnight = re.compile(r"24:00(?::00(?:\.0{1,9})?)?", re.ASCII).fullmatch


def read_beyond(sql_type: str, kind: Category, text: str) -> Value:
    """Read a time that Python has not: an infinite one, one before Christ or after 9999, 24:00."""
    if kind is Category.STATE or (kind is Category.DATE and ":" in text):
        return None
    read = read_timestamptz if kind is Category.TIMESTAMP and is_zoned(sql_type) else _READERS[kind]
    try:
        return read(text.strip(" "))
    except ValueError:
        return None


def read_time(written: str) -> str | None:
    """Read a time of day; ValueError or None where it is none."""
    # Python has no hour 24, which is a time of its own here.
    if _midnight(written):
        return "24:00:00"
    clock = read_clock(written)
    return clock.isoformat() if clock.tzinfo is None else None


def read_date(written: str) -> str | None:
    """Read a day; ValueError or None where it is none."""
    try:
        return dt.date.fromisoformat(written).isoformat()
    except ValueError:
        return _far(written, LAST_YEARS["date"])


def read_timestamp(written: str) -> str | None:
    """Read a time without a zone; ValueError or None where it is none."""
    try:
        moment = read_moment(written)
    except ValueError:
        return _far(written, LAST_YEARS["timestamp"])
    return moment.isoformat(" ") if moment.tzinfo is None else None


def read_timestamptz(written: str) -> str | None:
    """Read a moment: without a zone it is in UTC, as our triggers write it."""
    try:
        moment = read_moment(written)
    except ValueError:
        return _far(written, LAST_YEARS["timestamp"], "+00")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return moment.isoformat(" ")


def _far(written: str, last: int, zone: str = "") -> str | None:
    """Read a time beyond Python's years; the calendar repeats every 400 years."""
    if written in _ENDLESS:
        return written
    match = _far_moment(written)
    if match is None:
        return None
    year, month, day, clock, before_christ = match.groups()
    # 1 BC is the year 0.
    number = 1 - int(year) if before_christ else int(year)
    dt.date(number % 400 + 2000, int(month), int(day))  # ValueError where there is no such day
    read_clock(clock or "00:00")
    # Nobody writes a year 0: before the year 1 comes 1 BC.
    if int(year) == 0 or not FIRST_DAY <= (number, int(month), int(day)) <= (last, 12, 31):
        return None
    date = f"{year}-{month}-{day}"
    if clock or zone:
        date = f"{date} {clock or '00:00:00'}{zone}"
    return f"{date}{before_christ or ''}"


_READERS: Final = {Category.DATE: read_date, Category.TIME: read_time, Category.TIMESTAMP: read_timestamp}


def read_far_times(session: Any, error: BaseException) -> bool:
    """Let the driver read times outside Python's range as text.

    False if it already does, or the error was the server's. The usual readers are faster, and
    nearly no table has such times.
    """
    from psycopg import DataError
    from psycopg.types import datetime as usual

    readers = {
        "date": usual.DateLoader,
        "time": usual.TimeLoader,
        "timestamp": usual.TimestampLoader,
        "timestamptz": usual.TimestamptzLoader,
    }
    taught = getattr(session.adapters, "eventlog_far", False)
    if taught or not isinstance(error, DataError) or error.sqlstate is not None:
        return False

    def load_far(self: Any, stored: Any) -> Any:
        try:
            return super(type(self), self).load(stored)
        except DataError:
            return bytes(stored).decode()

    for kind, reader in readers.items():
        session.adapters.register_loader(kind, type(reader.__name__, (reader,), {"load": load_far}))
    session.adapters.eventlog_far = True
    return True
