"""A server of plain sockets with a thread for each connection, which says of each document when it came and was answered."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Thread
from typing import Any, Self, cast

from tests.integration.scripted_server import Step, read_request

Fate = Callable[[int, int], Step]
"""How a document is answered, by its number and how often it came; it may wait before it says so."""


class ParallelServer:
    """Plays the fate of each document. `came` and `answered` are their numbers in order, `most` how many there were at once."""

    def __init__(self, fate: Fate) -> None:
        self.came: list[int] = []
        self.answered: list[int] = []
        self.most = 0
        self.connections = 0
        self.closed = 0
        self._fate = fate
        self._here = 0
        self._moved = Condition()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[Thread] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def until(self, met: Callable[[], bool], seconds: float = 10) -> bool:
        """Waits until it is so; asked again whenever something has come, was answered, or a connection has ended."""
        with self._moved:
            return self._moved.wait_for(met, seconds)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # it was closed
                return
            self.connections += 1
            self._open.add(connection)
            self._threads.append(Thread(target=self._serve, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):  # a client that goes away is what many tests are about
            while (request := read_request(connection)) is not None:
                self._answer(connection, number_of(request[0]))
        self._open.discard(connection)
        connection.close()
        with self._moved:
            self.closed += 1
            self._moved.notify_all()

    def _answer(self, connection: socket.socket, number: int) -> None:
        with self._moved:
            self.came.append(number)
            self._here += 1
            self.most = max(self.most, self._here)
            self._moved.notify_all()
            step = self._fate(number, self.came.count(number))
        noticed = Noticed(connection, lambda: self._over(number))
        try:
            step(cast("socket.socket", noticed))
        finally:
            noticed.tell()

    def _over(self, number: int) -> None:
        with self._moved:
            self._here -= 1
            self.answered.append(number)
            self._moved.notify_all()


class Noticed:
    """A connection that tells, once, that it is answered: before the client can know, who may send the next at once."""

    def __init__(self, connection: socket.socket, told: Callable[[], None]) -> None:
        self._connection = connection
        self._told: Callable[[], None] | None = told

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def sendall(self, content: bytes) -> None:
        self.tell()
        self._connection.sendall(content)

    def tell(self) -> None:
        told, self._told = self._told, None
        if told is not None:
            told()


def number_of(head: str) -> int:
    """The number in a document's id."""
    return int(head.lower().split("eventlog-document: ")[1].split("\r")[0])


def after(seconds: float, step: Step) -> Step:
    """Takes so long before it does that."""

    def wait(connection: socket.socket) -> None:
        time.sleep(seconds)
        step(connection)

    return wait
