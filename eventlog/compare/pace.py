"""How fast a comparison may read, and when: rows a second, and a time of day."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from threading import Lock

from msgspec import Struct

from eventlog.core.errors import UsageError

_DAY_MINUTES = 24 * 60


class Window(Struct, frozen=True):
    """Minutes of the day, local time, between which reading is allowed; the end may be before the
    begin, over midnight.
    """

    begin: int
    end: int

    def wait(self, minute: int) -> int:
        """Return minutes until reading is allowed; 0 if it is."""
        if self.begin < self.end:
            is_inside = self.begin <= minute < self.end
        else:
            # Over midnight it is all but what lies between.
            is_inside = not self.end <= minute < self.begin
        if is_inside:
            return 0
        return (self.begin - minute) % _DAY_MINUTES


def read_window(text: str) -> Window:
    """Parse a window such as 22:00-05:00."""
    try:
        begin, end = [dt.time.fromisoformat(part) for part in text.split("-")]
    except ValueError:
        raise UsageError(f"{text!r} is no time window; write it as 22:00-05:00.") from None
    window = Window(begin.hour * 60 + begin.minute, end.hour * 60 + end.minute)
    if window.begin == window.end:
        raise UsageError(f"The time window {text} is empty; write it as 22:00-05:00.")
    return window


class Pace:
    """Keeps readers back: no more than so many rows a second, all tables together, and only within
    the window.
    """

    def __init__(
        self,
        rows_per_second: float = 0,
        window: Window | None = None,
        *,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], dt.datetime] = dt.datetime.now,
    ) -> None:
        self._rate = rows_per_second
        self._window = window
        self._sleep = sleep
        self._clock = clock
        self._now = now
        self._free = clock()
        self._lock = Lock()

    def enter(self) -> None:
        """Returns when a range may be read."""
        while self._window is not None:
            now = self._now()
            minutes = self._window.wait(now.hour * 60 + now.minute)
            if not minutes:
                break
            # A minute at a time, for the clock may be set meanwhile.
            self._sleep(min(minutes * 60, 60))
        wait = self.wait()
        if wait > 0:
            # Outside of the lock: other tables may count what they read meanwhile.
            self._sleep(wait)

    def wait(self) -> float:
        """Return seconds until the next range may be read, given the rows read before."""
        with self._lock:
            return max(0.0, self._free - self._clock())

    def read(self, rows: int) -> None:
        """Counts rows that were read; the next range waits for as long as they may take."""
        if self._rate > 0:
            with self._lock:
                # Time in which nobody read is not saved up for a burst.
                self._free = max(self._free, self._clock()) + rows / self._rate
