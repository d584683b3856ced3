"""The page on an address: one server and one port for it, and for /metrics, /health and /ready
beside it.

A connection that lets us wait ends, and makes room where too many are open.
"""

from __future__ import annotations

import socket
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from threading import Thread
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from h11 import LocalProtocolError
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from structlog.stdlib import BoundLogger
from uvicorn.protocols.http.h11_impl import H11Protocol

from eventlog.cli.site import cannot_listen, read_address
from eventlog.config.settings import Config
from eventlog.core.errors import ConfigError
from eventlog.queries.serve import QueryDesk
from eventlog.web.app import PROVED, App
from eventlog.web.endpoint import HEAD_BYTES, OTHER_ADDRESS, PATIENCE_SECONDS, health, is_late, leaving, ready
from eventlog.web.guard import Guard, is_open_door
from eventlog.web.log_opener import LogOpener
from eventlog.web.metrics import CONTENT_TYPE, metrics
from eventlog.web.refused_logins import RefusedLogins
from eventlog.web.settings import settings_of

if TYPE_CHECKING:
    from eventlog.daemon.health import PublisherHealth


class Connection(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with an end to waiting."""

    waits_since: float | None = None
    peer = ""
    proved = False
    _timer: TimerHandle | None = None
    _judged: object = None

    # As uvicorn has it.
    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # see above
        super().connection_made(transport)
        self.peer = self.client[0] if self.client else ""
        self.waits_since = self.loop.time()
        self._timer = self.loop.call_later(PATIENCE_SECONDS, self._look)
        others = [other for other in self.connections if isinstance(other, Connection)]
        for connection in leaving(others, self):
            connection.end()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # In pieces: the bound of a head counts only while it is not whole.
        for begin in range(0, len(data), HEAD_BYTES):
            if self.transport.is_closing():
                return
            try:
                super().data_received(data[begin : begin + HEAD_BYTES])
            except LocalProtocolError:
                # What came behind a request is none, and that one's answer has begun already.
                self.end()
                return
        self._judge()

    def on_response_complete(self) -> None:
        self.proved = PROVED in self.cycle.scope
        super().on_response_complete()
        self._judge()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._judge()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._judge()

    def end(self) -> None:
        # At once: until the loop reports the loss it would count as one that is open.
        self.connections.discard(self)
        self.transport.abort()

    def _judge(self) -> None:
        """Restart or stop the clock if the other side now waits for us or we for it."""
        cycle: Any = self.cycle
        # The other side has something to do: to ask, to finish asking, or to take the answer.
        is_theirs = cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused
        if not is_theirs:
            self.waits_since = None
        elif self.waits_since is None or self.cycle is not self._judged:
            self.waits_since = self.loop.time()
        self._judged = self.cycle

    def _look(self) -> None:
        if is_late(self, self.loop.time()):
            self.end()
            return
        rest = PATIENCE_SECONDS
        if self.waits_since is not None:
            rest -= self.loop.time() - self.waits_since
        # Never nothing: a look that came a moment too early would be followed by the next at once.
        self._timer = self.loop.call_later(max(rest, 0.1), self._look)


WAKE_SECONDS: Final = 1.0
"""So often it is looked whether a signal has asked for something."""

START_SECONDS: Final = 10.0


class PageServer:
    """Serves the page from threads of its own until it is closed; with vitals, what watches a
    publisher as well.
    """

    def __init__(
        self,
        address: str,
        opener: LogOpener,
        journal: BoundLogger,
        vitals: PublisherHealth | None = None,
    ) -> None:
        host, port = read_address(address)
        refuse_open_door(host, opener.config)
        self._opener = opener
        self._host = host
        self._journal = journal
        self._app = App(opener, Guard(settings_of(opener.config)), journal)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Here and not in the server's thread, so that a port that is taken is an error of the command.
        try:
            self._socket = socket.create_server((host, port), family=family)
        except OSError as error:
            raise cannot_listen(host, port, error, OTHER_ADDRESS) from error
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"
        self._queries = QueryDesk(opener.config, journal)
        beside = [
            *_watching(vitals, self._app.refused_logins),
            Route("/query", self._queries.handle, methods=["GET", "POST"]),
        ]
        self._server = uvicorn.Server(_settings(self._app.starlette(*beside)))
        self._thread = Thread(
            target=self._server.run,
            kwargs={"sockets": [self._socket]},
            name="eventlog-web",
            daemon=True,
        )
        # Both after the port is ours: an address that is taken leaves no thread behind.
        opener.start()
        self._thread.start()
        end = monotonic() + START_SECONDS
        # uvicorn shows by this attribute alone that it listens.
        while not self._server.started and self._thread.is_alive() and monotonic() < end:
            sleep(0.005)

    def adopt(self, config: Config) -> None:
        """Shows another configuration from now on, to those whom it lets in; who may come stays
        where it would be all.
        """
        former = self._app.guard.settings
        try:
            refuse_open_door(self._host, config)
        except ConfigError as error:
            self._journal.error("page_reload_failed", error=str(error))
            # The log changes all the same; only who may come does not.
            config = replace(config, tables={**config.tables, "web": former})
        self._opener.adopt(config)
        self._queries.adopt(config)
        # Sessions that somebody has ended stay ended.
        settings = settings_of(config)
        if settings != former:
            self._app.guard = self._app.guard.adopting(settings, time())

    def stop(self) -> None:
        self._app.closing = True
        self._server.should_exit = True

    def close(self) -> None:
        """Gives the address and the connections back."""
        self.stop()
        self._thread.join()
        self._app.refused_logins.write()
        self._socket.close()
        self._queries.close()
        self._opener.close()

    def wait(self, between: Callable[[], None]) -> None:
        """Wait for the end; call `between` regularly for requests by signals."""
        # A signal that comes just before a wait without end would be heeded by the next one only.
        while self._thread.is_alive():
            self._thread.join(WAKE_SECONDS)
            between()


def refuse_open_door(host: str, config: Config) -> None:
    """Refuses an address that others reach, as long as nobody has to prove anything."""
    if is_open_door(host, settings_of(config)):
        raise ConfigError(
            f"The page would be open to everybody who reaches {host}.",
            hint="Set web.token, or web.user_header behind a proxy; or listen on 127.0.0.1.",
        )


def _settings(app: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # Starlette is an ASGI application, its type does not say so
        log_config=None,
        access_log=False,
        lifespan="off",
        # Who asks is the guard's business.
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=HEAD_BYTES,
        # Its warnings are about what strangers send: they would write as many lines as they like.
        log_level="error",
        ws="none",
        # Streams end by themselves a quarter of a second after `closing`.
        timeout_graceful_shutdown=2,
        http=Connection,
    )


def _watching(vitals: PublisherHealth | None, logins: RefusedLogins) -> list[Route]:
    """Make routes for programs: metrics and health, without a token; they tell no rows or values.

    The server's own thread answers, so it never waits for threads reading the log.
    """

    async def watches(_request: Request) -> Response:
        return Response(b'{"state":"watching"}\n', media_type="application/json")

    if vitals is None:
        return [Route("/health", watches)]

    async def answer_check(request: Request) -> Response:
        answer = (health if request.url.path == "/health" else ready)(vitals.reading())
        return Response(answer.body, answer.status, media_type="application/json")

    async def answer_metrics(_request: Request) -> Response:
        return Response(metrics(vitals.reading(), logins.total), headers={"Content-Type": CONTENT_TYPE})

    return [Route("/health", answer_check), Route("/ready", answer_check), Route("/metrics", answer_metrics)]
