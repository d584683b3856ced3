"""Runs `eventlog` as a user does: as a process."""

from __future__ import annotations

import os
import subprocess
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


def ok(*arguments: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """What a command printed that must end well."""
    done = eventlog(*arguments, cwd=cwd, environment=environment)
    assert done.returncode == 0, f"eventlog {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout
