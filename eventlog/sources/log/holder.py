"""Who holds the lock of a log, as the mark `publisher` says it: until when, since when, and which process on which machine.

The mark is `UNTIL SINCE/LEASE/HOST/PID/BOOT/SPACE/STARTED/RANDOM`, times by the database's clock in UTC. All after the
blank is the holder's token, which nobody else ever has. BOOT, SPACE (the pid namespace) and STARTED are empty where
there is no /proc; they are what lets a standby on the same machine tell that the holder is dead.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import secrets
import socket
from pathlib import Path
from typing import Final

from msgspec import Struct

LONGEST_LEASE_SECONDS: Final = 3_601.0
"""A lease that ends further off than any lease lasts was given before the clock was set back."""

_GONE: Final = frozenset("ZX")
"""States of a process that has ended, though nobody has taken notice of its end yet."""

_other = re.compile(r"[^A-Za-z0-9.-]")


class Process(Struct, frozen=True, kw_only=True):
    """A process such that no other one, before or after it, is the same; what the machine does not tell is empty."""

    host: str
    pid: int
    boot: str = ""
    space: str = ""
    started: str = ""

    @property
    def is_known(self) -> bool:
        """Whether it says enough for its death to be seen."""
        return bool(self.boot and self.space and self.started)


class Holder(Struct, frozen=True, kw_only=True):
    """Who holds a lock: `until` is None where nobody can read it, and `lease` is in seconds."""

    token: str
    until: dt.datetime | None = None
    since: dt.datetime | None = None
    lease: float = LONGEST_LEASE_SECONDS
    process: Process | None = None

    @property
    def host(self) -> str | None:
        """The machine that it runs on, as it calls itself."""
        return None if self.process is None else self.process.host

    @property
    def pid(self) -> int | None:
        """The number of its process on that machine."""
        return None if self.process is None else self.process.pid

    def is_over(self, now: dt.datetime) -> bool:
        """Whether the lease has run out by the database's clock, or speaks of a clock that was set back since."""
        if self.until is None:
            return True
        return not now <= self.until <= now + dt.timedelta(seconds=LONGEST_LEASE_SECONDS)


def new_token(since: dt.datetime, lease: float) -> str:
    """A token of this process, another one at each call."""
    me = this_process()
    parts = (moment_text(since), f"{lease:g}", me.host, str(me.pid), me.boot, me.space, me.started)
    return "/".join((*parts, secrets.token_hex(8)))


def read_holder(mark: str) -> Holder:
    """Reads the mark; what former versions wrote there says at least until when."""
    until, _, token = mark.partition(" ")
    parts = token.split("/")
    if len(parts) != 8 or not parts[3].isdigit() or not int(parts[3]):
        return Holder(token=token, until=read_moment(until))
    since, lease, host, pid, boot, space, started, _ = parts
    process = Process(host=host, pid=int(pid), boot=boot, space=space, started=started)
    return Holder(
        token=token,
        until=read_moment(until),
        since=read_moment(since),
        lease=_seconds(lease),
        process=process,
    )


def moment_text(moment: dt.datetime) -> str:
    """A moment as it stands in the mark, to the millisecond."""
    return moment.isoformat(timespec="milliseconds")


def told_moment(moment: dt.datetime | None) -> str | None:
    """A moment for people and programs, where it is known."""
    return None if moment is None else moment_text(moment)


def read_moment(text: str) -> dt.datetime | None:
    """The moment that a text says, or None when it says none."""
    try:
        return dt.datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


def this_process() -> Process:
    """Who we are, as far as the machine tells."""
    pid = os.getpid()
    return Process(
        host=_other.sub("-", socket.gethostname()) or "-",
        pid=pid,
        boot=_other.sub("", _read("/proc/sys/kernel/random/boot_id")),
        space=_other.sub("", _linked("/proc/self/ns/pid")),
        started=_stat(pid)[1],
    )


def is_dead(process: Process) -> bool:
    """Whether the process has certainly ended: it ran on this machine, which is up since, and is not there any more."""
    me = this_process()
    known = process.is_known and me.is_known
    if not known or (process.host, process.boot, process.space) != (me.host, me.boot, me.space):
        return False
    try:
        os.kill(process.pid, 0)  # no signal: it says whether there is one, also where /proc hides other people's
    except ProcessLookupError:
        return True
    except OSError:
        pass  # somebody else's
    state, started = _stat(process.pid)
    return bool(started) and (started != process.started or state in _GONE)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return LONGEST_LEASE_SECONDS


def _stat(pid: int) -> tuple[str, str]:
    """The state of a process and the tick of the machine's clock at which it began, or empty texts."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else ("", "")


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _linked(link: str) -> str:
    try:
        return str(Path(link).readlink())
    except OSError:
        return ""
