"""Renews a lease in the background, because a batch may take longer than a lease lasts."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event as Flag
from threading import Thread

from eventlog.errors import SourceError


class LeaseKeeper:
    """Calls `renew` every so many seconds until it is stopped; what fails is tried again the next time."""

    def __init__(self, seconds: float, renew: Callable[[], None]) -> None:
        self._seconds = seconds
        self._renew = renew
        self._stopped = Flag()
        self._thread = Thread(target=self._run, name="eventlog-lease", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Begins no further renewal; one that is under way may wait for a lock that the caller holds."""
        self._stopped.set()

    def stop(self) -> None:
        """Ends the renewals; none is under way when it returns."""
        self.end()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            try:
                self._renew()
            except SourceError:
                continue  # a lock, or a database that is away: the next renewal may come in time
