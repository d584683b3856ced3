"""One publisher a log: who holds the log's lock publishes, everybody else stands by.

The lock is a lease: the mark `publisher` says until when, by the database's clock, and who has it.
It is taken only when nobody has it, when it has run out, or when its holder is certainly dead;
whoever takes it gets a higher epoch. Law: whoever has lost the lock settles nothing more. Each
transaction of a holder checks the mark and keeps others from changing it before the commit, so that
one who has not noticed yet is stopped by the database.

A thread renews the lease, because a batch may take longer than a lease lasts. The mark is `UNTIL
TOKEN`, times by the database's clock in UTC. The token is the JSON of a `LockClaim`, and nobody else ever
has the same.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Annotated, Any, Final
from uuid import uuid4

from msgspec import Meta, Struct
from sqlalchemy import Connection

from eventlog.core.errors import DataError, OccupiedError, SourceError
from eventlog.core.seams import Tenure
from eventlog.core.times import moment
from eventlog.sources.marks import (
    EPOCH,
    HOLDING,
    LOG,
    WRITTEN,
    Marks,
    as_text,
    next_epoch,
    note_change,
    null_if_empty,
    value_of,
)
from eventlog.sql.connect import address_of, idle_seconds
from eventlog.sql.dialect import offers
from eventlog.sql.log import Log

UNCHANGED_LEASES: Final = 2
"""A mark that stays as it is for so many leases is nobody's, whatever the database's clock says."""


class Sight(Struct, frozen=True, kw_only=True):
    """What a look at the lock finds: the mark if there is one, and the database's clock."""

    mark: str | None
    now: dt.datetime

    @property
    def holder(self) -> Holder | None:
        """Return the holder of the lock, or the last one."""
        if self.mark is None:
            return None
        return read_holder(self.mark)


def look_at(log: Log) -> Sight:
    """Reads who has the lock of a log, without waiting for anybody."""
    with log.transaction(lone=True) as connection:
        [(mark, now)] = log.rows(connection, log.query("lock_read"))
    database_time = moment(str(now))
    if database_time is None:
        raise DataError(
            f"The database of the event log {log.name} says {now!r} when it is asked for the time.",
            hint="Use the driver that eventlog's extra for this database installs.",
        )
    return Sight(mark=None if mark is None else str(mark), now=database_time)


