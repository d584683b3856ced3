"""What publishing a row costs when more rows wait, and when more were published before, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from bench.growth.logs import GrownLog, databases
from bench.growth.series import powers, targets
from bench.measure import Benchmark, Contestant

FEW: Final = 2_000
"""Rows that wait in a log that holds many."""


def benchmark(*, quick: bool) -> Benchmark:
    """From a thousand rows to a million; where so many wait, SQLite would take longer than all others together."""
    most = {"PostgreSQL": 2 if quick else 6, "SQLite": 2 if quick else 5}
    return _benchmark(1 if quick else 3, most, 20 if quick else FEW)


def full() -> Benchmark:
    """From a thousand rows to ten million."""
    return _benchmark(3, {"PostgreSQL": 7, "SQLite": 7}, FEW)


def _benchmark(least: int, most: Mapping[str, int], few: int) -> Benchmark:
    return Benchmark(
        name="growth.publish",
        question="what does publishing a row cost, the more wait and the more were published before?",
        unit="row",
        contestants=list(_contestants(least, most, few)),
        targets=targets,
        note=(
            "Per-field rows into XDS files, the publisher standing open as a daemon does. PostgreSQL is vacuumed and has written a"
            f" checkpoint before each run. In a log of processed rows {few:,} wait."
        ),
    )


def _contestants(least: int, most: Mapping[str, int], few: int) -> Iterator[Contestant]:
    for database, address in databases().items():
        for size in powers(least, most[database]):
            waiting = GrownLog(address, f"waiting_{size}", processed=0, waiting=size)
            yield _contestant(f"waiting rows, {database}", size, waiting, size)
        for size in powers(least, max(most.values())):
            processed = GrownLog(address, f"processed_{size}", processed=size, waiting=few)
            yield _contestant(f"processed rows in the log, {database}", size, processed, few)


def _contestant(series: str, size: int, log: GrownLog, rows: int) -> Contestant:
    name = f"{series}: {size:,}"
    return Contestant(name=name, prepare=log.refill, run=log.publish, units=rows, series=series, size=size)
