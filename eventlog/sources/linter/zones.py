"""OPER_DATE as UTC: the document does not state its zone, so it is set. Reads no clock."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from eventlog.core.errors import ConfigError
from eventlog.sources.linter.rows import oper_time


def utc_reader(zone: str) -> Callable[[bytes], dt.datetime]:
    """What makes UTC, without a zone of its own, of an OPER_DATE written in that zone."""
    if zone == "UTC":
        return oper_time
    try:
        info = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError(f"{zone!r} is no time zone.", hint="Zones are named as in Europe/Moscow.") from None

    @lru_cache(256)  # rows of one hour follow each other
    def offset(hour: dt.datetime) -> dt.timedelta:
        return hour.replace(tzinfo=info).utcoffset() or dt.timedelta(0)

    def utc(raw: bytes) -> dt.datetime:
        local = oper_time(raw)
        # Zones change on quarters of an hour.
        return local - offset(local.replace(minute=local.minute // 15 * 15, second=0, microsecond=0))

    return utc
