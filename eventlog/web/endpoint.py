"""The address where a running publisher can be watched: /metrics, /health and /ready.

Law: who comes and asks at once is answered, however many others have come and ask nothing. So
whoever watches a publisher hears from it whatever visitors do: when all connections are taken, the
one that keeps us waiting longest makes room.
"""

from __future__ import annotations

import socket
from collections.abc import Collection
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from threading import Lock, Thread
from time import monotonic
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from eventlog.cli.site import cannot_listen, read_address
from eventlog.config.settings import Config
from eventlog.daemon.health import SILENCE_SECONDS, PublisherHealth, VitalsReading
from eventlog.web.metrics import CONTENT_TYPE, metrics


class _Connection(Struct, frozen=True, eq=False):
    """A connection that is open: all that we do for it is quick, so it is always we who wait."""

    sock: socket.socket
    peer: str
    waits_since: float
    proved: bool = False


class _EndpointServer(ThreadingHTTPServer):
    # Else the end of the process would wait for visitors that say nothing.
    daemon_threads = True
    # The library has 5, which are soon full when many come at once.
    request_queue_size = 128

    def __init__(self, *arguments: Any) -> None:
        self._open: dict[int, _Connection] = {}
        self._lock = Lock()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a new thread; close an idle connection if too many are open."""
        new = _Connection(request, client_address[0], monotonic())
        with self._lock:
            self._open[id(request)] = new
            gone = leaving(self._open.values(), new)
            for connection in gone:
                self._open.pop(id(connection.sock), None)
        for connection in gone:
            _end(connection)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(id(request), None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Ends connections that have sent nothing, or not enough, for too long."""
        now = monotonic()
        with self._lock:
            late = [connection for connection in self._open.values() if is_late(connection, now)]
        for connection in late:
            _end(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a broken connection: requests are not logged."""


class _Server6(_EndpointServer):
    address_family = socket.AF_INET6


def _end(connection: Any) -> None:
    with suppress(OSError):
        # This wakes the thread that waits for it, and that one closes it.
        connection.sock.shutdown(socket.SHUT_RDWR)


OTHER_ADDRESS: Final = "another address with --http HOST:PORT"
"""How somebody chooses where else it listens."""


class Endpoint:
    """Answers on one address from a thread of its own until it is closed."""

    def __init__(self, address: str, vitals: PublisherHealth) -> None:
        host, port = read_address(address)
        kind = _Server6 if ":" in host else _EndpointServer
        try:
            self._server = kind((host, port), _handler_of(vitals))
        except OSError as error:
            raise cannot_listen(host, port, error, OTHER_ADDRESS) from error
        # Where port 0 was asked for, the kernel has chosen one.
        self.port: int = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, name="eventlog-http", daemon=True)
        self._thread.start()

    def adopt(self, config: Config) -> None:
        """Do nothing: answers to programs do not depend on the configuration."""

    def close(self) -> None:
        # Before its socket is closed, for the thread waits on that.
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _ends_head(head: bytes) -> bool:
    return b"\n\r\n" in head or b"\n\n" in head


def _handler_of(vitals: PublisherHealth) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_SECONDS

        def setup(self) -> None:
            """Read the head at once: the library would take 6.5 MB of it from anybody."""
            super().setup()
            head = b""
            while len(head) < HEAD_BYTES and not _ends_head(head):
                more = self.connection.recv(HEAD_BYTES - len(head))
                if not more:
                    break
                head += more
            self.rfile = BytesIO(head if _ends_head(head) else b"")

        def do_GET(self) -> None:
            reading = vitals.reading()
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._reply(200, metrics(reading), CONTENT_TYPE)
            elif path in ("/health", "/ready"):
                answer: HealthAnswer = health(reading) if path == "/health" else ready(reading)
                self._reply(answer.status, answer.body, "application/json")
            else:
                self._reply(404, b"Ask for /metrics, /health or /ready.\n", "text/plain")

        def _reply(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
            """Checks come every few seconds and are not worth a line."""

    return Handler


MOST_CONNECTIONS: Final = 200
"""Connections at once."""

ADDRESS_CONNECTIONS: Final = 100
"""Connections at once from one address: whoever floods us is in nobody's way but their own."""

HEAD_BYTES: Final = 65_536
"""Bytes of a request's head; a longer one is not read."""

PATIENCE_SECONDS: Final = 10.0
"""How long we wait for a request to be there, or for an answer to be taken, before a connection ends."""


class Guest(Protocol):
    """A connection."""

    @property
    def peer(self) -> str:
        """Return the client's address."""

    @property
    def waits_since(self) -> float | None:
        """Return since when we wait for it, by a steady clock; None while it waits for us."""

    @property
    def proved(self) -> bool:
        """Return True if the last request was authorized."""


AnyGuest = TypeVar("AnyGuest", bound=Guest)


def leaving(guests: Collection[AnyGuest], newcomer: AnyGuest) -> list[AnyGuest]:
    """Choose connections to close for a newcomer: those we have waited for longest, unauthorized
    first.

    A connection being served is never closed: their number has a bound of its own.
    """
    own = [guest for guest in guests if guest.peer == newcomer.peer]
    return _longest(own, len(own) - ADDRESS_CONNECTIONS, newcomer) or _longest(
        guests, len(guests) - MOST_CONNECTIONS, newcomer
    )


def _longest(guests: Collection[AnyGuest], count: int, newcomer: AnyGuest) -> list[AnyGuest]:
    if count <= 0:
        return []
    idle = [(guest.proved, guest.waits_since, guest) for guest in guests if guest is not newcomer]
    waiting = [(proved, since, guest) for proved, since, guest in idle if since is not None]
    return [guest for _, _, guest in sorted(waiting, key=lambda entry: entry[:2])[:count]]


def is_late(guest: Guest, now: float) -> bool:
    """Return True if the client has kept us waiting too long."""
    return guest.waits_since is not None and now - guest.waits_since >= PATIENCE_SECONDS


READY: Final = frozenset({"standby", "publishing"})


class HealthAnswer(Struct, frozen=True, kw_only=True):
    """A check's answer: an HTTP status and a body. Anybody may ask, so it has no text of an error."""

    status: int
    body: bytes


def health(reading: VitalsReading) -> HealthAnswer:
    """Answer whether the process should be kept alive."""
    return _answer(reading, good=reading.silent < SILENCE_SECONDS)


def ready(reading: VitalsReading) -> HealthAnswer:
    """Answer whether it publishes, or stands ready to take over."""
    return _answer(reading, good=reading.state in READY and reading.silent < SILENCE_SECONDS)


def _answer(reading: VitalsReading, *, good: bool) -> HealthAnswer:
    body: dict[str, object] = {"state": reading.state, "silent_seconds": round(reading.silent, 1)}
    # Figures only: anybody may ask, and which host has the lock is not for anybody.
    if reading.standby is not None:
        standby = reading.standby
        body["standby"] = {"waiting": standby.waiting, "stalled_seconds": standby.stalled_seconds}
    return HealthAnswer(status=200 if good else 503, body=msgspec.json.encode(body) + b"\n")
