"""Says in the log's marks how fast rows are settled, for `eventlog status` anywhere to read; never in a cycle's way."""

from __future__ import annotations

from time import monotonic
from typing import Final

from eventlog.sources.log.backlog import Pace, database_seconds, quickened, read_pace, write_pace
from eventlog.sources.log.lock import LogLock
from eventlog.sources.marks import PACE, Marks

ENTRY_SECONDS: Final = 2.0
"""Seconds between two entries: a transaction of two statements that need not be on the disk."""


class Tempo:
    """Counts settled rows, and enters them when that is due."""

    def __init__(self, lock: LogLock) -> None:
        self._lock = lock
        self._rows = 0
        self._pace: Pace | None = None
        self._entered = float("-inf")

    def count(self, rows: int) -> None:
        """Rows were settled."""
        self._rows += rows

    def enter(self, *, now: bool = False) -> None:
        """Enters what was counted, if there is something and it is time for that or must be `now`."""
        if not self._rows or not (now or monotonic() - self._entered >= ENTRY_SECONDS):
            return
        log = self._lock.log
        with log.transaction() as connection:
            if self._pace is None:
                self._pace = read_pace(Marks(log).get(connection, PACE))
            pace = quickened(self._pace, self._rows, database_seconds(connection, log))
            self._lock.mark(connection, PACE, write_pace(pace), soon=True)
        self._pace, self._rows, self._entered = pace, 0, monotonic()
