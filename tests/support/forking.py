"""`eventlog` as a process of its own that costs no start: a server that has loaded the program already forks it.

A command that begins from nothing works for 0.7 s before it does anything. One that is forked has its own arguments, environment,
folder, files, umask and exit code all the same. How a command begins from nothing is asked by tests/project/test_shell.py,
and by those of tests/acceptance that ask about terminals, pipes and odd places.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import IO, Any, Final, NoReturn

ROOT: Final = Path(__file__).resolve().parents[2]
LOADED: Final = (
    *(
        "eventlog.cli.main",
        "eventlog.daemon.command",
        "eventlog.capture.install_commands",
        "eventlog.convert.command",
        "eventlog.care.log_commands",
    ),
    *("eventlog.config.build", "eventlog.daemon.service", "eventlog.capture.install", "eventlog.capture.track"),
    *("eventlog.qlik.change_tables.format", "eventlog.qlik.messages.write", "eventlog.convert.local"),
    *("alembic.command", "sqlalchemy.dialects.postgresql", "sqlalchemy.dialects.sqlite", "psycopg", "pymysql"),
    *("lxml.etree", "pyarrow.parquet", "confluent_kafka", "importlib.readers"),
    *("eventlog.capture.track_commands", "eventlog.config.weak_secrets", "eventlog.core.points", "eventlog.sql.rows"),
    *(f"eventlog.databases.{name}.dialect" for name in ("sqlite", "postgresql", "mysql")),
    *("eventlog.databases.lookups", "eventlog.databases.oracle", "eventlog.sinks.files", "eventlog.sinks.outputs"),
    *("eventlog.sinks.http", "eventlog.sinks.store", "eventlog.sinks.change_files", "eventlog.xds.plugin"),
)
PIECE: Final = 1 << 16
"""Bytes that are read at once of a line: of a request, or of what is said of a command."""

DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of prctl(2)."""

_server: list[tuple[subprocess.Popen[bytes], socket.socket]] = []
_asking = Lock()


class Forked:
    """A call of eventlog on its way, with the methods of a Popen that tests ask for."""

    def __init__(
        self,
        *arguments: str | Path,
        environment: Mapping[str, str],
        out: IO[Any] | int = subprocess.DEVNULL,
        err: IO[Any] | int = subprocess.DEVNULL,
        cwd: Path | None = None,
        program: str = "",
    ) -> None:
        self.returncode: int | None = None
        umask = os.umask(0)
        os.umask(umask)
        asked = {
            "arguments": [str(one) for one in arguments],
            "environment": dict(environment),
            "cwd": str(cwd or Path.cwd()),
            "umask": umask,
            "program": program,
        }
        self._said = b""
        self._answer, theirs = socket.socketpair()
        with theirs, open(os.devnull, "r+b") as nothing:  # noqa: PTH123  # a device is no file of ours
            files = [nothing if one == subprocess.DEVNULL else one for one in (subprocess.DEVNULL, out, err)]
            numbers = [one if isinstance(one, int) else one.fileno() for one in files]
            with _asking:
                channel, request = _serving(), json.dumps(asked).encode() + b"\n"
                sent = socket.send_fds(channel, [request], [*numbers, theirs.fileno()])
                channel.sendall(request[sent:])
                theirs.close()
                self.pid = self._number()

    def poll(self) -> int | None:
        """Return its exit code; None while it runs."""
        if self.returncode is None:
            self._answer.setblocking(False)
            try:
                self._ended()
            except BlockingIOError:
                return None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return its exit code."""
        if self.returncode is None:
            self._answer.settimeout(timeout)
            try:
                self._ended()
            except TimeoutError:
                raise subprocess.TimeoutExpired("eventlog", timeout or 0) from None
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def _ended(self) -> None:
        self.returncode = self._number()
        self._answer.close()

    def _number(self) -> int:
        """Read the next number; a server that ended has killed the process."""
        while b"\n" not in self._said:
            said = self._answer.recv(PIECE)
            if not said:
                return -signal.SIGKILL
            self._said += said
        number, _, self._said = self._said.partition(b"\n")
        return int(number)


def end() -> None:
    """Ends the server, and with it whatever it has forked."""
    while _server:
        process, channel = _server.pop()
        channel.close()
        process.wait(30)


def _serving() -> socket.socket:
    """Return the server's socket; start the server at the first call."""
    if not _server:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-c", f"from tests.support.forking import serve; serve({number})"]
            _server.append((subprocess.Popen(command, pass_fds=[number], cwd=ROOT), ours))
    return _server[0][1]


def serve(number: int) -> None:
    """Forks a command for each request; returns in the forked process alone, when the command has ended."""
    channel = socket.socket(fileno=number)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how those ended that wait for commands
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in LOADED:
        import_module(name)
    gc.freeze()
    while True:
        said, files, _, _ = socket.recv_fds(channel, PIECE, 4)
        while said and not said.endswith(b"\n"):
            said += channel.recv(PIECE)
        if not said:
            os._exit(0)
        if os.fork() == 0:
            channel.close()
            _keep(json.loads(said), files)
            return
        for file in files:
            os.close(file)


def _keep(asked: Mapping[str, Any], files: Sequence[int]) -> None:
    """Forks the command, says its number, and in the end how it ended."""
    _die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    answer = socket.socket(fileno=files[3])
    command = os.fork()
    if command == 0:
        answer.close()
        _become(asked, files[:3])
        return
    for file in files[:3]:
        os.close(file)
    try:
        answer.sendall(b"%d\n" % command)
        answer.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(command, 0)[1]))
    finally:
        os._exit(0)


def _become(asked: Mapping[str, Any], files: Sequence[int]) -> None:
    """Makes this process what was asked for, and runs the command."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    random.seed()
    os.umask(asked["umask"])
    os.chdir(asked["cwd"])
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.argv = ["eventlog", *asked["arguments"]]
    if asked["program"]:
        exec(asked["program"], {})  # noqa: S102  # a test's own lines
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # it is open until the process ends
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  # as above
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115  # as above
    from eventlog.cli.main import run

    _end_after(run)


def _end_after(work: Callable[[], object]) -> NoReturn:
    """Does the work and ends this process as Python does, but without taking its modules apart: of a process that has
    loaded so many that is 0.17 s, and most of what a short command costs.
    """
    code: object = 0
    try:
        work()
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001  # Python says it too, whatever it is
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # there is no other way
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else code is not None)


def _die_with_parent() -> None:
    """Die with the parent process, on Linux; elsewhere a command outlives a killed run."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)
