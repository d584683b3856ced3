"""One folder for everything that a run of tests writes, removed at its end; and the run fails if it left files or processes.

It stands in memory where there is room: on a disk a test waits twice as long as it works for what SQLite, sinks and servers
put there for good, and a database of PostgreSQL is 300 files that are made and removed.

Whoever runs below the run carries its folder in the environment, or stands in it: so a server is found whose process of
tests was killed, and it is ended with all others. Processes are looked for on Linux only.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import ssl
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct

MARK: Final = "EVENTLOG_TEST_RUN"
JAVA: Final = "java"
"""The folder of the run that is `java.io.tmpdir`."""

IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # folders in it are made with names of their own
ROOM: Final = 6 << 30
"""Bytes that must be free there; the servers and files of three processes need less than half of it."""
PATIENCE_SECONDS: Final = 10.0
"""How long a process may take to end that was told to."""


class Process(Struct, frozen=True, kw_only=True):
    """One that runs below a run of tests."""

    pid: int
    command: str
    test: str

    def __str__(self) -> str:
        return f"process {self.pid} of {self.test or 'no test'}: {self.command[:200]}"


class Run:
    """A run of tests, as pytest's plug-in: it makes the folder, looks what was left, and removes everything."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="eventlog-run-", dir=_place()))
        self.folder.chmod(0o711)  # servers run as another user
        self.home = self.folder / "home"
        self.home.mkdir()
        # matplotlib keeps what fonts there are, which would stand in HOME and which each process would look for anew.
        self.fonts = self.folder / "fonts"
        # Java asks nobody for TMPDIR, and one that was killed leaves its folders and libraries where it was told to have them.
        self.java = self.folder / JAVA
        self.java.mkdir()
        # With a file of all authorities, which SSL_CERT_FILE names on some machines, each session of MariaDB and MySQL
        # reads it anew, although it asks nobody for a certificate. Those of a folder are looked up when they are wanted.
        self.authorities = self.folder / "authorities.pem"
        self.authorities.write_text(_one_authority())
        kept = {MARK: self.folder, "TMPDIR": self.folder}
        kept |= {"HOME": self.home, "MPLCONFIGDIR": self.fonts, "SSL_CERT_FILE": self.authorities}
        self._former = {name: os.environ.get(name) for name in kept}
        os.environ |= {name: str(folder) for name, folder in kept.items()}
        tempfile.tempdir = None
        self.left: list[str] = []
        # Who is started behind a shell's back ignores Ctrl-C, and with it everything that a test starts.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a run that is told to end cleans up, as with Ctrl-C

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """Looks when all fixtures and all processes of tests have ended, and before the summary is written."""
        yield
        processes = self._processes_left()
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):  # not where somebody broke it off
            self.left = [*map(str, processes), *map(str, self._files_left())]
        if self.left:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            _report(session.config, self.left)
        end(processes)

    def pytest_unconfigure(self) -> None:
        """Removes the folder, whatever happened."""
        end(processes_of(self.folder))
        shutil.rmtree(self.folder, ignore_errors=True)
        for name, value in self._former.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        tempfile.tempdir = None

    def _processes_left(self) -> list[Process]:
        until = time.monotonic() + PATIENCE_SECONDS
        while (found := processes_of(self.folder)) and time.monotonic() < until:
            time.sleep(0.1)
        return found

    def _files_left(self) -> list[Path]:
        """List files beside pytest's folders, and those in the run's home."""
        # pymp-…: multiprocessing keeps its sockets there until the last process that shares them has gone.
        others = ("pytest-of-", "pymp-")
        known = (self.home, self.fonts, self.authorities, self.java)
        ours = [path for path in self.folder.iterdir() if not path.name.startswith(others) and path not in known]
        return sorted([*ours, *self.home.iterdir()])


def _one_authority() -> str:
    """Return the machine's first trusted certificate: OpenSSL rejects an empty file."""
    file = ssl.get_default_verify_paths().cafile
    if not file:  # a machine without any
        return ""
    first, end, _ = Path(file).read_text(errors="replace").partition("-----END CERTIFICATE-----\n")
    return first[first.find("-----BEGIN") :] + end


def _place() -> Path | None:
    """Return a folder in memory, if large enough and executable; None for the usual temporary
    folder.
    """
    if MARK in os.environ:  # a run within a run
        return None
    try:
        found = os.statvfs(IN_MEMORY)
        available = re.search(r"^MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    free = min(found.f_bavail * found.f_frsize, int(available[1]) << 10 if available else 0)
    suits = free >= ROOM and not found.f_flag & os.ST_NOEXEC and os.access(IN_MEMORY, os.W_OK)
    return IN_MEMORY if suits else None


def processes_of(folder: Path) -> list[Process]:
    """List the processes a run of tests has started, with their children."""
    found = [_process(path, folder) for path in Path("/proc").glob("[0-9]*") if path.name != str(os.getpid())]
    return [process for process in found if process is not None]


def end(processes: list[Process]) -> None:
    """Kills processes, without asking."""
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)


def _process(path: Path, folder: Path) -> Process | None:
    try:
        environment = dict(
            pair.partition("=")[::2] for pair in (path / "environ").read_text(errors="replace").split("\0")
        )
        place = (path / "cwd").readlink()
        command = (path / "cmdline").read_text(errors="replace").replace("\0", " ").strip()
    except OSError:  # it belongs to somebody else, or has ended
        return None
    if not command or not (place.is_relative_to(folder) or environment.get(MARK) == str(folder)):
        return None
    return Process(pid=int(path.name), command=command, test=environment.get("PYTEST_CURRENT_TEST", ""))


def _report(config: pytest.Config, left: list[str]) -> None:
    """Makes an error of it that stands among those of tests."""
    said = "\n".join(["The run left behind, which is ended and removed now:", *left])
    where = ("tests/support/leftovers.py", 0, "what is left")
    report = pytest.TestReport("what the run left behind", where, {}, "failed", said, "teardown")
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.stats.setdefault("error", []).append(report)
