"""Keeps stretches back while too many rows wait in the log, for all jobs of a load together, and once it is to end."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock
from typing import Final

from eventlog.admin.refresh.loads import RefreshPace

LOOK_SECONDS: Final = 1.0
"""Seconds between two looks at a backlog that is too long."""


class Gate:
    """Who has entered may write one stretch and then leaves. `waiting` counts rows that wait, up to so many."""

    def __init__(
        self, pace: RefreshPace, waiting: Callable[[int], int], pause: Callable[[float], object] | None = None
    ) -> None:
        self._pace = pace
        self._waiting = waiting
        self._closed = Event()
        self._pause = pause or self._closed.wait
        self._turn = Lock()
        self._count = Lock()
        self._inside = 0

    def close(self) -> None:
        """Lets nobody enter from now on."""
        self._closed.set()

    def enter(self) -> bool:
        """Whether a stretch may be written; returns when few enough rows wait or are being written by others."""
        most = self._pace.backlog
        with self._turn:
            while most and not self._closed.is_set() and self._ahead(most) >= most:
                self._pause(LOOK_SECONDS)
            if self._closed.is_set():
                return False
            with self._count:
                self._inside += 1
        return True

    def leave(self) -> None:
        """What was written is counted with the rows that wait."""
        with self._count:
            self._inside -= 1

    def _ahead(self, most: int) -> int:
        writing = self._inside * self._pace.chunk  # before the log is looked at, so that no stretch escapes both
        return writing + self._waiting(most)
