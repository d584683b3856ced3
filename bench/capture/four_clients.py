"""At what rate four clients update single rows of a captured table."""

from __future__ import annotations

from bench.capture.clients import clients
from bench.measure import Benchmark


def benchmark(*, quick: bool) -> Benchmark:
    """Without a trigger, with ours, and with a queue's."""
    return clients(4, quick=quick)
