"""A receiver of XDS documents with whims: it remembers what it took under which plan and id, and
answers as the seed has it.

One server for all histories. It answers while the process that has asked waits, so that whims come
in the same order again.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Thread
from typing import Final

from msgspec import Struct

from tests.histories.accidents import Accidents
from tests.histories.targets import Arrival, Target, rows_in

_event = re.compile(rb'<(?:add|modify|delete)\b[^>]*?event-id="([^"]+)"[^>]*>.*?</(?:add|modify|delete)>', re.DOTALL)

LEVELS: Final = {"W": "warning", "E": "error", "N": "retry"}


class Said(Struct, frozen=True):
    """What a request is answered: a status, a body, and whether the connection breaks in place of
    it.
    """

    status: int = 200
    body: bytes = b""
    broken: bool = False
    epoch: int | None = None


class Desk:
    """The receiver of one target: what it remembers, and its whims, which end with `quiet`."""

    def __init__(self, target: Target, rng: Random, accidents: Accidents, trace: Callable[[str], None]) -> None:
        self.quiet = False
        self._target = target
        self._rng = rng
        self._accidents = accidents
        self._trace = trace
        self._epoch = 0
        self._known: dict[tuple[str, str, str], str] = {}

    def take(self, plan: str, document: str, epoch: int, body: bytes) -> Said:
        """The answer to a document; what of it was not known is taken, or not, as it happens."""
        if epoch < self._epoch:
            return Said(status=409, epoch=self._epoch)
        self._epoch = epoch
        whim = self._whim()
        events = [(match[1].decode(), rows_in(match[0])) for match in _event.finditer(body)]
        if whim in ("away", "unreadable", "cut_off"):
            self._trace(f"{self._target.name} has not taken {document} of {plan[:6]}: {whim}")
            return self._not_readable(whim)
        answers = self._answers(whim, plan, document, events)
        told = " ".join(f"{event}={letter}" for event, letter in answers.items())
        self._trace(f"{self._target.name} answers {document} of {plan[:6]}: {told} {whim}")
        for event, rows in events:
            letter, key = answers[event], (plan, document, event)
            if letter != "N" and key not in self._known:
                self._known[key] = letter
                for uid in rows:
                    self._target.arrived(Arrival(uid, f"{plan} {document}", letter))
        if whim in ("unreadable_taken", "cut_off_taken"):
            return self._not_readable(whim)
        return Said(body=_reply(answers))

    def _whim(self) -> str:
        if self.quiet:
            return ""
        draw = self._rng.random()
        for name in (
            *("away", "unreadable", "cut_off", "unreadable_taken", "cut_off_taken"),
            *("retry", "partial_retry", "refused", "warned"),
        ):
            draw -= getattr(self._accidents, name)
            if draw < 0:
                return name
        return ""

    def _answers(self, whim: str, plan: str, document: str, events: list[tuple[str, list[int]]]) -> dict[str, str]:
        """The letter of each event: that of the first time, where it was taken under this plan
        before.
        """
        letters = {"refused": "E", "warned": "W", "retry": "N", "partial_retry": "N"}
        first = self._rng.randrange(len(events)) if whim == "partial_retry" and events else 0
        new = [letters.get(whim, "S") if number >= first else "S" for number in range(len(events))]
        return {
            event: self._known.get((plan, document, event), letter)
            for (event, _), letter in zip(events, new, strict=True)
        }

    def _not_readable(self, whim: str) -> Said:
        if whim == "away":
            return Said(status=503, body=b"Later.")
        return Said(broken=True) if whim.startswith("cut_off") else Said(body=b"<nds><output>")


def _reply(answers: dict[str, str]) -> bytes:
    found = [
        f'<status level="{LEVELS[letter]}" event-id="{event}">as it happens</status>'
        for event, letter in answers.items()
        if letter in LEVELS
    ]
    return f'<nds dtdversion="2.0"><output>{"".join(found)}</output></nds>'.encode()


class Receiver:
    """The server: who is registered under a name gets what is sent there."""

    def __init__(self) -> None:
        self.desks: dict[str, Desk] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/{name}"

    @contextmanager
    def serving(self) -> Iterator[Receiver]:
        """The server while it answers."""
        thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536
        timeout = 60

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            plan, document = self.headers["Eventlog-Plan"] or "", self.headers["Eventlog-Document"]
            desk = receiver.desks[self.path.strip("/")]
            said = desk.take(plan, document, int(self.headers["Eventlog-Epoch"] or 0), body)
            if said.broken:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(said.status)
            if said.epoch is not None:
                self.send_header("Eventlog-Epoch", str(said.epoch))
            self.send_header("Content-Length", str(len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    return Handler
