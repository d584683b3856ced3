"""What capturing costs one DELETE of many rows."""

from __future__ import annotations

from bench.capture.bulk import bulk
from bench.capture.ground import DELETE
from bench.measure import Benchmark


def benchmark(*, quick: bool) -> Benchmark:
    """The statement alone, with our triggers, and with those of others."""
    return bulk("delete", DELETE, {}, full=True, kept=True, quick=quick)
