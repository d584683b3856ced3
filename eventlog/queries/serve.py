"""The address /query: who has the token asks by POST, in so many slots, and gets one document."""

from __future__ import annotations

from hmac import compare_digest
from threading import Lock
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from structlog.stdlib import BoundLogger

from eventlog.config.settings import Config
from eventlog.core.errors import XmlError
from eventlog.queries.answer import Answerer
from eventlog.queries.asked import read_asked
from eventlog.queries.instances import write_answer, write_status
from eventlog.queries.settings import settings_of

BODY_BYTES: Final = 1_000_000
"""Bytes of a document that asks."""

MOST_MESSAGES: Final = 100
"""Questions in a document."""

XML: Final = "application/xml; charset=UTF-8"


class QueryDesk:
    """Answers at /query as long as the configuration has a token for it."""

    def __init__(self, config: Config, journal: BoundLogger) -> None:
        self._journal = journal
        self._at_work = 0
        self._lock = Lock()
        self.adopt(config)

    def adopt(self, config: Config) -> None:
        """Go by another configuration from now on."""
        self._settings = settings_of(config)
        self._answerer = Answerer(config, lambda problem: self._journal.warning("query_waits", error=problem))

    def close(self) -> None:
        """Give the connections back."""
        self._answerer.close()

    async def handle(self, request: Request) -> Response:
        """Answer one request."""
        if self._settings.token is None:
            return _says(404, "error", "Nothing is answered here.")
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not compare_digest(given.encode(), self._settings.token.encode()):
            refused = _says(401, "error", "The token is missing, or is another one.")
            refused.headers["WWW-Authenticate"] = "Bearer"
            return refused
        if request.method != "POST":
            refused = _says(405, "error", "A document that asks is sent by POST.")
            refused.headers["Allow"] = "POST"
            return refused
        with self._lock:
            busy = self._at_work >= self._settings.slots
            self._at_work += not busy
        if busy:
            return _says(503, "retry", "All slots are taken; ask again later.")
        try:
            return await self._answer_post(request)
        finally:
            with self._lock:
                self._at_work -= 1

    async def _answer_post(self, request: Request) -> Response:
        body = bytearray()
        try:
            async for piece in request.stream():
                body += piece
                if len(body) > BODY_BYTES:
                    return _says(413, "error", f"A document that asks has {BODY_BYTES} bytes at most.")
        except ClientDisconnect:
            return Response(status_code=400)
        try:
            asked = read_asked(bytes(body))
        except XmlError as error:
            return _says(400, "error", str(error))
        if len(asked) > MOST_MESSAGES:
            return _says(400, "error", f"A document asks {MOST_MESSAGES} questions at most.")
        try:
            told = await run_in_threadpool(self._answerer.answer, asked)
        except Exception as error:  # noqa: BLE001 - who asks learns nothing of the machine, and the journal does
            self._journal.error("query_failed", error=f"{type(error).__name__}: {error}")
            return _says(500, "error", "This failed; the publisher's journal says more.")
        return Response(told, media_type=XML)


def _says(code: int, level: str, text: str) -> Response:
    return Response(write_answer([write_status(level, "", text)]), code, media_type=XML)
