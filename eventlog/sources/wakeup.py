"""Notices waiting rows soon after they were committed, without a message from whoever wrote them.

A trigger that notifies in every transaction makes all commits wait for each other (measured: a third of the rate at
four clients). So the publisher looks by itself: often while there is work, seldom when there has been none for long.
Where the database can carry a message it listens besides, so that a notification ends a pause at once.
"""

from __future__ import annotations

from select import select
from threading import Event as Flag
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from eventlog.sql.access import in_our_words, verbatim

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sources.seat import Seat

SHORTEST: Final = 0.001
LONGEST: Final = 0.15
"""Seconds between two looks. A look takes about a millisecond of a core, so that idling costs less than a percent."""

SHARE: Final = 10
"""A pause lasts a tenth of the time for which nothing has happened: that bounds both the delay and the effort."""

FRUITLESS: Final = 0.5
"""The pause after rows were seen that could not be read, for they wait behind others."""


DEAR: Final = 0.005
"""Seconds from which on a look is dear: there are many rows that may not be read, and it passes over each of them."""

PART: Final = 50
"""After a dear look none is made for so many times its own time, so that it takes a fiftieth of a core."""


class Wakeup:
    """Looks for waiting rows in the session of the seat; `due` says that only rows whose time has come count."""

    def __init__(self, seat: Seat, *, due: bool = False) -> None:
        self._seat = seat
        self._look = seat.log.query("anything_waiting", among="among_due" if due else "among_all")
        self._listening: Connection | None = None
        self._active = monotonic()
        self._fruitless = False
        self._next_look = 0.0

    def found(self) -> None:
        """Says that there was work: from now on it looks often again."""
        self._active = monotonic()
        self._fruitless = False

    def wait(self, seconds: float, stopped: Flag) -> bool:
        """Whether rows wait or somebody notified; returns at the latest after so many seconds or when it is stopped."""
        end = monotonic() + seconds
        if self._fruitless:
            self._fruitless = False
            self._pause(min(FRUITLESS, seconds), stopped)
        while (left := end - monotonic()) > 0 and not stopped.is_set():
            if monotonic() >= self._next_look and self._looked():
                self._fruitless = True  # until somebody says that there was work
                return True
            rest = max(pause(monotonic() - self._active), self._next_look - monotonic())
            if self._pause(min(left, rest), stopped):
                return True
        return False

    def _looked(self) -> bool:
        """Looks, and says when to look again at the earliest if that was dear."""
        began = monotonic()
        found = self._anything()
        cost = monotonic() - began
        self._next_look = monotonic() + PART * cost if cost > DEAR and not found else 0.0
        return found

    def _anything(self) -> bool:
        log = self._seat.log
        with in_our_words(log.engine, f"The event log {log.name}"):
            return bool(log.rows(self._seat.session, self._look))

    def _pause(self, seconds: float, stopped: Flag) -> bool:
        """Whether somebody notified during the pause."""
        channel = listening(self._seat)
        if channel is None:
            stopped.wait(seconds)
            return False
        log = self._seat.log
        with in_our_words(log.engine, f"The event log {log.name}"):
            if self._listening is not self._seat.session:
                self._seat.session.execute(verbatim(channel))
                self._listening = self._seat.session
            driver: Any = self._seat.session.connection.driver_connection
            # The driver's own waiting turns in circles for the last millisecond, which is most of what idling costs.
            if not select([driver.fileno()], [], [], seconds)[0]:
                return False
            return any(True for _ in driver.notifies(timeout=0))


def pause(idle: float) -> float:
    """Seconds until the next look, when nothing has happened for so long."""
    return min(max(idle / SHARE, SHORTEST), LONGEST)


def listening(seat: Seat) -> str | None:
    """The statement that makes the session listen on the channel called like the log; None where there are no channels."""
    from eventlog.sql.queries import statement

    dialect = seat.log.dialect
    return statement(dialect, "listen", channel=dialect.quoted(dialect.shortened(seat.log.names.table))) or None
