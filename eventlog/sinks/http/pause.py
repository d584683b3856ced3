"""How long a receiver wants nothing: what it says by `Retry-After`."""

from __future__ import annotations

import datetime as dt
import time
from email.utils import parsedate_to_datetime
from typing import Final

MOST_WAIT_SECONDS: Final = 3600.0
"""A receiver that asks for a longer pause is asked again after this one."""


class Pause:
    """Until when a receiver wants nothing; all connections to it share it."""

    def __init__(self) -> None:
        self._until = 0.0

    def ask(self, retry_after: str) -> None:
        """Begins a pause, where the receiver says how long."""
        seconds = read_retry_after(retry_after, time.time())
        if seconds:
            self._until = max(self._until, time.monotonic() + min(seconds, MOST_WAIT_SECONDS))

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._until - time.monotonic())


def read_retry_after(retry_after: str, now: float) -> float:
    """Return the seconds of a `Retry-After` header, a number or a time; 0 if neither."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])  # nobody means more seconds, and a float has an end
    try:
        found = parsedate_to_datetime(text)
        # HTTP's times are in UTC, also those of the form that says no zone.
        return max(0.0, (found if found.tzinfo else found.replace(tzinfo=dt.UTC)).timestamp() - now)
    except (ValueError, OverflowError):
        return 0.0
