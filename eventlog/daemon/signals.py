"""Signals become requests: SIGTERM and SIGINT ask for the end, SIGHUP for another look at the configuration."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def requests_by_signal(stop: Callable[[], None], reload: Callable[[], None] | None = None) -> Iterator[None]:
    """Calls these instead of breaking off; who asks for the end a second time breaks off after all."""
    former: dict[int, Any] = {}

    def on_stop(number: int, _frame: object) -> None:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        stop()

    former |= {number: signal.signal(number, on_stop) for number in (signal.SIGTERM, signal.SIGINT)}
    if reload is not None:
        former[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: reload())
    try:
        yield
    finally:
        for asked, handler in former.items():
            signal.signal(asked, handler)
