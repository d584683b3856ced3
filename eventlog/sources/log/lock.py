"""One publisher a log: who holds the log's lock publishes, everybody else stands by.

The lock is a lease: the mark `publisher` says until when, by the database's clock, and who has it. It is taken only
when nobody has it, when it has run out, or when its holder is certainly dead; whoever takes it gets a higher epoch.
Law: whoever has lost the lock settles nothing more. Each transaction of a holder checks the mark and keeps others from
changing it before the commit, so that one who has not noticed yet is stopped by the database.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from msgspec import Struct

from eventlog.core.errors import DataError, OccupiedError
from eventlog.core.seams import Tenure
from eventlog.sources.log.holder import Holder, is_dead, new_token, read_holder, read_moment
from eventlog.sources.log.lease import Lease, seconds_up
from eventlog.sources.marks import EPOCH, LOG, Marks, next_epoch
from eventlog.sql.connect import place_of
from eventlog.sql.queries import offers

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.log import Log

UNCHANGED_LEASES: Final = 2
"""A mark that nobody has renewed for so many leases is nobody's, whatever the database's clock says."""


class Sight(Struct, frozen=True, kw_only=True):
    """What a look at the lock finds: the mark if there is one, and the database's clock."""

    mark: str | None
    now: dt.datetime

    @property
    def holder(self) -> Holder | None:
        """Who has the lock, or had it when nobody has taken it since."""
        return None if self.mark is None else read_holder(self.mark)


def look_at(log: Log) -> Sight:
    """Reads who has the lock of a log, without waiting for anybody."""
    with log.transaction(lone=True) as connection:
        [(mark, now)] = log.rows(connection, log.query("lock_read"))
    moment = read_moment(str(now))
    if moment is None:
        raise DataError(
            f"The database of the event log {log.name} says {now!r} when it is asked for the time.",
            hint="Use the driver that eventlog's extra for this database brings.",
        )
    return Sight(mark=None if mark is None else str(mark), now=moment)


