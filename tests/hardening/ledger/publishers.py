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

PATIENCE: Final = 60.0
DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of prctl(2)."""

TAKEN: Final = frozenset({"seat_taken", "lock_taken"})
NOT_TAKEN: Final = frozenset({"standing_by", "seat_lost", "lock_lost", "stopped"})
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
        return self.err.read_text(errors="replace")[-600:]

    def tell(self, number: signal.Signals) -> None:
        """Sends a signal to the process, if it is still there."""
        self.asked = self.asked or number in (signal.SIGTERM, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self.process.pid or 0, number)

    def freeze(self) -> None:
        self.frozen = True
        self.tell(signal.SIGSTOP)

    def wake(self) -> None:
        self.tell(signal.SIGCONT)
        self.frozen = False

    def end(self, patience: float = PATIENCE) -> int | None:
        """Its exit code; None when it does not end."""
        self.process.join(patience)
        return self.process.exitcode

    def kill(self) -> None:
        self.tell(signal.SIGKILL)
        self.process.join(PATIENCE)


def within(condition: Callable[[], object], seconds: float = PATIENCE, pause: float = 0.02) -> bool:
    """Whether it comes to pass in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(pause)
    return True
