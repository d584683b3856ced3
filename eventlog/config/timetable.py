"""Times of day at which something is due, by the clock on the wall, which may jump."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable

from msgspec import Struct

from eventlog.core.errors import ConfigError

_time = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")


class Timetable(Struct, frozen=True, kw_only=True):
    """Times of day, local to this machine; without any, nothing is ever due."""

    times: tuple[dt.time, ...] = ()

    def next_after(self, now: dt.datetime) -> dt.datetime:
        """Return the next time on the table; there must be one."""
        today = [dt.datetime.combine(now.date(), time) for time in sorted(self.times)]
        for moment in today:
            if moment > now:
                return moment
        return today[0] + dt.timedelta(days=1)

    def was_due(self, since: dt.datetime, now: dt.datetime) -> bool:
        """Return True if a time on the table has come since then; all missed ones are due once."""
        return bool(self.times) and since < now and self.next_after(since) <= now


def read_times(texts: Iterable[str]) -> Timetable:
    """Reads `02:00` or `14:30:15`; ConfigError for anything else."""
    return Timetable(times=tuple(_read(text) for text in texts))


def _read(text: str) -> dt.time:
    match = _time.fullmatch(text.strip())
    if match is not None:
        hours, minutes, seconds = map(int, match.groups(default="0"))
        if hours <= 23 and minutes <= 59 and seconds <= 59:
            return dt.time(hours, minutes, seconds)
    raise ConfigError(f"{text!r} is not a time of day; it is written as 02:00 or 14:30:15.")
