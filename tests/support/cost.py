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
    """Whether a call of 20 times the size costs less than 80 times as much: twice the square root of what a quadratic one costs.

    Both are looked at in turns until it is so, three times at least. A shared machine may make a call several times as
    expensive for a while; it never makes one cheaper.
    """
    small, large = made(size), made(size * MORE)
    few = many = float("inf")
    for look in LOOKS:
        few, many = min(few, seconds(small)), min(many, seconds(large))
        if look >= AT_LEAST and many < 4 * MORE * few:
            return True
    return False


def seconds(call: Callable[[], object]) -> float:
    """Nothing is collected before: in a process that has run thousands of tests that took longer than all that is measured here."""
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
    """Coverage does not look meanwhile: it would be most of what is measured."""
    watching = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(watching)
