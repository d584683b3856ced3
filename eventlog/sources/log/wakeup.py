"""Notices waiting rows soon after they were committed, without a message from whoever wrote them.

A trigger that notifies in every transaction makes all commits wait for each other (measured: a third of the rate at
four clients). So the publisher looks by itself: often while there is work, seldom when there has been none for long.
Where the database can carry a message it listens besides, so that a notification makes it look at once.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from select import select
from threading import Event as Flag
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from eventlog.sql.access import in_our_words, verbatim
from eventlog.sql.queries import offers, statement

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sources.log.seen import SeenNumbers
    from eventlog.sql.log import Log

SHORTEST_SECONDS: Final = 0.001
LONGEST_SECONDS: Final = 0.15
"""Seconds between two looks. A look takes about a millisecond of a core, so that idling costs less than a percent."""

PAUSE_PART: Final = 10
"""A pause lasts a tenth of the time for which nothing has happened: that bounds both the delay and the effort."""

FRUITLESS_SECONDS: Final = 0.5
"""The pause after rows were seen that could not be read, for they wait behind others."""


DEAR_SECONDS: Final = 0.005
"""Seconds from which on a look is dear: there are many rows that may not be read, and it passes over each of them."""

PART: Final = 50
"""After a dear look none is made for so many times its own time, so that it takes a fiftieth of a core."""


class Wakeup:
    """Looks for waiting rows in a session of its own; `due` says that only rows whose time has come count.

    `seen` is what the reader of the log remembers of rows that wait behind others: they need not be looked at.
    """

    def __init__(self, log: Log, *, due: bool = False) -> None:
        self._log = log
        self._among = "among_due" if due else "among_all"
        self._channel = listening(log)
        self.seen: SeenNumbers | None = None
        self._session: Connection | None = None
        self._listens = False
        self._active = monotonic()
        self._fruitless = False
        self._since = 0.0
        self._next_look = 0.0
        self._deaf_until = 0.0

    def found(self) -> None:
        """Says that there was work: from now on it looks often again."""
        self._active = monotonic()
        self._fruitless = False

    def close(self) -> None:
        """Closes the session, which may be broken; another one is opened when it is needed."""
        session, self._session = self._session, None
        if session is not None:
            session.invalidate()
            session.close()

    def wait(self, seconds: float, stopped: Flag) -> bool:
        """Whether rows wait; returns at the latest after so many seconds or when it is stopped.

        A notification makes it look at once, but the next one is heard only after a while: whoever floods the channel
        does no more than double the looks.
        """
        end = monotonic() + seconds
        notified = False
        if self._fruitless:
            self._fruitless = False
            reading = monotonic() - self._since  # it passes over rows that may be very many
            notified = self._pause(min(max(FRUITLESS_SECONDS, PAUSE_PART * reading), seconds), stopped)
        while (left := end - monotonic()) > 0 and not stopped.is_set():
            found = (notified or monotonic() >= self._next_look) and self._looked()
            if notified:
                self._deaf_until = max(monotonic() + LONGEST_SECONDS, self._next_look)
            if found:
                self._fruitless = True  # until somebody says that there was work
                self._since = monotonic()
                return True
            rest = max(pause(monotonic() - self._active), self._next_look - monotonic())
            notified = self._pause(min(left, rest), stopped)
        return False

    def _looked(self) -> bool:
        """Looks, and says when to look again at the earliest if that was dear."""
        began = monotonic()
        found = self._anything()
        cost = monotonic() - began
        self._next_look = monotonic() + PART * cost if cost > DEAR_SECONDS and not found else 0.0
        return found

    def _anything(self) -> bool:
        with self._words():
            if self.seen:
                return self.seen.anything(self._opened())
            return bool(self._log.rows(self._opened(), self._log.query("anything_waiting", among=self._among)))

    def _pause(self, seconds: float, stopped: Flag) -> bool:
        """Whether somebody notified during the pause; anybody who may connect can do that, as often as he likes."""
        if self._channel is None or monotonic() < self._deaf_until:
            stopped.wait(seconds)
            return False
        return self._heard(seconds, self._channel)

    def _heard(self, seconds: float, channel: str) -> bool:
        """Whether the server said something within that time; the next look reads what."""
        with self._words():
            session = self._opened()
            driver: Any = session.connection.driver_connection
            if not self._listens:
                driver.add_notify_handler(lambda _: None)  # else the driver keeps all that nobody asks it for
                session.execute(verbatim(channel))
                self._listens = True
            # The driver's own waiting turns in circles for the last millisecond, which is most of what idling costs.
            return bool(select([driver.fileno()], [], [], seconds)[0])

    def _opened(self) -> Connection:
        """The session; what is asked in it costs no transaction."""
        if self._session is None:
            self._session = self._log.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            self._listens = False
        return self._session

    def _words(self) -> AbstractContextManager[None]:
        return in_our_words(self._log.engine, f"The event log {self._log.name}")


def pause(idle: float) -> float:
    """Seconds until the next look, when nothing has happened for so long."""
    return min(max(idle / PAUSE_PART, SHORTEST_SECONDS), LONGEST_SECONDS)


def listening(log: Log) -> str | None:
    """The statement that makes a session listen on the channel called like the log; None where there are no channels."""
    dialect = log.dialect
    if not offers(dialect, "listen"):
        return None
    return statement(dialect, "listen", channel=dialect.quoted(dialect.shortened(log.names.table)))
