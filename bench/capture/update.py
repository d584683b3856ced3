"""What capturing costs one UPDATE of many rows."""

from __future__ import annotations

from bench.capture.bulk import bulk
from bench.capture.ground import UPDATE, UPDATE_ALL
from bench.capture.ways import FIELD, ROW_BACK
from bench.measure import Benchmark


def benchmark(*, quick: bool) -> Benchmark:
    """The statement alone, with our triggers, and with those of others."""
    limits = {ROW_BACK: 2.0, FIELD: 4.0}
    return bulk("update", UPDATE, limits, full=True, kept=True, quick=quick, every=UPDATE_ALL, image=1.3)
