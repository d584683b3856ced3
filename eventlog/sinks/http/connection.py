"""A connection to a receiver: urllib3 opens it, through a proxy and with TLS; http.client speaks over it."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from http import client
from typing import Any, BinaryIO, Protocol

from urllib3 import connection as urllib3

from eventlog.sinks.http.post import UnreadableAnswer


class KeptConnection(Protocol):
    """What `Plain` and `Encrypted` can do."""

    sock: Any

    @property
    def is_connected(self) -> bool: ...
    def connect(self) -> None: ...
    def close(self) -> None: ...
    def set_tunnel(self, host: str, port: int | None = None, headers: Mapping[str, str] | None = None) -> None: ...
    def ask(
        self, method: str, target: str, headers: Mapping[str, str], pieces: Iterable[bytes], wait: Callable[[], None]
    ) -> WholeHead: ...


class _Speaking:
    """Asks as http.client does by itself: urllib3's layer above it takes as much time again."""

    putrequest = client.HTTPConnection.putrequest
    putheader = client.HTTPConnection.putheader
    getresponse = client.HTTPConnection.getresponse
    response_class: Any
    sock: Any
    _head: list[bytes] | None = None

    def ask(
        self, method: str, target: str, headers: Mapping[str, str], pieces: Iterable[bytes], wait: Callable[[], None]
    ) -> WholeHead:
        """Send a request; return the answer with its head read.

        The headers include the body's length; `wait` is called before each send or read.
        """
        speaking: Any = self
        head: list[bytes] = []
        self._head = head
        try:
            client.HTTPConnection.request(speaking, method, target, headers=dict(headers))
        finally:
            self._head = None
        unsent = b"".join(head)
        # The head goes with the first piece: sent by itself it would wake the receiver for nothing.
        for piece in pieces:
            wait()
            self.sock.sendall(unsent + piece)
            unsent = b""
        if unsent:
            wait()
            self.sock.sendall(unsent)
        self.response_class = partial(WholeHead, wait=wait)
        answer: WholeHead = speaking.getresponse()
        return answer

    def send(self, data: Any) -> None:
        """Keeps the head of a request; whatever else http.client sends goes out."""
        if self._head is not None:
            self._head.append(data)
        else:
            # It is one, with urllib3's beside this.
            client.HTTPConnection.send(self, data)  # type: ignore[arg-type]  # see above


# urllib3 overrides http.client's methods.
class Plain(_Speaking, urllib3.HTTPConnection):  # type: ignore[misc]  # see above
    """Without TLS."""


class Encrypted(_Speaking, urllib3.HTTPSConnection):  # type: ignore[misc]  # as above
    """With TLS."""


class _Head:
    """The stream that the head of an answer is read from; `cut` when a line of it ended with the
    stream.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.cut = False

    def readline(self, limit: int = -1) -> bytes:
        line = self._stream.readline(limit)
        self.cut |= not line.endswith(b"\n")
        return line

    def close(self) -> None:
        self._stream.close()


class _TimedStream(io.RawIOBase):
    """What a socket gives, each time after a look at the clock: who sends a byte now and then never
    times out by itself.
    """

    def __init__(self, stream: io.RawIOBase, wait: Callable[[], None]) -> None:
        self._stream = stream
        self._wait = wait

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._wait()
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()


class WholeHead(client.HTTPResponse):
    """Refuses a head that breaks off: http.client takes it for a whole one, and then no answer for
    success.

    `wait` is called before anything is read.
    """

    def __init__(
        self,
        sock: socket.socket,
        *args: Any,
        wait: Callable[[], None],
        **options: Any,
    ) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_TimedStream(self.fp.detach(), wait))

    def begin(self) -> None:
        stream = self.fp
        head = _Head(stream)
        self.fp = head  # type: ignore[assignment]  # begin reads lines and nothing else
        try:
            super().begin()
            # http.client passes over 100 alone, and others come before the answer as well.
            while 100 <= self.status < 200 and self.status != client.SWITCHING_PROTOCOLS:
                self.headers = None  # type: ignore[assignment]  # else begin does nothing
                super().begin()
        finally:
            # http.client puts None there where it gives the answer up.
            if self.fp is not None:
                self.fp = stream
        if head.cut:
            raise UnreadableAnswer("it ends in its head.")
