"""What a call costs: seconds of CPU, which other work on the machine does not lengthen, without the collector's share."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def seconds(call: Callable[[], object], tries: int = 3) -> float:
    """The best of three, because a shared machine's caches stutter."""
    times = []
    for _ in range(tries):
        gc.collect()
        gc.disable()
        try:
            with unwatched():
                start = time.process_time()
                call()
                times.append(time.process_time() - start)
        finally:
            gc.enable()
    return min(times)


@contextmanager
def unwatched() -> Iterator[None]:
    """Coverage does not look meanwhile: it would be most of what is measured."""
    watching = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(watching)
