"""Dates, times and spans as Debezium counts them: days, milli-, micro- and nanoseconds since 1970, and
moments of a zone as text.

Law: what Python's calendar cannot hold is counted all the same: years before Christ and after 9999,
PostgreSQL's infinities, 24:00, and MariaDB's times of up to 838 hours.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any, Final

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.qlik.readings import reading_of

FIRST_DAY: Final = dt.date(1970, 1, 1).toordinal()
_START: Final = dt.datetime(1970, 1, 1)
_MICRO: Final = dt.timedelta(microseconds=1)
_DAY_NANOSECONDS: Final = 86_400_000_000_000
INFINITE_MICROS: Final = {"infinity": 9223372036825200000, "-infinity": -9223372036832400000}
"""What Debezium writes for a timestamp that is infinite."""
INFINITE_NANOS: Final = {"infinity": (1 << 63) - 1, "-infinity": -(1 << 63)}
INFINITE_DAYS: Final = {"infinity": -2147472692, "-infinity": -2147472691}
"""The same for a date, of which 32 bits do not hold the days that it counts."""
_MONTH_DAYS: Final = 30.4375
"""Days of a month in a span, as Debezium counts them."""

_moment = re.compile(
    r" *([+-]?\d{4,})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?"
    r" ?(Z|[+-]\d\d(?::?\d\d(?::\d\d)?)?)? ?(BC)? *",
    re.ASCII,
).fullmatch
_clock = re.compile(
    r" *(-?)(\d{1,4}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)? ?(Z|[+-]\d\d(?::?\d\d(?::\d\d)?)?)? *", re.ASCII
).fullmatch
_zero = re.compile(r"\d{4}-(?:00-\d\d|\d\d-00)(?: .*)?|0000-.*", re.ASCII).fullmatch
_read_text = reading_of("text")


def read_days(cell: Any) -> int:
    """Count the days of a date."""
    if type(cell) is str and len(cell) == 10 and cell[4::3] == "--":  # as nearly all are
        try:
            return dt.date.fromisoformat(cell).toordinal() - FIRST_DAY
        except ValueError:
            pass
    text = _text(cell)
    if text in INFINITE_DAYS:
        return INFINITE_DAYS[text]
    return read_nanos(text) // _DAY_NANOSECONDS


def read_micros(cell: Any) -> int:
    """Count the microseconds of a moment."""
    text = _text(cell)
    moment = _read_usual(text)
    if moment is not None:
        return (moment - _START) // _MICRO
    if text in INFINITE_MICROS:
        return INFINITE_MICROS[text]
    return read_nanos(text) // 1000


def _read_usual(text: str) -> dt.datetime | None:
    """Read a moment as logs have nearly all, with nine digits of a second and no zone; None for another."""
    if len(text) == 29 and text[4::3][:2] == "--" and text[10] == " " and text[19] == "." and text[26:].isdigit():
        try:
            return dt.datetime.fromisoformat(text[:26])
        except ValueError:
            return None
    return None


def read_nanos(cell: Any) -> int:
    """Count the nanoseconds of a moment; one without a zone counts as UTC."""
    match = _moment(_text(cell))
    if match is None:
        raise ExpressionError(f"{value_shown(cell)} is not a time; write it as yyyy-mm-dd hh:mm:ss.ffffff")
    year, month, day, hour, minute, second, fraction, zone, before_christ = match.groups()
    years = int(year)
    if before_christ:
        years = 1 - years
    days = count_days(years, int(month), int(day))
    seconds = (int(hour or 0) * 60 + int(minute or 0)) * 60 + int(second or 0) - _zone_seconds(zone)
    return days * _DAY_NANOSECONDS + seconds * 1_000_000_000 + _nanos(fraction)


def read_millis(cell: Any) -> int:
    """Count the milliseconds of a moment."""
    return read_micros(cell) // 1000


def is_zero_date(text: Any) -> bool:
    """Tell whether a date is one of MariaDB's and MySQL's that no calendar has, as 0000-00-00."""
    return isinstance(text, str) and _zero(text) is not None


def count_days(year: int, month: int, day: int) -> int:
    """Count the days from 1970-01-01 to a day of the Gregorian calendar, which reaches back for ever."""
    # A year begins in March, so that the day of a leap year is its last.
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def find_day(days: int) -> tuple[int, int, int]:
    """Find the year, month and day that are so many days from 1970-01-01."""
    era, of_era = divmod(days + 719468, 146097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    part = (5 * of_year + 2) // 153
    month = part + 3 if part < 10 else part - 9
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * part + 2) // 5 + 1


def write_moment(nanos: int, digits: int) -> str:
    """Write a moment in UTC with so many digits of a second, as Java does."""
    days, rest = divmod(nanos, _DAY_NANOSECONDS)
    year, month, day = find_day(days)
    years = f"{year:04}" if 0 <= year <= 9999 else f"{'+' if year > 0 else '-'}{abs(year):04}"
    seconds, fraction = divmod(rest, 1_000_000_000)
    text = f"{years}-{month:02}-{day:02}T{_of_day(seconds)}"
    if digits:
        text += f".{fraction:09}"[: digits + 1]
    return f"{text}Z"


def read_zoned(digits: int, cell: Any) -> str:
    """Read a moment of a zone, and write it in UTC; infinite ones stay words."""
    text = _text(cell)
    if digits and _read_usual(text) is not None:
        return f"{text[:10]}T{text[11 : 20 + digits]}Z"
    if text in INFINITE_MICROS:
        return text
    return write_moment(read_nanos(text), digits)


def read_span(cell: Any) -> int:
    """Count the nanoseconds of a time of day, or of a time of MariaDB's, which may be longer and negative."""
    match = _clock(_text(cell))
    if match is None:
        raise ExpressionError(f"{value_shown(cell)} is not a time of day, as hh:mm:ss")
    sign, hour, minute, second, fraction, _ = match.groups()
    seconds = (int(hour) * 60 + int(minute)) * 60 + int(second or 0)
    nanos = seconds * 1_000_000_000 + _nanos(fraction)
    return -nanos if sign else nanos


