"""Runs `eventlog` as a user does: as a process, and at a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.forking import Forked


def eventlog(
    *arguments: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The finished command, with what it printed and its exit code."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        mine = {**kept, "NO_COLOR": "1", **(environment or {})}
        done = Forked(*arguments, cwd=cwd, environment=mine, out=out, err=err)
        try:
            code = done.wait(120)
        finally:
            done.kill()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read().decode(), err.read().decode())


def expect_refused(
    code: int,
    said: str,
    *arguments: str | Path,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """A command ends with this code and says so, in words."""
    done = eventlog(*arguments, cwd=cwd, environment=environment)
    words = " ".join((done.stdout + done.stderr).split())
    assert (done.returncode, said in words, "Traceback" in words) == (code, True, False), words


def ok(*arguments: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """What a command printed that must end well."""
    done = eventlog(*arguments, cwd=cwd, environment=environment)
    assert done.returncode == 0, f"eventlog {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


def at_a_terminal(
    *arguments: str, cwd: Path, answers: str = "", environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """The exit code of a command that somebody answers at a terminal, and all that is seen there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    shape = {"COLUMNS": "80", "LINES": "20", "TERM": "xterm"}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "eventlog", *arguments]
    mine = {**kept, **shape, **(environment or {})}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=mine) as done:
        os.close(theirs)
        os.write(ours, answers.encode())
        seen = b""
        try:
            while more := os.read(ours, 4096):
                seen += more
        except OSError:  # Linux says so when the other end is closed
            pass
        os.close(ours)
    return done.returncode, seen.decode()
