"""What a call costs: seconds of CPU, which other work on the machine does not lengthen, without the collector's share."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def seconds(call: Callable[[], object]) -> float:
    """The best of three, because a shared machine's caches stutter."""
    times = []
    for _ in range(3):
        gc.collect()
        gc.disable()
        try:
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
        finally:
            gc.enable()
    return min(times)
