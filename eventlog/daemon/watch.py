"""Watches, while a publisher stands by, whether the one that has the lock does its work, and says so when it does not."""

from __future__ import annotations

from time import monotonic
from typing import Final

from sqlalchemy import Connection
from structlog.stdlib import BoundLogger

from eventlog.daemon.health import PublisherHealth, Standby, due_after
from eventlog.publisher.journal_view import View
from eventlog.publisher.memory import read_memory
from eventlog.publisher.new_rows import UnsealedRows
from eventlog.sources.log.lock import Holder, LogLock
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import EPOCH, OUTPUTS, Marks

COUNTED_ROWS: Final = 1_000
"""Rows are counted up to here: more of them say nothing more."""

PATIENCE_LEASES: Final = 3
"""An alarm is given when rows have waited for so many leases while nothing was settled."""

ALARM_SECONDS: Final = 3_600.0
"""Each further alarm comes after twice as long, and never later than this."""

Trace = tuple[str | None, ...]


class HolderWatch:
    """What one who stands by sees of the holder of a lock; `due` says that only rows whose time has come count."""

    def __init__(self, lock: LogLock, *, due: bool = False) -> None:
        self._lock = lock
        self._settings = LogSettings(handle_future_events=due)
        self._rows = UnsealedRows(lock.log, self._settings, None)
        self._patience = lock.lease * PATIENCE_LEASES
        self.forget()

    def forget(self) -> None:
        """Begins anew, because this publisher has had the lock itself."""
        self._trace: Trace | None = None
        self._waiting = 0
        self._moved = monotonic()
        self._next_count = 0.0
        self._next_alarm = 0.0
        self._pause = self._patience

    def look(self, post: str, vitals: PublisherHealth, journal: BoundLogger) -> None:
        """Report what the other publisher does; count rows once a lease."""
        began = monotonic()
        if began >= self._next_count:
            with self._lock.log.moment() as connection:
                self._waiting, trace = self._look(connection)
            if not self._waiting or trace != self._trace:
                self._moved, self._next_alarm, self._pause = monotonic(), 0.0, self._patience
            self._trace = trace
            self._next_count = due_after(began, self._lock.lease)
        stalled = monotonic() - self._moved if self._waiting else 0.0
        vitals.enter_standby(Standby(waiting=self._waiting, stalled_seconds=stalled))
        if stalled > self._patience and monotonic() >= self._next_alarm:
            seen = self._lock.seen
            # Nothing is known of one that nobody has seen.
            holder = ((seen and seen.holder) or Holder(token="")).describe()
            seconds = round(stalled, 1)
            journal.warning("standby_while_rows_wait", post=post, waiting=self._waiting, seconds=seconds, **holder)
            self._next_alarm = monotonic() + self._pause
            self._pause = min(2 * self._pause, ALARM_SECONDS)

    def _look(self, connection: Connection) -> tuple[int, Trace]:
        """Count rows not yet taken, or ahead of all foremost outputs; return also a trace of work.

        The lag of an output, or its wait, is no fault of the publisher.
        """
        log = self._lock.log
        memory = read_memory(connection, log, seen=True)
        numbers = self._rows.first_numbers(View(log, self._settings, self._rows, connection, memory), COUNTED_ROWS)
        first = max((output.position for output in memory.outputs.values()), default=0)
        foremost = [output.name for output in memory.outputs.values() if output.position == first]
        delivered = min((len(memory.planned.get(name, ())) for name in foremost), default=0)
        given = [(output.name, output.position, output.plans) for output in memory.outputs.values()]
        marks = Marks(log)
        # The first row that waits is another one once somebody has taken it.
        trace = (marks.get(connection, EPOCH), marks.get(connection, OUTPUTS), str(given), str(numbers[:1]))
        return len(numbers) + delivered, trace
