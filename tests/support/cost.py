"""What a call costs: seconds of CPU, which other work on the machine does not lengthen, without the collector's share."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOKS = range(1, 11)
AT_LEAST = 3
MORE = 20


def is_linear(made: Callable[[int], Callable[[], object]], size: int) -> bool:
    """Return True if a call of 20 times the size costs less than 80 times as much.

    80 is twice the square root of a quadratic cost. Both sizes are timed in turns until it holds,
    three times at least: a shared machine may slow a call for a while, but never speeds one up.
    """
    small, large = made(size), made(size * MORE)
    few = many = float("inf")
    for look in LOOKS:
        few, many = min(few, seconds(small)), min(many, seconds(large))
        if look >= AT_LEAST and many < 4 * MORE * few:
            return True
    return False


def seconds(call: Callable[[], object]) -> float:
    """Time a call without a garbage collection before it: in a process with thousands of tests that
    would take longer.
    """
    gc.disable()
    try:
        with _unwatched():
            start = time.process_time()
            call()
            return time.process_time() - start
    finally:
        gc.enable()


@contextmanager
def _unwatched() -> Iterator[None]:
    """Switch coverage off: it would be most of the measured time."""
    watching = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(watching)
