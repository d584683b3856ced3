"""The webhook sink: each document is one signed request, and the status of the answer says what
becomes of its events.

Law: a document is sent until a status has answered it, under one id: what a receiver has seen, it
can leave out. 2xx is success, whatever is written under it; 429, 5xx and silence wait; a
redirection stops, for it would lead what is signed elsewhere; all other statuses of 4xx end the
events as errors, with the reason.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from eventlog.core.errors import OccupiedError, SinkError, shorten
from eventlog.core.model import Document, Outcome, Reason, Status
from eventlog.core.secrets import mask_secrets
from eventlog.sinks.events.cloudevents import binary
from eventlog.sinks.http.pause import Pause
from eventlog.sinks.http.post import HttpAnswer, Poster, UnreadableAnswer
from eventlog.sinks.http.sink import NOTE_CHARACTERS, HttpLane, HttpSink, Reply, again_later, may_pass
from eventlog.sinks.http.tokens import Tokens
from eventlog.sinks.webhook.settings import WebhookSettings, secret_bytes
from eventlog.sinks.webhook.signing import message_id, signatures

if TYPE_CHECKING:
    import ssl
    from http.client import HTTPResponse

Clock = Callable[[], float]


class Shared:
    """What all connections to one receiver have in common."""

    def __init__(self, settings: WebhookSettings) -> None:
        self.pause = Pause()
        self.tokens = Tokens(settings) if settings.oauth_url else None


class WebhookPoster(Poster):
    """POSTs signed documents. What an answer says beneath its status is read, and does not count."""

    def __init__(
        self,
        settings: WebhookSettings,
        content_type: str,
        *,
        is_binary: bool = False,
        clock: Clock = time.time,
        trusted: ssl.SSLContext | None = None,
        shared: Shared | None = None,
    ) -> None:
        super().__init__(replace(settings, url=settings.base), trusted)
        self._webhook = settings
        self._content_type = content_type
        self._is_binary = is_binary
        self._clock = clock
        self._keys = [key for key in map(secret_bytes, settings.secrets) if key is not None]
        self._unread = False
        self._sent_login = ""
        self._shared = shared or Shared(settings)
        self.pause: Pause = self._shared.pause
        self.tokens: Tokens | None = self._shared.tokens
        self._secrets = (*self._secrets, *settings.secrets)

    def another(self) -> WebhookPoster:
        return WebhookPoster(
            self._webhook,
            self._content_type,
            is_binary=self._is_binary,
            clock=self._clock,
            trusted=self._trust,
            shared=self._shared,
        )

    def post(self, document: Document, plan: str = "") -> HttpAnswer:
        """Post a document; refetch a refused token once and try again."""
        answer = self._post(document, plan)
        if answer.status == HTTPStatus.UNAUTHORIZED and self.tokens is not None:
            # Only the one that was sent: another connection may have fetched a new one meanwhile.
            self.tokens.forget(self._sent_login)
            answer = self._post(document, plan)
        return answer

    def _post(self, document: Document, plan: str) -> HttpAnswer:
        self._unread = False
        try:
            return super().post(document, plan)
        finally:
            if self._unread:
                self._drop()

    def discreet(self, text: str) -> str:
        """Mask our credentials in a receiver's text, tokens included."""
        return mask_secrets(super().discreet(text), (self._sent_login.rpartition(" ")[2],))

    def close(self) -> None:
        super().close()
        if self.tokens is not None:
            self.tokens.close()

    def _content(self, document: Document, plan: str) -> tuple[dict[str, str], bytes]:
        headers, body = super()._content(document, plan)
        headers |= {"Content-Type": self._content_type, "Accept": "*/*"}
        if self._is_binary:
            attributes, body = binary(body)
            headers |= attributes
        identity, now = message_id(plan, document.id), int(self._clock())
        headers |= {
            "webhook-id": identity,
            "webhook-timestamp": str(now),
            "webhook-signature": signatures(self._keys, identity, now, body),
        }
        if self.tokens is not None:
            headers["Authorization"] = self._sent_login = self.tokens.header()
        if self._webhook.compression == "gzip":
            # What is signed is what the receiver's application gets, behind whatever unpacks it.
            return headers | {"Content-Encoding": "gzip"}, gzip.compress(body, mtime=0)
        return headers, body

    def _body(self, response: HTTPResponse) -> bytes:
        """Read the body of a success; it does not count."""
        try:
            return super()._body(response)
        except UnreadableAnswer:
            # Cut short or too long: the rest goes with the connection.
            self._unread = True
            return b""


class WebhookLane(HttpLane):
    """Sends documents over one connection."""

    _poster: WebhookPoster

    def _send(self, document: Document, plan: str) -> Reply:
        poster = self._poster
        left = poster.pause.seconds_left
        if left:
            raise SinkError(
                f"{poster.address} asked to wait: {left:.0f} s are left.",
                hint="It is tried again.",
            )
        try:
            answer = poster.post(document, plan)
        except UnreadableAnswer as error:
            problem = f"{poster.address} gave an answer that cannot be read: {error}"
            return again_later(document, problem)
        if answer.taken:
            return Reply()
        if answer.overtaken:
            problem = f"{poster.address} gets its documents from a later publisher."
            raise OccupiedError(problem, hint="This one sends nothing more.")
        if may_pass(answer.status):
            # All connections to the receiver keep the pause that one of them was asked for.
            poster.pause.ask(answer.retry_after)
            raise self._explain_refusal(answer)
        if answer.status < HTTPStatus.BAD_REQUEST:
            # A redirection would lead what is signed elsewhere, so nobody follows it.
            raise self._explain_refusal(answer)
        note = shorten(f"the receiver answered {answer.summary}", NOTE_CHARACTERS)
        outcomes = []
        for positions in document.covers.values():
            for position in positions:
                refusal = Outcome(position=position, status=Status.ERROR, reason=Reason.REFUSED)
                outcomes.append(replace(refusal, note=note))
        return Reply(outcomes=tuple(outcomes))


class WebhookSink(WebhookLane, HttpSink):
    """Several connections to one receiver, of which it is the first itself."""

    lane: ClassVar[type[HttpLane]] = WebhookLane

    def __init__(
        self,
        settings: WebhookSettings,
        content_type: str,
        *,
        is_binary: bool = False,
    ) -> None:
        poster = WebhookPoster(settings, content_type, is_binary=is_binary)
        HttpSink.__init__(self, settings, poster)