class LogLock:
    """The lock of one log, as one process sees it. `lease` is in seconds; it is renewed while `alive` says so."""

    def __init__(self, log: Log, lease: float, alive: Callable[[], bool] = lambda: True) -> None:
        self.log = log
        self.lease = lease
        self._alive = alive
        self.token = ""
        self.tenure: Tenure | None = None
        self.seen: Sight | None = None
        self._unchanged_since = 0.0
        self._kept: Lease | None = None

    @property
    def taken(self) -> bool:
        """Whether this process has it, as far as it knows."""
        return self.tenure is not None

    def take(self) -> bool:
        """Whether this process has the lock now; OccupiedError when it had it and has learnt that it lost it."""
        if self.tenure is not None:
            if self._kept is None or self._kept.lost:
                self._lose()
            return True
        sight = self.look()
        if self._may_be_taken(sight):
            self._enter(sight)
        return self.taken

    def look(self) -> Sight:
        """Reads who has the lock; `seen` keeps what was found."""
        sight = look_at(self.log)
        if self.seen is None or self.seen.mark != sight.mark:
            self._unchanged_since = seconds_up()
        self.seen = sight
        return sight

    def confirm(self, mark: str | None) -> None:
        """OccupiedError when the mark, as it was read, is somebody else's."""
        if self.taken and mark is not None and mark.endswith(f" {self.token}"):
            return
        self._lose()

    def confirm_lease(self) -> None:
        """OccupiedError when somebody else has the lock; asks the database only when the lease may have run out.

        To be called before anything is written to an output, and never inside a transaction that has locked the mark.
        When it returns, a third of the lease is left at least.
        """
        if self.tenure is None or self._kept is None or not (self._kept.fresh or self._kept.renew()):
            self._lose()

    def assure(self, connection: Connection) -> None:
        """OccupiedError when somebody else has the lock; nobody takes it before the caller's transaction ends."""
        if not self.taken or not self._touch(connection, self.token):
            self._lose()

    def mark(self, connection: Connection, name: str, value: str, *, soon: bool = False) -> None:
        """Makes or replaces a mark if this process still has the lock, else OccupiedError.

        `soon` lets the caller's transaction return before it is on disk; the next one takes it along.
        """
        statement = self.log.query("lock_mark_soon" if soon else "lock_mark")
        values = {"name": name, "value": value, "token": self.token}
        if not self.taken or connection.execute(statement, values).rowcount == 0:
            self._lose()

    def take_in_hand(self, connection: Connection, value: str, holding: str) -> bool:
        """Notes a batch unless the lock is lost, or rows were held or released since the mark `holding` was read.

        The caller's transaction returns before it is on disk.
        """
        values = {"value": value, "holding": holding, "token": self.token}
        return self.taken and connection.execute(self.log.query("lock_take_in_hand"), values).rowcount > 0

    def leave(self) -> None:
        """Gives the lock to whoever waits for it."""
        held = self.taken
        self.drop()
        if held:
            with self.log.transaction() as connection:
                connection.execute(self.log.query("lock_leave"), {"token": self.token})

    def drop(self) -> None:
        """Renews the lease no more, without a word to a database that may be away; this process may take it again."""
        self.tenure = None
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.stop()

    def _may_be_taken(self, sight: Sight) -> bool:
        holder = sight.holder
        if holder is None or holder.token == self.token:
            return True
        if holder.is_over(sight.now) or (holder.process is not None and is_dead(holder.process)):
            return True
        return seconds_up() - self._unchanged_since > UNCHANGED_LEASES * holder.lease

    def _enter(self, sight: Sight) -> None:
        """Takes the lock, unless somebody was quicker or works with the mark at this very moment."""
        token, sent = new_token(sight.now, self.lease), seconds_up()
        with self.log.transaction() as connection:
            if not self._replaces(connection, sight.mark, token):
                return
            tenure = self._new_tenure(connection, sight.now)
        self.token, self.tenure = token, tenure
        self._kept = Lease(self.lease, sent, lambda: self._renewed(token), self._alive)

    def _replaces(self, connection: Connection, former: str | None, token: str) -> bool:
        """Whether the mark is ours now; the row is locked until the transaction ends."""
        values = {"token": token, "lease": self.lease}
        if former is None:
            connection.execute(self.log.query("lock_make", until="lock_until"), values)
        else:
            grasps = offers(self.log.dialect, "lock_grasp")
            if grasps and not self.log.rows(connection, self.log.query("lock_grasp")):
                return False
            connection.execute(self.log.query("lock_replace", until="lock_until"), {**values, "former": former})
        [(mark, _)] = self.log.rows(connection, self.log.query("lock_read"))
        return str(mark).endswith(f" {token}")

    def _new_tenure(self, connection: Connection, now: dt.datetime) -> Tenure:
        marks = Marks(self.log)
        identity = marks.get(connection, LOG)
        if identity is None:
            identity = str(uuid4())
            marks.set(connection, LOG, identity)
        epoch = next_epoch(marks.get(connection, EPOCH), now)
        marks.set(connection, EPOCH, str(epoch))
        return Tenure(log=identity, name=f"{self.log.name} in {place_of(self.log.engine.url)}", epoch=epoch)

    def _touch(self, connection: Connection, token: str, *, soon: bool = True) -> bool:
        statement = self.log.query("lock_keep_soon" if soon else "lock_keep", until="lock_until")
        return connection.execute(statement, {"token": token, "lease": self.lease}).rowcount > 0

    def _renewed(self, token: str) -> bool:
        with self.log.transaction() as connection:
            return self._touch(connection, token, soon=False)

    def _lose(self) -> None:
        self.tenure = None
        if self._kept is not None:
            self._kept.end()  # not waited for: it may wait for the transaction in which this is noticed
        hint = "This one stands by and publishes nothing until that one ends."
        raise OccupiedError(f"Another publisher works on the event log {self.log.name}.", hint=hint)
