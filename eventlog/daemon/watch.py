"""Watches, while a publisher stands by, whether the one that has the lock does its work, and says so when it does not."""

from __future__ import annotations

from time import monotonic
from typing import Final

from structlog.stdlib import BoundLogger

from eventlog.daemon.vitals import PublisherHealth, Standby
from eventlog.sources.log.left_out import EVER
from eventlog.sources.log.lock import Holder, LogLock, told_moment
from eventlog.sources.marks import EPOCH, IN_HAND, Marks, any_owed, read_owed

COUNTED_ROWS: Final = 1_000
"""Rows are counted up to here: more of them say nothing more."""

PATIENCE_LEASES: Final = 3
"""An alarm is given when rows have waited for so many leases while nothing was settled."""

ALARM_SECONDS: Final = 3_600.0
"""Each further alarm comes after twice as long, and never later than this."""

PART: Final = 50
"""Counting that takes long is done seldom: it takes a fiftieth of the time at most."""

NOBODY: Final = {"except": "except_none"}
"""No object is passed over."""

Trace = tuple[str | None, ...]


class HolderWatch:
    """What one who stands by sees of the holder of a lock; `due` says that only rows whose time has come count."""

    def __init__(self, lock: LogLock, *, due: bool = False) -> None:
        self._lock = lock
        self._among = "among_due" if due else "among_all"
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
        """Tells what it sees; rows are counted once a lease."""
        if monotonic() >= self._next_count:
            self._measure()
        stalled = monotonic() - self._moved if self._waiting else 0.0
        sight = self._lock.seen
        seen = _standby(None if sight is None else sight.holder, self._waiting, stalled)
        vitals.stands_by(seen)
        if stalled > self._patience and monotonic() >= self._next_alarm:
            self._alarm(post, seen, journal)

    def _measure(self) -> None:
        began = monotonic()
        log, marks = self._lock.log, Marks(self._lock.log)
        with log.transaction() as connection:
            self._waiting = int(
                log.rows(connection, log.query("count_some", among=self._among), {"limit": COUNTED_ROWS})[0][0]
            )
            owed = any_owed(read_owed(marks.all(connection)).values())
            asked = log.query("oldest_waiting", among=self._among, unread="unread_none", kept="kept_ready", **NOBODY)
            beyond = (
                owed.parts[-1][1] if owed else EVER
            )  # what is kept for outputs that lag is nobody's fault who publishes
            oldest = log.rows(connection, asked, {"beyond": beyond, "limit": 1}) if self._waiting else []
            if owed and not oldest:
                self._waiting = 0
            trace = (marks.get(connection, IN_HAND), marks.get(connection, EPOCH), str(oldest[:1]))
        if not self._waiting or trace != self._trace:
            self._moved, self._next_alarm, self._pause = monotonic(), 0.0, self._patience
        self._trace = trace
        self._next_count = monotonic() + max(self._lock.lease, PART * (monotonic() - began))

    def _alarm(self, post: str, seen: Standby, journal: BoundLogger) -> None:
        journal.warning(
            "standby_while_rows_wait",
            post=post,
            waiting=seen.waiting,
            seconds=round(seen.stalled_seconds, 1),
            host=seen.host,
            pid=seen.pid,
            since=seen.since,
            lease_until=seen.lease_until,
        )
        self._next_alarm = monotonic() + self._pause
        self._pause = min(2 * self._pause, ALARM_SECONDS)


def _standby(holder: Holder | None, waiting: int, stalled: float) -> Standby:
    if holder is None:
        return Standby(waiting=waiting, stalled_seconds=stalled)
    return Standby(
        host=holder.host,
        pid=holder.pid,
        since=told_moment(holder.since),
        lease_until=told_moment(holder.until),
        waiting=waiting,
        stalled_seconds=stalled,
    )
