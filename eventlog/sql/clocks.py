"""Whose time a log's event_time is: UTC in logs of our own, the time of some place in a log that
others' triggers fill.

A time of a place that occurs twice, when clocks are set back, is taken for the first of the two;
one that never occurs, when they are set forward, for as long after the change as it says.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, available_timezones

from eventlog.core.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.dialect import Dialect

UTC: Final = "utc"
DATABASE: Final = "database"
"""The zone of the database's own clock."""

SET_BACK: Final = dt.timedelta(hours=2)
"""So long after clocks were set back rows may have the time of before: no place moves them more."""

_offset: Final = re.compile(r"([+-])(\d\d):(\d\d)").fullmatch


def zone_of(clock: str, what: str = "source.clock") -> dt.tzinfo | None:
    """Return the time zone for a setting, None for UTC; raise ConfigError naming the setting if unknown."""
    if clock.casefold() in ("", UTC, "gmt", "+00:00", "etc/utc"):
        return None
    match = _offset(clock)
    if match is not None:
        sign, hours, minutes = match.groups()
        span = dt.timedelta(hours=int(hours), minutes=int(minutes))
        if span < dt.timedelta(days=1):
            return dt.timezone(-span if sign == "-" else span)
    # The library opens a file of that name, so it raises what opening may raise.
    try:
        return ZoneInfo(clock)
    except (KeyError, ValueError, OSError):
        from eventlog.core.suggest import did_you_mean

        hint = did_you_mean(clock, available_timezones())
        usual = "utc, database, or a zone such as Europe/Berlin"
        raise ConfigError(f"{what} = {clock!r} names no time zone; it is {usual}.", hint=hint) from None


def clock_of(connection: Connection, clock: str) -> str:
    """Resolve the setting `database` to the zone of the database's clock: by name if it tells one, for a
    name knows of daylight saving time and an offset does not.
    """
    if clock != DATABASE:
        return clock
    # With SQLAlchemy, which workers without a log do without.
    from eventlog.sql.access import verbatim
    from eventlog.sql.dialect import dialect_of, statement

    zone_query = verbatim(statement(dialect_of(connection), "database_zone"))
    name, seconds = connection.execute(zone_query).one()
    try:
        if name and "/" in str(name):
            zone_of(str(name))
            return str(name)
    except ConfigError:
        pass  # a name of the database's own, which this machine does not have
    return offset_name(int(seconds))


def offset_name(seconds: float) -> str:
    """Write an offset to the minute: +09:00."""
    minutes = round(abs(seconds) / 60)
    sign = "-" if seconds < 0 else "+"
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"


def due_clock(dialect: Dialect, now: str, zone: dt.tzinfo, at: dt.datetime) -> str:
    """Write SQL for the latest time of the zone at which a row may be due; `now` is SQL for UTC."""
    # The greater of both: a row may still be due by the clock of before it was set back.
    moments = (at, at - SET_BACK)
    offsets = [zone.utcoffset(moment.astimezone(zone)) or dt.timedelta() for moment in moments]
    return dialect.later.format(now=now, seconds=int(max(offsets).total_seconds()))
