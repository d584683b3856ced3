"""A TCP proxy under the test's control: it delays, throttles, resets and half-closes what goes through it."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from contextlib import suppress
from threading import Lock, Thread
from typing import Final, Self

PIECE: Final = 65536
RESET: Final = struct.pack("ii", 1, 0)
"""Linger for no time: closing sends a reset."""


class Proxy:
    """Between clients and a server. `delay` is seconds before each piece, `rate` bytes a second; both hold from now on.

    While it is not `open` it lets nobody in; `carried` counts bytes, `refused` those who came meanwhile.
    """

    def __init__(self, host: str, port: int) -> None:
        self.delay = 0.0
        self.rate = 0.0
        self.open = True
        self.carried = 0
        self.refused = 0
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._over = False
        self._accepting = Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        with suppress(OSError):  # wakes the accept that waits
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        self._accepting.join(5)
        self.reset()
        self._listener.close()

    @property
    def connections(self) -> int:
        """How many go through it now."""
        return len(self._pairs)

    def reset(self) -> int:
        """Breaks every connection as a firewall does that has forgotten it, and says how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for one in pair:
                with suppress(OSError):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
        return len(pairs)

    def half_close(self) -> None:
        """Tells each client that the server has nothing more to say, and goes on listening to it."""
        with self._lock:
            for client, _ in self._pairs:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_WR)

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            if self._over or not self.open:
                client.close()
                if self._over:
                    return
                self.refused += 1
                continue
            try:
                pair = client, socket.create_connection(self._server, 5)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs.append(pair)
            Thread(target=self._carry, args=(pair,), daemon=True).start()

    def _carry(self, pair: tuple[socket.socket, socket.socket]) -> None:
        client, server = pair
        with selectors.DefaultSelector() as ready, suppress(OSError, ValueError):
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while self._passed(ready):
                continue
        with self._lock:
            if pair in self._pairs:
                self._pairs.remove(pair)
        for one in pair:
            one.close()

    def _passed(self, ready: selectors.BaseSelector) -> bool:
        """Carries what is there; False when either side has ended."""
        for key, _ in ready.select(0.2):
            source, target = key.fileobj, key.data
            assert isinstance(source, socket.socket)
            piece = source.recv(min(PIECE, int(self.rate / 10) or 1) if self.rate else PIECE)
            if not piece:
                return False
            time.sleep(self.delay + (len(piece) / self.rate if self.rate else 0.0))
            target.sendall(piece)
            self.carried += len(piece)
        return True
