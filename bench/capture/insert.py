"""What capturing costs one INSERT of many rows."""

from __future__ import annotations

from bench.capture.bulk import bulk
from bench.capture.ground import INSERT
from bench.capture.ways import FIELD, ROW_BACK
from bench.measure import Benchmark


def benchmark(*, quick: bool) -> Benchmark:
    """The statement alone, with our triggers, and with those of others."""
    return bulk("insert", INSERT, {ROW_BACK: 2.3, FIELD: 9.0}, full=False, kept=False, quick=quick, image=1.2)
