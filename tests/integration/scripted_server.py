"""A server of plain sockets that answers as a script says, byte by byte, and remembers what it was sent."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Self

Step = Callable[[socket.socket], None]


class ScriptedServer:
    """Plays one step for each request; after the last one it repeats the last. `requests` are heads and bodies as sent."""

    def __init__(self, steps: Sequence[Step], context: ssl.SSLContext | None = None) -> None:
        self.requests: list[tuple[str, bytes]] = []
        self.connections = 0
        self._steps = list(steps)
        self._context = context
        self._over = Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        return f"{'https' if self._context else 'http'}://localhost:{self.port}/xds?key=hidden"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with suppress(OSError):  # wakes the accept that waits
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        self._thread.join(5)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._over.is_set():
                connection.close()
                return
            self.connections += 1
            with suppress(OSError):  # a client that goes away is what many tests are about
                self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            connection.settimeout(5)
            while (request := read_request(connection)) is not None:
                self.requests.append(request)
                step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
                step(connection)
        finally:
            connection.close()


def answer(body: bytes = b"", status: str = "200 OK", *headers: str) -> Step:
    """Answers whole and keeps the connection."""
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""])
    return lambda connection: connection.sendall(head.encode() + body)


def raw(content: bytes) -> Step:
    """Sends these bytes and closes the connection."""

    def send(connection: socket.socket) -> None:
        connection.sendall(content)
        hang_up(connection)

    return send


def hang_up(connection: socket.socket) -> None:
    """Closes the connection."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def silence(connection: socket.socket) -> None:
    """Says nothing until the other side is gone."""
    with suppress(OSError):
        connection.recv(1)


def drop_by_drop(content: bytes, pause: float) -> Step:
    """Sends a byte now and then, so that no single read takes long."""

    def send(connection: socket.socket) -> None:
        for byte in content:
            connection.sendall(bytes([byte]))
            time.sleep(pause)

    return send


def read_request(connection: socket.socket) -> tuple[str, bytes] | None:
    """The head and the body that a client sends; None when it has gone."""
    received = b""
    while b"\r\n\r\n" not in received:
        more = connection.recv(65536)
        if not more:
            return None
        received += more
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    sizes = [int(line.partition(":")[2]) for line in lines if line.lower().startswith("content-length:")]
    length = sizes[0] if sizes else 0  # who asks a proxy for a way has no body
    while len(body) < length:
        more = connection.recv(65536)
        if not more:
            return None
        body += more
    return head.decode("latin-1"), body
