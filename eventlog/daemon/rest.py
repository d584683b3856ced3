"""The time between two cycles: how long it lasts and what ends it early.

Waiting goes by the monotonic clock, so that a clock that jumps neither hurries nor delays anything. Only times of day
go by the clock on the wall, which is looked at again and again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from threading import Event as Flag
from time import monotonic
from typing import Final

from eventlog.config.settings import PublisherConfig
from eventlog.config.timetable import read_times
from eventlog.sources.log.wakeup import Wakeup

LOOK_SECONDS: Final = 1.0
"""Seconds after which a wait says that it is alive and looks at the clock on the wall."""


class CycleWait:
    """Waits as the settings say; `pulse` is called while it waits, and `stopped` ends every wait."""

    def __init__(
        self,
        settings: PublisherConfig,
        wakeup: Wakeup | None,
        stopped: Flag,
        pulse: Callable[[], None],
        now: Callable[[], dt.datetime] = dt.datetime.now,
    ) -> None:
        self._interval = float(settings.polling_interval)
        self._table = read_times(settings.time_of_day)
        self._wakeup = None if self._table.times else wakeup
        self._stopped = stopped
        self._pulse = pulse
        self._now = now
        self._seen = now()

    @property
    def by_time_of_day(self) -> bool:
        """Whether cycles are only begun at times of day."""
        return bool(self._table.times)

    def worked(self) -> None:
        """A cycle found rows."""
        if self._wakeup is not None:
            self._wakeup.found()

    def until_next(self, each: Callable[[], None], *, later: float | None = None, all_held: bool = False) -> None:
        """Waits for the next cycle and calls `each` now and then; `later` is when rows are offered again.

        `all_held` says that until then nothing is read.
        """
        if self.by_time_of_day:
            self._until_time_of_day(each, None if later is None else monotonic() + later)
            return
        if later is None:
            seconds = self._interval
        else:
            seconds = later if all_held else min(later, self._interval)
        self.for_seconds(seconds, each, alert=not all_held)

    def for_seconds(self, seconds: float, each: Callable[[], None] = lambda: None, *, alert: bool = False) -> None:
        """Waits so long; when `alert`, rows that come end the wait."""
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0 and not self._stopped.is_set():
            if alert and self._wakeup is not None:
                if self._wakeup.wait(min(left, LOOK_SECONDS), self._stopped):
                    return
            else:
                self._stopped.wait(min(left, LOOK_SECONDS))
            self._pulse()
            each()

    def _until_time_of_day(self, each: Callable[[], None], end: float | None) -> None:
        while not self._stopped.is_set() and (end is None or monotonic() < end):
            now = self._now()
            since, self._seen = self._seen, now
            if self._table.was_due(since, now):
                return
            left = (self._table.next_after(now) - now).total_seconds()
            self._stopped.wait(max(0.0, min(left, LOOK_SECONDS)))
            self._pulse()
            each()
