"""Signals become requests: SIGTERM and SIGINT ask for the end, SIGHUP for another configuration.

Who asks for the end a second time breaks off by an exception, so that the journal gets its last
record. A third SIGTERM ends the process at once, whatever holds it up.

systemd hears of a service of Type=notify when it is ready, reloading, stopping, and still alive.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from time import CLOCK_MONOTONIC, clock_gettime_ns, monotonic
from typing import Any


class Terminated(KeyboardInterrupt):
    """A second SIGTERM: it breaks off as a second Ctrl-C does."""


class StoppedIdle(KeyboardInterrupt):
    """The end was asked for while nothing was in hand that has to be finished first."""


@contextmanager
def requests_by_signal(
    stop: Callable[[], None], reload: Callable[[], None] | None = None, idle: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Calls these instead of breaking off; who asks for the end a second time breaks off after all.

    Who asks for it while the main thread is `idle` breaks off at once, by StoppedIdle.

    They are called in a thread of their own. A handler runs in the midst of what the main thread
    does: where that holds the lock of the very `Event` that is to be set, for example while it
    begins to wait, setting it there would never end.
    """
    former: dict[int, Any] = {}
    # Of all queues the one that a handler may put into.
    requests: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def on_second(number: int, _frame: object) -> None:
        # So that a third one ends the process, whatever holds it up.
        signal.signal(number, signal.SIG_DFL)
        raise Terminated

    def on_stop(number: int, _frame: object) -> None:
        # Python's own handler raises KeyboardInterrupt; for SIGTERM it has none.
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else on_second)
        requests.put(stop)
        if idle():
            raise StoppedIdle

    def fulfil() -> None:
        while (request := requests.get()) is not None:
            request()

    former |= {number: signal.signal(number, on_stop) for number in (signal.SIGTERM, signal.SIGINT)}
    if reload is not None:
        former[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: requests.put(reload))
    thread = Thread(target=fulfil, name="eventlog-signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        for asked, handler in former.items():
            signal.signal(asked, handler)
        requests.put(None)
        thread.join()


class Systemd:
    """Speaks to the socket that systemd named; without one it is silent."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self._address = environment.get("NOTIFY_SOCKET", "")
        # A child inherits the variables; the watchdog is for the process that systemd means.
        meant = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        wanted = environment.get("WATCHDOG_USEC", "")
        self.watchdog = (
            int(wanted) / 1_000_000 if meant and wanted.isascii() and wanted.isdigit() and len(wanted) <= 18 else None
        )
        """Seconds within which a sign of life must come, if one must."""
        self._next = 0.0

    def ready(self) -> None:
        """Report that the service works, or stands by."""
        self._say("READY=1")

    def reloading(self) -> None:
        """Report reading the configuration again; `ready` ends it."""
        # With Type=notify-reload systemd wants the time in the same message.
        self._say("RELOADING=1", f"MONOTONIC_USEC={clock_gettime_ns(CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """Report the end: the batch in hand is finished first."""
        self._say("STOPPING=1")

    def alive(self) -> None:
        """Give a sign of life."""
        if self.watchdog is not None and monotonic() >= self._next:
            # systemd advises to do it at least twice within the time.
            self._next = monotonic() + self.watchdog / 4
            self._say("WATCHDOG=1")

    def _say(self, *words: str) -> None:
        if not self._address:
            return
        # systemd writes an abstract socket with @, and the kernel wants a zero byte.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as talk:
                talk.sendto("\n".join(words).encode(), address)
        except OSError:
            return  # systemd is being restarted itself: that is no reason to stop publishing
