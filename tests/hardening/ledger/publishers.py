"""Publishers as processes: `eventlog run` with a configuration file, forked from a server that has loaded it already."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Final

from tests.hardening.crash import processes

PATIENCE: Final = 180.0
DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of prctl(2)."""

WRITERS_BYTE: Final = 120
"""The byte of an SQLite file's `-shm` that whoever writes has locked, where there is a write-ahead log."""

TAKEN: Final = frozenset({"lock_taken"})
NOT_TAKEN: Final = frozenset({"standing_by", "lock_lost", "stopped"})
_numbers = count(1)


def eventlog(arguments: Sequence[str], out: str, err: str, mutant: Callable[[], None] | None) -> None:
    """The command, in a process of its own that ends with the server that it was forked from."""
    ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]  # the server ends with the tests
    os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 1)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", 1, closefd=False)
    if mutant is not None:
        mutant()
    from eventlog.cli.main import run

    sys.argv = ["eventlog", *arguments]
    run()


class Command:
    """A call of eventlog. `name` is unique in its folder."""

    def __init__(
        self, folder: Path, *arguments: str, out: Path | None = None, mutant: Callable[[], None] | None = None
    ) -> None:
        self.name = f"{arguments[0]}{next(_numbers)}"
        self.config = Path(arguments[arguments.index("--config") + 1])
        self.err = folder / f"{self.name}.err"
        self.err.touch()
        self.frozen = False
        self.asked = False
        place = str(out or folder / f"{self.name}.out")
        self.process: ForkServerProcess = processes().Process(
            target=eventlog, args=(arguments, place, str(self.err), mutant), daemon=True
        )
        self.process.start()

    @property
    def alive(self) -> bool:
        return self.process.is_alive()

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
            os.kill(self.process.pid or 0, number)

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
        self.process.join(patience)
        return self.process.exitcode

    def kill(self) -> None:
        self.tell(signal.SIGKILL)
        self.process.join(PATIENCE)


def has_locked(pid: int | None, database: Path) -> bool:
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