def read_zoned_time(cell: Any) -> str:
    """Read a time of day in a zone, and write it in UTC."""
    nanos = read_span(cell)
    match = _clock(_text(cell))
    zone = match[6] if match is not None else None
    seconds, fraction = divmod((nanos - _zone_seconds(zone) * 1_000_000_000) % _DAY_NANOSECONDS, 1_000_000_000)
    text = _of_day(seconds)
    if fraction:
        text += f".{fraction:09}".rstrip("0")
    return f"{text}Z"


# --- spans -----------------------------------------------------------------------------------------------------------

_iso_span = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?[\d.]+)S)?)?", re.ASCII
).fullmatch
_unit = re.compile(r"([+-]?[\d.]+) *(year|mon|day|hour|min|sec)[a-z]*", re.ASCII)
_span_clock = re.compile(r"([+-]?)(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?", re.ASCII)
_years_months = re.compile(r"([+-]?)(\d+)-(\d+)", re.ASCII).search
_lone_number = re.compile(r"(?<![\d:.-])([+-]?\d+)(?= +[+-]?\d+:)", re.ASCII).search

Span = tuple[int, int, int, int, int, Decimal]
"""Years, months, days, hours, minutes and seconds."""


def read_interval(cell: Any) -> Span:
    """Read a span of PostgreSQL's in whichever style the session had, or of Oracle's."""
    text = _text(cell).strip()
    match = _iso_span(text) if text.startswith("P") else None
    if match is not None:
        years, months, weeks, days, hours, minutes = [int(part or 0) for part in match.groups()[:6]]
        return years, months, weeks * 7 + days, hours, minutes, Decimal(match[7] or 0)
    parts = dict.fromkeys(("year", "mon", "day", "hour", "min", "sec"), Decimal())
    spans = [(unit, Decimal(number)) for number, unit in _unit.findall(text)]
    if (pair := _years_months(text)) is not None:
        sign = -1 if pair[1] == "-" else 1
        spans += [("year", Decimal(sign * int(pair[2]))), ("mon", Decimal(sign * int(pair[3])))]
    if (lone := _lone_number(text)) is not None and not _unit.search(text):
        spans.append(("day", Decimal(lone[1])))
    if (clock := _span_clock.search(text)) is not None:
        sign = -1 if clock[1] == "-" else 1
        values = [Decimal(part or 0) for part in clock.groups()[1:]]
        spans += [(unit, sign * value) for unit, value in zip(("hour", "min", "sec"), values, strict=True)]
    if not spans and text.strip("0 "):
        raise ExpressionError(f"{value_shown(cell)} is not a span of time")
    for unit, number in spans:
        parts[unit] += -number if text.endswith(" ago") else number
    whole = [int(parts[unit]) for unit in ("year", "mon", "day", "hour", "min")]
    return whole[0], whole[1], whole[2], whole[3], whole[4], parts["sec"]


def count_interval(cell: Any) -> int:
    """Count the microseconds of a span, in whose months are 30.4375 days."""
    years, months, days, hours, minutes, seconds = read_interval(cell)
    # In the order, and with the binary fractions, of Debezium.
    whole_days = (years * 12 + months) * _MONTH_DAYS + days
    return int(((((whole_days * 24 + hours) * 60) + minutes) * 60 + float(seconds)) * 1e6)


def write_interval(cell: Any) -> str:
    """Write a span as ISO 8601 does, with each of its parts."""
    years, months, days, hours, minutes, seconds = read_interval(cell)
    fraction = format(seconds.normalize(), "f") if seconds else "0"
    return f"P{years}Y{months}M{days}DT{hours}H{minutes}M{fraction}S"


def _text(cell: Any) -> str:
    return cell if type(cell) is str else str(_read_text(cell))


def _nanos(fraction: str | None) -> int:
    return int((fraction or "0").ljust(9, "0"))


def _of_day(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _zone_seconds(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:])
    return -seconds if zone[0] == "-" else seconds
