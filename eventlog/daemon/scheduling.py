"""The time between two cycles: how long it lasts, what ends it early, and what is said meanwhile.

Waiting goes by the monotonic clock, so that a clock that jumps neither hurries nor delays anything.
Only times of day go by the clock on the wall, which is looked at again and again.

Waiting rows are noticed soon after they were committed, without a message from whoever wrote them.
A trigger that notifies in every transaction makes all commits wait for each other (measured: a
third of the rate at four clients). So the publisher looks by itself: often while there is work,
seldom when there has been none for long. Where the database can carry a message it listens besides,
so that a notification makes it look at once.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from select import select
from threading import Event as Flag
from time import monotonic
from typing import Any, Final

from sqlalchemy import Connection
from structlog.stdlib import BoundLogger

from eventlog.config.settings import PublisherConfig
from eventlog.config.timetable import read_times
from eventlog.core.backoff import Backoff
from eventlog.core.errors import MachineError, OccupiedError, SinkError, SourceError
from eventlog.daemon.health import PART, PublisherHealth
from eventlog.delivery.output import Output
from eventlog.publisher.reader import JournalReader
from eventlog.sql.access import in_our_words, prepare_session, verbatim
from eventlog.sql.dialect import offers, statement
from eventlog.sql.log import Log
from eventlog.sql.pooler import IS_POOLED

FAILURES: Final = Backoff(first=0.5, longest=30.0)
"""How long whoever failed waits, when trying again makes sense."""


class Failures:
    """Failures without a success between them, and how long to wait after each."""

    def __init__(self) -> None:
        self.count = 0

    def another(self) -> float:
        """Count a failure; return the seconds to wait."""
        self.count += 1
        return FAILURES.delay(self.count, secrets.SystemRandom().random())

    def report(self, error: MachineError, vitals: PublisherHealth, journal: BoundLogger) -> float:
        """Report a failure; return the seconds to wait."""
        seconds = self.another()
        vitals.note_failure(error)
        journal.warning("failed", error=str(error), attempt=self.count, again_in=round(seconds, 1))
        return seconds


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
        # With times of day rows wait for the next one, so nobody looks for them between.
        self._wakeup = None if self._table.times else wakeup
        self._stopped = stopped
        self._pulse = pulse
        self._now = now
        self._seen = now()

    @property
    def by_time_of_day(self) -> bool:
        """Return True if cycles only begin at times of day."""
        return bool(self._table.times)

    @property
    def looks(self) -> bool:
        """Whether it is looked at once whether rows wait."""
        return self._wakeup is not None

    def note_work(self) -> None:
        """Note a cycle with rows."""
        if self._wakeup is not None:
            self._wakeup.note_work()

    def until_next(self, each: Callable[[], object], *, later: float | None = None, all_held: bool = False) -> None:
        """Wait for the next cycle; `each` is called meanwhile, and returns True to end the wait.

        Rows are retried `later`, in seconds. `all_held`: until then nothing is read.
        """
        if self.by_time_of_day:
            self._until_time_of_day(each, None if later is None else monotonic() + later)
        elif later is not None and all_held:
            self.for_seconds(later, each)
        else:
            # New rows may come before rows are retried, so it looks after each interval.
            seconds = self._interval if later is None else min(later, self._interval)
            self.for_seconds(seconds, each, alert=True)

    def for_seconds(self, seconds: float, each: Callable[[], object] = lambda: None, *, alert: bool = False) -> None:
        """Wait so many seconds; when `alert`, new rows end the wait."""
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0 and not self._stopped.is_set():
            if self._step(left, each, alert=alert):
                return

    def _until_time_of_day(self, each: Callable[[], object], end: float | None) -> None:
        while not self._stopped.is_set() and (end is None or monotonic() < end):
            now = self._now()
            # Kept over turns: a time of day that passed during one is due at once.
            since, self._seen = self._seen, now
            if self._table.was_due(since, now):
                return
            left = (self._table.next_after(now) - now).total_seconds()
            # In short steps, for the clock on the wall may be set meanwhile.
            if self._step(max(0.0, left), each):
                return

    def _step(self, left: float, each: Callable[[], object], *, alert: bool = False) -> bool:
        """Wait for a moment and show the loop is alive; return True if the whole wait is over."""
        seconds = min(left, LOOK_SECONDS)
        if alert and self._wakeup is not None:
            if self._wakeup.wait(seconds, self._stopped):
                return True
        else:
            self._stopped.wait(seconds)
        self._pulse()
        return bool(each())


class Heartbeat:
    """A document that says that all is well, when there has been nothing else to say for some time.

    It goes to every output whose format can, after so many idle seconds; 0 is never. Any document
    counts as a beat.
    """

    def __init__(self, outputs: Sequence[Output], seconds: float) -> None:
        self._outputs = [output for output in outputs if output.format.heartbeat() is not None]
        self._seconds = seconds if self._outputs else 0.0
        self._last = monotonic()

    def postpone(self) -> None:
        """Note a published document."""
        self._last = monotonic()

    def beat(
        self,
        confirm: Callable[[], None],
        failed: Callable[[str, SinkError], None],
        busy: Collection[str] = (),
    ) -> bool:
        """Send a heartbeat if it is due; return True if any output got it.

        `confirm` fails when another publisher has the lock; `failed` gets the name of each output
        that refuses it. `busy` outputs are left out: a turn writes to them, or they fail.
        """
        if not self._seconds or monotonic() < self._last + self._seconds:
            return False
        confirm()
        # First: a failure is no reason to beat again at once.
        self.postpone()
        beaten = False
        for output in self._outputs:
            document = output.format.heartbeat()
            if document is None or output.name in busy:
                continue
            try:
                output.sink.commit("", [document])
            except SinkError as error:
                failed(output.name, error)
            else:
                beaten = True
        return beaten


SHORTEST_SECONDS: Final = 0.001
LONGEST_SECONDS: Final = 0.15
"""Seconds between two looks. A look takes about a millisecond of a core, so that idling costs less than a percent."""

PAUSE_PART: Final = 10
"""A pause lasts a tenth of the time for which nothing has happened: that bounds both the delay and the effort."""

FRUITLESS_SECONDS: Final = 0.5
"""The pause after rows were seen that could not be read, for they wait behind others."""

DEAR_SECONDS: Final = 0.005
"""Seconds from which on a look is dear: there are many rows that may not be read, and it passes over each of them."""


REFUSED_LOOKS: Final = 2
"""So many looks are refused before a warning: after the first one a turn reports what is wrong, if it fails as well."""


class Wakeup:
    """Looks for waiting rows in a session of its own; with `due` only for rows whose time has come.

    `seen` knows which rows others have taken, or wait for a reason: they need not be looked at. `told` gets why looks
    are refused, once, and None when they are not any more.

    Law: a look that fails ends a wait and nothing else, since the turn says what is wrong; the next one is made after a
    rest that grows, whatever happens meanwhile.
    """

    def __init__(self, log: Log, *, due: bool = False, told: Callable[[str | None], None] = lambda _: None) -> None:
        self._log = log
        self.told = told
        self._refusals = Failures()
        self._among = "among_due" if due else "among_all"
        self._channel: str | None = None
        """What makes a session listen on the channel of the log; None where there are no channels."""
        if offers(log.dialect, "listen"):
            channel = log.dialect.quote(log.dialect.shorten_name(log.names.table))
            self._channel = statement(log.dialect, "listen", channel=channel)
        self.seen: JournalReader | None = None
        self._session: Connection | None = None
        self._active = monotonic()
        self._fruitless_since: float | None = None
        """When rows were seen; None as soon as somebody says that there was work."""
        self._next_look = 0.0
        self._deaf_until = 0.0

    def note_work(self) -> None:
        """Note work: from now on look often again."""
        self._active = monotonic()
        self._fruitless_since = None

    def close(self) -> None:
        """Close the session, perhaps broken; another one is opened when needed."""
        session, self._session = self._session, None
        if session is not None:
            # A broken connection must not go back into the pool.
            session.invalidate()
            session.close()

    def wait(self, seconds: float, stopped: Flag) -> bool:
        """Wait for rows, for so many seconds at most or until stopped; return True if some wait.

        A notification makes it look at once, but the next one is heard only after a while: a flood on the
        channel does no more than double the looks.
        """
        end, notified = monotonic() + seconds, False
        if self._fruitless_since is not None:
            # Somebody has read in vain since, and passed over rows that may be very many.
            reading = monotonic() - self._fruitless_since
            self._fruitless_since = None
            notified = self._pause(min(max(FRUITLESS_SECONDS, PAUSE_PART * reading), seconds), stopped)
        while (left := end - monotonic()) > 0 and not stopped.is_set():
            if notified or monotonic() >= self._next_look:
                rows_wait = self._look()
                if notified:
                    self._deaf_until = max(monotonic() + LONGEST_SECONDS, self._next_look)
                if rows_wait:
                    self._fruitless_since = monotonic()
                    return True
            rest = max(pause(monotonic() - self._active), self._next_look - monotonic())
            notified = self._pause(min(left, rest), stopped)
        return False

    def _look(self) -> bool:
        """Look for rows; return True also where that is refused. After one that was dear the next comes later."""
        began = monotonic()
        try:
            found = self._anything()
        except OccupiedError:
            raise
        except SourceError as error:
            self.close()  # perhaps it is the session
            self._next_look = self._deaf_until = monotonic() + self._refusals.another()
            if self._refusals.count == REFUSED_LOOKS:
                self.told(error.message)
            return True
        if self._refusals.count >= REFUSED_LOOKS:
            self.told(None)
        self._refusals.count = 0
        cost = monotonic() - began
        self._next_look = monotonic() + PART * cost if cost > DEAR_SECONDS and not found else 0.0
        return found

    def _anything(self) -> bool:
        with self._words():
            if self.seen is not None and self.seen.places:
                return self.seen.anything(self._open_session())
            return bool(self._log.rows(self._open_session(), self._log.query("anything_waiting", among=self._among)))

    def _pause(self, seconds: float, stopped: Flag) -> bool:
        """Pause; return True if notified meanwhile. Anybody who may connect can notify."""
        if self._channel is None or monotonic() < self._deaf_until:
            stopped.wait(seconds)
            return False
        try:
            return self._heard(seconds)
        except SourceError:
            self.close()
            return True  # the look that follows counts what is wrong

    def _heard(self, seconds: float) -> bool:
        """Listen to the server for so long; return True if it said something: the next look reads it."""
        with self._words():
            driver: Any = self._open_session().connection.driver_connection
            # The driver's own waiting spins for the last millisecond: most of what idling costs.
            return bool(select([driver.fileno()], [], [], seconds)[0])

    def _open_session(self) -> Connection:
        """Return the session, which listens; queries in it cost no transaction."""
        if self._session is None:
            self._session = self._log.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            prepare_session(self._session, self._log.dialect)
            if IS_POOLED in self._session.info:
                self._channel = None  # whose session would hear it?
            if self._channel is not None:
                # Else the driver keeps all that nobody asks it for.
                driver: Any = self._session.connection.driver_connection
                driver.add_notify_handler(lambda _: None)
                self._session.execute(verbatim(self._channel))
        return self._session

    def _words(self) -> AbstractContextManager[None]:
        return in_our_words(self._log.engine, f"The event log {self._log.name}")


def pause(idle: float) -> float:
    """Return seconds until the next look, by the time without any change."""
    return min(max(idle / PAUSE_PART, SHORTEST_SECONDS), LONGEST_SECONDS)
