"""What capturing whole rows, to be read back, costs a writer on PostgreSQL, the more a statement changes."""

from __future__ import annotations

from bench.growth.capture import capturing
from bench.measure import Benchmark
from eventlog.tracked.options import Style


def benchmark(*, quick: bool) -> Benchmark:
    """Captured as rows."""
    return capturing("growth.rowback", Style.ROW_BACK, "rows", quick=quick)
