"""Runs `eventlog` as a user does: as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def eventlog(
    *arguments: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The finished command, with what it printed and its exit code."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    return subprocess.run(
        [sys.executable, "-m", "eventlog", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**kept, "NO_COLOR": "1", **(environment or {})},
        timeout=120,
    )


def ok(*arguments: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """What a command printed that must end well."""
    done = eventlog(*arguments, cwd=cwd, environment=environment)
    assert done.returncode == 0, f"eventlog {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout
