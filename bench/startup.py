"""How long a person waits: for the version, and for the whole circle of ./dev demo."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

from bench.measure import Benchmark, Contestant, Target, Timings

ROOT = Path(__file__).resolve().parents[1]
DEV = str(ROOT / "dev")
LIMITS = {"eventlog --version": 0.3, "./dev demo": 3.0}
OVERHEAD = 0.05


def benchmark(*, quick: bool) -> Benchmark:  # noqa: ARG001 a command cannot be started any quicker
    """Commands in processes of their own, as a shell would start them."""
    eventlog = str(Path(sys.executable).with_name("eventlog"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "eventlog --version": [eventlog, "--version"],
        "./dev run eventlog --version": [DEV, "run", "eventlog", "--version"],
        "./dev demo": [DEV, "demo"],
    }
    return Benchmark(
        name="startup",
        question="how long does a person wait?",
        unit="start",
        contestants=[
            Contestant(name=name, run=partial(_start, command), floor=name.startswith("python"))
            for name, command in commands.items()
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
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
