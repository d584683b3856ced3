"""A receiver of documents that is not ours: keeps each once by its id, and now and then refuses or breaks off."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any


class Inbox:
    """Documents by their ids in the order in which they came first."""

    def __init__(self, seed: int, trouble: float) -> None:
        self.documents: dict[str, bytes] = {}
        self.port = 0
        self._dice = random.Random(seed)
        self._trouble = trouble
        self._lock = Lock()

    def take(self, identity: str, body: bytes) -> str:
        """What becomes of a request: taken, refused before, or taken and never answered."""
        with self._lock:
            fate = self._dice.random()
            if fate < self._trouble:
                return "refused"
            self.documents.setdefault(identity, body)
            return "silent" if fate < 2 * self._trouble else "taken"


@contextmanager
def inbox(seed: int, trouble: float = 0.02) -> Iterator[Inbox]:
    """A receiver at work."""
    found = Inbox(seed, trouble)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:  # the connection was cut in its middle
                self.close_connection = True
                return
            fate = found.take(self.headers["Eventlog-Document"], body)
            if fate == "silent":
                self.close_connection = True
                return
            self.send_response(503 if fate == "refused" else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A publisher that was killed leaves its connection: that is what this is about."""

    server = Server(("127.0.0.1", 0), Handler)
    found.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
