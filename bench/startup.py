"""How long a person waits: for the version, and for the whole circle of ./dev demo."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

from bench.ending import at_end
from bench.measure import Benchmark, Contestant, Target, Timings

ROOT = Path(__file__).resolve().parents[1]
DEV = str(ROOT / "dev")
LIMITS = {
    "eventlog --version": 0.3,
    "eventlog --help": 0.25,
    "eventlog track --help": 0.25,
    "eventlog status": 0.5,
    "eventlog log": 0.5,
    "eventlog outputs": 0.5,
    "./dev demo": 3.0,
}
OVERHEAD = 0.05
ABROAD = ("gh", "dbt")
"""Tools that our environment does not have: they are measured where the system has them."""


def benchmark(*, quick: bool) -> Benchmark:  # noqa: ARG001 a command cannot be started any quicker
    """Commands in processes of their own, as a shell would start them."""
    eventlog, alembic, uv = [str(Path(sys.executable).with_name(name)) for name in ("eventlog", "alembic", "uv")]
    folder = TemporaryDirectory(prefix="eventlog-startup-")
    _at_log([eventlog, "install"], folder)
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "eventlog --version": [eventlog, "--version"],
        "eventlog --help": [eventlog, "--help"],
        "eventlog track --help": [eventlog, "track", "--help"],
        "import sqlalchemy": [sys.executable, "-c", "import sqlalchemy"],
        "alembic --help": [alembic, "--help"],
        "uv --help": [uv, "--help"],
        **{f"{name} --help": [found, "--help"] for name in ABROAD if (found := which(name)) is not None},
        "./dev run eventlog --version": [DEV, "run", "eventlog", "--version"],
        "./dev demo": [DEV, "demo"],
    }
    return Benchmark(
        name="startup",
        question="how long does a person wait?",
        unit="start",
        contestants=[
            *[
                Contestant(name=name, run=partial(_start, command), floor=name.startswith("python"))
                for name, command in commands.items()
            ],
            *[
                Contestant(name=f"eventlog {name}", run=partial(_at_log, [eventlog, name], folder))
                for name in ("status", "log", "outputs")
            ],
        ],
        targets=_targets,
        note="The environment exists; `./dev demo` makes its database, publishes and cleans up in each run.",
    )


def _targets(timings: Timings) -> list[Target]:
    waits = [
        Target(
            promise=f"`{name}` under {limit:g} s",
            measured=f"{timings[name].median:.3f} s",
            reached=timings[name].median < limit,
        )
        for name, limit in LIMITS.items()
    ]
    added = timings["./dev run eventlog --version"].median - timings["eventlog --version"].median
    promise = f"`./dev run` adds less than {OVERHEAD:g} s"
    return [*waits, Target(promise=promise, measured=f"{added:.3f} s", reached=added < OVERHEAD)]


def _start(command: list[str]) -> None:
    streams: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    subprocess.run(command, check=True, env=_environment(), **streams)


@cache
def _environment() -> dict[str, str]:
    """Return an environment in which Python keeps what it compiles, as pip leaves it to users: compiling SQLAlchemy
    anew costs three times its import.
    """
    compiled = TemporaryDirectory(prefix="eventlog-compiled-")
    at_end(compiled.cleanup)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": compiled.name}


def _at_log(command: list[str], folder: TemporaryDirectory[str]) -> None:
    """Run a command at a log in this folder, which is there as long as somebody can call this."""
    _start([*command, "--database", f"sqlite:///{folder.name}/log.db"])