class LogLock:
    """The lock of one log, as one process sees it. `lease` is in seconds, renewed while `alive`."""

    def __init__(self, log: Log, lease: float, alive: Callable[[], bool] = lambda: True) -> None:
        self.log = log
        self.lease = lease
        self._alive = alive
        self.token = self._asked = ""
        """With which this process has the lock, and with which it has asked for it last: it may have got no answer."""
        self.tenure: Tenure | None = None
        self.seen: Sight | None = None
        self._unchanged_since = 0.0
        self._kept: Lease | None = None
        self._enters_at_once = offers(log.dialect, "journal_enter")
        self._notes_apart = offers(log.dialect, "journal_note")

    @property
    def taken(self) -> bool:
        """Return True if this process holds the lock, as far as it knows."""
        return self.tenure is not None

    def take(self, admit: Callable[[Connection], None] = lambda _: None) -> bool:
        """Take the lock if it is free; OccupiedError when this process had it and has lost it.

        `admit` is called in the transaction that takes it, and raises where it may not be taken.
        """
        # Whichever thread has learnt it: it is not taken again before `drop`, for other threads may
        # still be at what they have begun with it.
        if self._kept is not None and (self.tenure is None or self._kept.lost):
            self._lose()
        if self.tenure is not None:
            return True
        sight = self.look()
        if self._may_be_taken(sight):
            self._enter(sight, admit)
        return self.tenure is not None

    def look(self) -> Sight:
        """Reads who has the lock; `seen` keeps what was found."""
        sight = look_at(self.log)
        if self.seen is None or self.seen.mark != sight.mark:
            self._unchanged_since = seconds_up()
        self.seen = sight
        return sight

    def confirm_lease(self) -> None:
        """Raise OccupiedError if another publisher has the lock; else a third of the lease is left.

        Call it before writing to an output, never in a transaction that locks the mark: the renewal
        would wait for it.
        """
        # The database is asked only when the lease may have run out.
        if self.tenure is None or self._kept is None or not (self._kept.fresh or self._kept.renew()):
            self._lose()

    def assure(self, connection: Connection) -> None:
        """Raise OccupiedError if another publisher has the lock; nobody takes it in this
        transaction.
        """
        if not self.taken or not self._touch(connection, self.token):
            self._lose()

    def enter(self, connection: Connection, *, soon: bool, written: str) -> tuple[str, str]:
        """Lock the mark `holding` and the lease after it; return what `holding` holds, and what
        `written` held until this transaction, which puts its own text there.

        OccupiedError as `assure`. With `soon` the caller's transaction may return before it is on
        disk; the next one takes it along.
        """
        # In this order everywhere: operators lock `holding` too, and two orders would deadlock.
        if self._enters_at_once:
            values = {"token": self.token, "lease": self.lease, "soon": soon, "written": written}
            query = self.log.query("journal_enter", until="lock_until", durable="durable")
            marks = self.log.rows(connection, query, values)
            kept = bool(marks)
        else:
            marks = self.log.rows(connection, self.log.query("journal_lock"))
            kept = self._touch(connection, self.token)
        # Somebody has deleted one of the marks: who takes the lock next makes it anew.
        if self.tenure is None or not kept or not marks or None in marks[0]:
            self._lose()
        if self._notes_apart:  # elsewhere it was one statement
            self.log.execute(connection, self.log.query("journal_note"), {"value": written})
        [(holding, former)] = marks
        return str(holding), str(former)

    def mark(self, connection: Connection, name: str, value: str, *, soon: bool = False) -> None:
        """Makes or replaces a mark; OccupiedError as `assure`, and `soon` as in `enter`."""
        log, values = self.log, {"name": name, "value": null_if_empty(value), "token": self.token, "soon": soon}
        kept = self.taken
        # Elsewhere the statement that makes a mark locks the row of the lease by itself.
        if kept and offers(log.dialect, "lock_hold"):
            kept = bool(log.rows(connection, log.query("lock_hold"), {"token": self.token}))
        if not kept or log.execute(connection, log.query("lock_mark", durable="durable"), values) == 0:
            self._lose()

    def leave(self) -> None:
        """Gives the lock to whoever waits for it."""
        held = self.taken
        self.drop()
        if held:
            with self.log.transaction() as connection:
                connection.execute(self.log.query("lock_leave"), {"token": self.token})

    def drop(self) -> None:
        """Renews the lease no more, without a word to a database that may be away."""
        self.tenure = None
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.stop()

    def _may_be_taken(self, sight: Sight) -> bool:
        holder = sight.holder
        if holder is None or holder.token in (self.token, self._asked):
            return True
        if holder.is_over(sight.now) or (holder.claim is not None and is_dead(holder.claim.process)):
            return True
        # By this machine's clock: if the database's was set back, the mark would last for hours.
        return seconds_up() - self._unchanged_since > UNCHANGED_LEASES * holder.lease

    def _enter(self, sight: Sight, admit: Callable[[Connection], None]) -> None:
        """Takes the lock, unless somebody was quicker or works with the mark at this very moment."""
        # Noted before the statement is sent: so the lease ends here before it ends there.
        token, sent = new_token(sight.now, self.lease), seconds_up()
        self._asked = token
        with self.log.transaction() as connection:
            self.log.make_durable(connection)
            if not self._replaces(connection, sight.mark, token):
                return
            admit(connection)
            marks = Marks(self.log)
            identity = marks.get(connection, LOG)
            if identity is None:
                identity = str(uuid4())
                marks.set(connection, LOG, identity)
            # Whoever settles locks this mark, so there must be one.
            if marks.get(connection, HOLDING) is None:
                note_change(connection, self.log)
            marks.set(connection, WRITTEN, secrets.token_hex(8))
            epoch = next_epoch(marks.get(connection, EPOCH), sight.now)
            marks.set(connection, EPOCH, str(epoch))
        name = f"{self.log.name} in {address_of(self.log.engine.url)}"
        self.token, self.tenure = token, Tenure(log=identity, name=name, epoch=epoch)

        def renew() -> bool:
            with self.log.transaction(lone=True) as connection:
                return self._touch(connection, token)

        self._kept = Lease(self.lease, sent, renew, self._alive)

    def _replaces(self, connection: Connection, former: str | None, token: str) -> bool:
        """Replace the mark by ours; True if that succeeded. Its row stays locked until the end."""
        values = {"token": token, "lease": self.lease}
        if former is None:
            connection.execute(self.log.query("lock_make", until="lock_until"), values)
        else:
            grasps = offers(self.log.dialect, "lock_grasp")
            if grasps and not self.log.rows(connection, self.log.query("lock_grasp")):
                # A holder may have been silent for longer than the server lets it.
                if offers(self.log.dialect, "lock_silent"):
                    silence = {"seconds": idle_seconds(self.lease)}
                    self.log.rows(connection, self.log.query("lock_silent"), silence)
                return False
            query = self.log.query("lock_replace", until="lock_until")
            connection.execute(query, {**values, "former": former})
        # Read back: where somebody was quicker the statement has changed nothing.
        [(mark, _)] = self.log.rows(connection, self.log.query("lock_read"))
        return str(mark).endswith(f" {token}")

    def _touch(self, connection: Connection, token: str) -> bool:
        query = self.log.query("lock_keep", until="lock_until")
        return self.log.execute(connection, query, {"token": token, "lease": self.lease}) > 0

    def _lose(self) -> None:
        self.tenure = None
        # Not waited for: a renewal may wait for the transaction in which this is noticed.
        if self._kept is not None:
            self._kept.end()
        hint = "This one is on standby and publishes nothing until that one ends."
        raise OccupiedError(f"Another publisher works on the event log {self.log.name}.", hint=hint)


_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

RENEWALS: Final = 3
"""So often it is renewed while it lasts, and it counts as fresh while such a part of it is left."""


def seconds_up() -> float:
    """Return seconds of a clock nobody can set, one that counts the machine's sleep if there is
    one.
    """
    return time.clock_gettime(_CLOCK)


class Lease:
    """Lasts `seconds` from the moment before the last renewal was sent.

    `renew` says whether it still was ours; what fails with a SourceError is tried again the next
    time. The thread renews nothing while `alive` says that whoever needs the lease does not move:
    somebody else may have it then.
    """

    def __init__(
        self,
        seconds: float,
        sent: float,
        renew: Callable[[], bool],
        alive: Callable[[], bool] = lambda: True,
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
        """Return True if the lease still lasts a while, judged without a query."""
        return not self.lost and self._ends - seconds_up() > self._seconds / RENEWALS

    def renew(self) -> bool:
        """Renews it now; False when it was lost."""
        sent = seconds_up()
        if self._renew():
            # Two threads may renew at the same time, and end in the other order.
            self._ends = max(self._ends, sent + self._seconds)
        else:
            self.lost = True
        return not self.lost

    def end(self) -> None:
        """Begins no further renewal. None is waited for: it may need what the caller has locked."""
        self._stopped.set()

    def stop(self) -> None:
        """Ends the renewals; one that is under way is waited for as long as the lease lasts."""
        self.end()
        self._thread.join(self._seconds)

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds / RENEWALS):
            try:
                if self._alive() and not self.renew():
                    return
            except SourceError:
                # A lock, or a database that is away: the next renewal may come in time.
                continue


LONGEST_LEASE_SECONDS: Final = 3_601.0
"""A lease that ends further off than any lease lasts was given before the clock was set back."""

_GONE: Final = frozenset("ZX")
"""States of a process that has ended, though nobody has taken notice of its end yet."""

_other = re.compile(r"[^A-Za-z0-9.-]")


class Process(Struct, frozen=True, array_like=True):
    """A process that no other one, before or after it, equals; what is not known is empty."""

    host: str
    pid: Annotated[int, Meta(ge=1, lt=10**9)]
    boot: str = ""
    space: str = ""
    """Its namespace of process ids."""
    started: str = ""

    @property
    def machine(self) -> tuple[str, str, str] | None:
        """Return where its pid means this process alone; None if not enough is known to see it end."""
        return (self.host, self.boot, self.space) if self.boot and self.space and self.started else None


class LockClaim(Struct, frozen=True, array_like=True):
    """What a token says: who has had the lock since when, and for how many seconds a lease lasts."""

    since: dt.datetime
    lease: float
    process: Process
    random: str


class Holder(Struct, frozen=True, kw_only=True):
    """Who holds a lock: `until` is None where nobody can read it, and so is a claim that is none of ours."""

    token: str
    until: dt.datetime | None = None
    claim: LockClaim | None = None

    @property
    def lease(self) -> float:
        """Return how many seconds its lease lasts, at most."""
        return LONGEST_LEASE_SECONDS if self.claim is None else self.claim.lease

    def is_over(self, now: dt.datetime) -> bool:
        """Return True if the lease has expired by the database's clock."""
        if self.until is None:
            return True
        # One that ends further off than any lease lasts speaks of a clock that was set back since.
        return not now <= self.until <= now + dt.timedelta(seconds=LONGEST_LEASE_SECONDS)

    def describe(self) -> dict[str, Any]:
        """Return its host and pid, since when it has the lock, and until when its lease lasts."""
        claim = self.claim
        return {
            "host": claim and claim.process.host,
            "pid": claim and claim.process.pid,
            "since": claim and claim.since.isoformat(timespec="milliseconds"),
            "lease_until": self.until and self.until.isoformat(timespec="milliseconds"),
        }


def new_token(since: dt.datetime, lease: float) -> str:
    """Make a new token of this process."""
    return as_text(LockClaim(since, lease, this_process(), secrets.token_hex(8)))


def read_holder(mark: str) -> Holder:
    """Reads the mark; one that is none of ours may still say until when."""
    until, _, token = mark.partition(" ")
    return Holder(token=token, until=moment(until), claim=value_of(token, LockClaim))


def this_process() -> Process:
    """Describe this process, as far as the machine allows."""
    pid, space = os.getpid(), ""
    with suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    # Statements compare the token by LIKE, to which some characters mean something else.
    host = _other.sub("-", socket.gethostname())
    return Process(host, pid, _read("/proc/sys/kernel/random/boot_id"), space, _stat(pid)[1])


def is_dead(process: Process) -> bool:
    """Return True if the process has certainly ended: it ran on this machine since its last boot."""
    if process.machine is None or process.machine != this_process().machine:
        return False
    try:
        # No signal: it says whether there is one, also where /proc hides other people's processes.
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # somebody else's
    # The number may have been given to another process since: that one began at another time.
    state, started = _stat(process.pid)
    return bool(started) and (started != process.started or state in _GONE)


def _stat(pid: int) -> tuple[str, str]:
    """Return a process's state and start tick; empty if unknown."""
    # The name of the program is in brackets there, and may itself have blanks and brackets.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    # Of proc(5) the fields 3 and 22, for the first two are cut off.
    return (fields[0], fields[19]) if len(fields) > 19 else ("", "")


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
