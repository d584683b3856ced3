"""Ends exchanges that last too long: a receiver that sends a byte now and then never times out by itself.

Law: one thread looks after all exchanges of a sink, and only as long as there are some. To start one for each of them
would cost more than everything else that is done to send a document.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Thread


class Exchange:
    """A document on its way and the answer to it; `expired` once it was ended from here."""

    def __init__(self, deadline: float, sock: socket.socket) -> None:
        self.deadline = deadline
        self.sock = sock
        self.expired = False

    def expire(self) -> None:
        self.expired = True
        cut(self.sock)


class Deadlines:
    """The exchanges of one sink, in any number of threads."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._exchanges: set[Exchange] = set()
        self._thread: Thread | None = None
        self._until = 0.0

    @contextmanager
    def ended_at(self, deadline: float, sock: socket.socket) -> Iterator[None]:
        """Ends the exchange on a socket at the deadline, with TimeoutError."""
        exchange = Exchange(deadline, sock)
        self._begin(exchange)
        try:
            yield
        except Exception as error:
            if exchange.expired:
                raise TimeoutError from error
            raise
        finally:
            with self._changed:
                self._exchanges.discard(exchange)
        if exchange.expired:
            raise TimeoutError

    def close(self) -> None:
        """Ends the thread, unless other exchanges still need it."""
        with self._changed:
            thread = None if self._exchanges else self._thread
            self._changed.notify()
        if thread is not None:
            thread.join(1)

    def _begin(self, exchange: Exchange) -> None:
        with self._changed:
            self._exchanges.add(exchange)
            if self._thread is None:
                self._thread = Thread(target=self._watch, name="eventlog-deadlines", daemon=True)
                self._thread.start()
            elif exchange.deadline < self._until:
                self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while self._exchanges:
                now = time.monotonic()
                for exchange in [one for one in self._exchanges if one.deadline <= now]:
                    exchange.expire()
                    self._exchanges.discard(exchange)
                self._until = min((one.deadline for one in self._exchanges), default=now)
                self._changed.wait(max(0.0, self._until - now))
            self._thread = None


def cut(sock: socket.socket) -> None:
    """Ends a connection under the hands of whoever reads or writes in another thread."""
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not the SSL socket's own, which disturbs who reads from it
