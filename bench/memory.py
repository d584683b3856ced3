"""How much memory a publisher takes when very many rows wait, and whether more rows take more."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Final

from bench.backlog import Backlog, backlog, written_config
from bench.measure import Benchmark, Contestant, Target, Timings

SIZES: Final = (10_000, 100_000, 1_000_000)
QUICK: Final = (100, 1_000)
MOST: Final = 200
GROWTH: Final = 1.5

Peaks = dict[int, float]
"""Megabytes that a process has had at most, by the number of rows that waited."""


def benchmark(*, quick: bool) -> Benchmark:
    """`eventlog run --until-empty` as a process of its own, for more and more waiting rows."""
    peaks: Peaks = {}
    logs = [backlog(f"memory_log_{size}", size) for size in (QUICK if quick else SIZES)]
    return Benchmark(
        name="memory",
        question="does a longer queue take more memory?",
        unit="row",
        contestants=[
            Contestant(
                name=f"{log.count:,} waiting rows",
                prepare=log.refill,
                run=partial(_run, log, peaks),
                units=log.count,
                floor=log is logs[0],
            )
            for log in logs
        ],
        targets=partial(_targets, peaks=peaks),
        note="Whole processes, from the start of Python to the end; cycles of 10,000 rows.",
    )


def _run(log: Backlog, peaks: Peaks) -> None:
    """Publishes everything and notes the greatest peak that any run has had."""
    command = [sys.executable, "-m", "eventlog", "run", "--until-empty", "--log-level", "error"]
    process = subprocess.Popen([*command, "--config", str(written_config(log.config()))], cwd=Path(__file__).parents[1])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise AssertionError(f"eventlog run ended with {process.returncode}")
    peaks[log.count] = max(peaks.get(log.count, 0.0), usage.ru_maxrss / 1024)


def _targets(_timings: Timings, *, peaks: Peaks) -> list[Target]:
    least, most = peaks[min(peaks)], peaks[max(peaks)]
    said = ", ".join(f"{peak:.0f} MB for {size:,}" for size, peak in sorted(peaks.items()))
    return [
        Target(promise=f"never more than {MOST} MB", measured=said, reached=max(peaks.values()) < MOST),
        Target(
            promise=f"{max(peaks):,} rows take at most {GROWTH:g} times the memory of {min(peaks):,}",
            measured=f"{most / least:.2f} times",
            reached=most <= GROWTH * least,
        ),
    ]
