"""The address where a running publisher can be watched: /metrics, /health and /ready."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6
from threading import Thread
from typing import Final

from eventlog.config import Config
from eventlog.daemon.exposition import CONTENT_TYPE, Answer, health, metrics, ready
from eventlog.daemon.vitals import Vitals
from eventlog.errors import ConfigError

LOOPBACK: Final = "127.0.0.1"


class _Server(ThreadingHTTPServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = AF_INET6


class Endpoint:
    """Answers on one address from a thread of its own until it is closed."""

    def __init__(self, address: str, vitals: Vitals) -> None:
        host, port = read_address(address)
        kind = _Server6 if ":" in host else _Server
        try:
            self._server = kind((host, port), _handler_of(vitals))
        except OSError as error:
            raise cannot_listen(host, port, error) from error
        self.port: int = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, name="eventlog-http", daemon=True)
        self._thread.start()

    def adopt(self, config: Config) -> None:
        """What programs ask does not depend on the configuration."""

    def close(self) -> None:
        """Gives the address back."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def cannot_listen(host: str, port: int, error: OSError) -> ConfigError:
    """Why an address cannot be had, and what to do about it."""
    hint = "End what listens there, or choose another address with --http HOST:PORT."
    return ConfigError(f"Nothing can listen on {host}:{port}: {error.strerror}.", hint=hint)


def read_address(text: str) -> tuple[str, int]:
    """Reads `9187`, `:9187` or `0.0.0.0:9187`; without a host only this machine can ask."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65_535:
        raise ConfigError(f"{text!r} is no address; it is written as 127.0.0.1:9187.")
    return host.strip("[]") or LOOPBACK, int(port)


def _handler_of(vitals: Vitals) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10.0  # somebody who says nothing does not keep a thread

        def do_GET(self) -> None:
            reading = vitals.reading()
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._reply(200, metrics(reading), CONTENT_TYPE)
            elif path in ("/health", "/ready"):
                answer: Answer = health(reading) if path == "/health" else ready(reading)
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
