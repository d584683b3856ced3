"""Publishers as processes: `eventlog run` with a configuration file."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any, Final

from tests.support.forking import Forked

PATIENCE: Final = 180.0
WRITERS_BYTE: Final = 120
"""The byte of an SQLite file's `-shm` that whoever writes has locked, where there is a write-ahead log."""

TAKEN: Final = frozenset({"lock_taken"})
NOT_TAKEN: Final = frozenset({"standing_by", "lock_lost", "stopped"})
_numbers = count(1)


class Command:
    """A call of eventlog, after the lines of a `program`. `name` is unique in its folder."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        out: Path | None = None,
        program: str = "",
        environment: Mapping[str, str] = {},  # nobody changes it
    ) -> None:
        self.name = f"{arguments[0]}{next(_numbers)}"
        self.config = Path(arguments[arguments.index("--config") + 1])
        self.err = folder / f"{self.name}.err"
        self.frozen = False
        self.asked = False
        with self.err.open("ab") as err, (out or folder / f"{self.name}.out").open("ab") as said:
            self.process = Forked(
                *arguments, environment={**os.environ, **environment}, out=said, err=err, program=program
            )

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def journal(self) -> list[Mapping[str, Any]]:
        """What it has told so far."""
        lines = self.err.read_text(errors="replace").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}\n")]

    @property
    def holds(self) -> str:
        """Since when it has the lock, as far as it knows; the empty string says that it has not."""
        since = ""
        for record in self.journal:
            if record["action"] in TAKEN:
                since = str(record["time"])
            elif record["action"] in NOT_TAKEN:
                since = ""
        return since

    @property
    def said(self) -> str:
        """The end of what it has told."""
        return self.err.read_text(errors="replace")[-1000:]

    def tell(self, number: signal.Signals) -> None:
        """Sends a signal to the process, if it is still there."""
        self.asked = self.asked or number in (signal.SIGTERM, signal.SIGKILL)
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def freeze(self) -> None:
        """Returns when it does nothing any more: until then it may take locks or give them back."""
        self.frozen = True
        self.tell(signal.SIGSTOP)
        within(lambda: not self.alive or self._state() == "T", 5, pause=0.002)

    def wake(self) -> None:
        self.tell(signal.SIGCONT)
        self.frozen = False

    def _state(self) -> str:
        """One letter for what the process does, as the system calls it."""
        try:
            return Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except OSError:
            return ""

    def end(self, patience: float = PATIENCE) -> int | None:
        """Its exit code; None when it does not end."""
        with suppress(TimeoutExpired):
            self.process.wait(patience)
        return self.process.returncode

    def kill(self) -> None:
        self.tell(signal.SIGKILL)
        self.process.wait(PATIENCE)


def has_locked(pid: int, database: Path) -> bool:
    """Whether this process has locked an SQLite file against other writers.

    The system's list of locks says it. A connection that tried would find the lock of any other writer as well.
    """
    inode = Path(f"{database}-shm").stat().st_ino
    for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
        _, kind, *rest = line.split()  # of locks that are waited for the second field is an arrow
        if kind != "POSIX" or rest[1] != "WRITE":
            continue
        holder, file, first, last = rest[2:]
        mine = int(holder) == pid and int(file.rpartition(":")[2]) == inode
        if mine and int(first) <= WRITERS_BYTE and (last == "EOF" or int(last) >= WRITERS_BYTE):
            return True
    return False


def within(condition: Callable[[], object], seconds: float = PATIENCE, pause: float = 0.02) -> bool:
    """Whether it comes to pass in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(pause)
    return True
