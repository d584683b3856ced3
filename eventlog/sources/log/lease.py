"""A lease that a thread renews, because a batch may take longer than a lease lasts; and the clock that it goes by here."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event as Flag
from threading import Thread
from typing import Final

from eventlog.core.errors import SourceError

_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

PARTS: Final = 3
"""It is renewed so many times while it lasts, and counts as fresh while such a part of it is left."""


def seconds_up() -> float:
    """A clock that nobody can set, and that goes on while the machine sleeps, where there is such a one."""
    return time.clock_gettime(_CLOCK)


class Lease:
    """Lasts `seconds` from the moment before the last renewal was sent, so that it ends here before it ends elsewhere.

    `renew` says whether it still was ours; what fails with a SourceError is tried again the next time. The thread renews
    nothing while `alive` says that whoever needs the lease does not move: somebody else may have it then.
    """

    def __init__(
        self, seconds: float, sent: float, renew: Callable[[], bool], alive: Callable[[], bool] = lambda: True
    ) -> None:
        self.lost = False
        self._seconds = seconds
        self._ends = sent + seconds
        self._renew = renew
        self._alive = alive
        self._stopped = Flag()
        self._thread = Thread(target=self._run, name="eventlog-lease", daemon=True)
        self._thread.start()

    @property
    def fresh(self) -> bool:
        """Whether it is ours for a while yet, as far as is known without asking."""
        return not self.lost and self._ends - seconds_up() > self._seconds / PARTS

    def renew(self) -> bool:
        """Renews it now; False when it was lost."""
        sent = seconds_up()
        if self._renew():
            self._ends = max(self._ends, sent + self._seconds)
        else:
            self.lost = True
        return not self.lost

    def end(self) -> None:
        """Begins no further renewal; one that is under way may wait for a row that the caller has locked."""
        self._stopped.set()

    def stop(self) -> None:
        """Ends the renewals; one that is under way is waited for as long as the lease lasts."""
        self.end()
        self._thread.join(self._seconds)

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds / PARTS):
            try:
                if self._alive() and not self.renew():
                    return
            except SourceError:
                continue  # a lock, or a database that is away: the next renewal may come in time
