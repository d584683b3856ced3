"""How much memory a publisher takes when very many rows wait, and whether more rows, long values or one object take more."""

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

LARGE: Final = 40
LARGE_BYTES: Final = 10_000_000
"""Rows with a value of 10 MB: one after the other they are 400 MB."""

LARGE_ROWS: Final = """
INSERT INTO {log} (table_key, event_type, perpetrator, table_name, column_name, new_value)
SELECT 'idu=' || n, 2, 'app', 'usr', ({names})[1], repeat('0123456789', {tenth})
FROM generate_series(0, CAST(:count AS integer) - 1) AS n ORDER BY n
"""
ONE_OBJECT: Final = """
INSERT INTO {log} (table_key, event_type, perpetrator, table_name, column_name, old_value, new_value)
SELECT 'idu=1', 2, 'app', 'usr', ({names})[n % 6 + 1], 'old ' || n, 'new ' || n
FROM generate_series(0, :count - 1) AS n ORDER BY n
"""

Peaks = dict[str, float]
"""Megabytes that a process has had at most, by what waited."""


def benchmark(*, quick: bool) -> Benchmark:
    """`eventlog run --until-empty` as a process of its own, for more and more waiting rows."""
    peaks: Peaks = {}
    sizes = QUICK if quick else SIZES
    logs = {f"{size:,} waiting rows": backlog(f"memory_log_{size}", size) for size in sizes}
    large = LARGE_ROWS.replace("{tenth}", str(LARGE_BYTES // 10))
    logs[f"{LARGE} rows of 10 MB"] = backlog("memory_log_large", 4 if quick else LARGE, large)
    logs[f"{max(sizes):,} rows of one object"] = backlog("memory_log_object", max(sizes), ONE_OBJECT)
    return Benchmark(
        name="memory",
        question="does a longer queue take more memory?",
        unit="row",
        contestants=[
            Contestant(
                name=name,
                prepare=log.refill,
                run=partial(_run, name, log, peaks),
                units=log.count,
                floor=place == 0,
            )
            for place, (name, log) in enumerate(logs.items())
        ],
        targets=partial(_targets, peaks=peaks, sizes=sizes),
        note="Whole processes, from the start of Python to the end; cycles of 10,000 rows. Values are short but for those of 10 MB.",
    )


def _run(name: str, log: Backlog, peaks: Peaks) -> None:
    """Publishes everything and notes the greatest peak that any run has had."""
    command = [sys.executable, "-m", "eventlog", "run", "--until-empty", "--log-level", "error"]
    process = subprocess.Popen([*command, "--config", str(written_config(log.config()))], cwd=Path(__file__).parents[1])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise AssertionError(f"eventlog run ended with {process.returncode}")
    peaks[name] = max(peaks.get(name, 0.0), usage.ru_maxrss / 1024)


def _targets(_timings: Timings, *, peaks: Peaks, sizes: tuple[int, ...]) -> list[Target]:
    least, most = (peaks[f"{size:,} waiting rows"] for size in (min(sizes), max(sizes)))
    said = ", ".join(f"{peak:.0f} MB for {name}" for name, peak in peaks.items())
    return [
        Target(
            promise=f"never more than {MOST} MB, with values up to 10 MB",
            measured=said,
            reached=max(peaks.values()) < MOST,
        ),
        Target(
            promise=f"{max(sizes):,} rows take at most {GROWTH:g} times the memory of {min(sizes):,}",
            measured=f"{most / least:.2f} times",
            reached=most <= GROWTH * least,
        ),
    ]
