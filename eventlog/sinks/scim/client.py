"""What speaks SCIM to a receiver: one connection that is kept, logins, pauses, and answers in the receiver's words."""

from __future__ import annotations

import ssl
import time
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from eventlog.core import tracing
from eventlog.core.errors import SinkError, shorten
from eventlog.core.model import Document
from eventlog.core.secrets import mask_secrets
from eventlog.sinks.http.oauth import OauthSettings
from eventlog.sinks.http.pause import Pause
from eventlog.sinks.http.post import USER_AGENT, HttpAnswer, Poster, UnreadableAnswer
from eventlog.sinks.http.sink import HINTS, NOTE_CHARACTERS, may_pass
from eventlog.sinks.http.tokens import Tokens

MEDIA_TYPE: Final = "application/scim+json"
ERROR: Final = "urn:ietf:params:scim:api:messages:2.0:Error"
"""The schema of what a server says that works, though not for this request."""


UNDONE: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
"""Statuses of servers that have not begun to do what was asked."""

PIECE_SECONDS: Final = 0.1
"""After so much of a wait somebody looks whether it is broken off."""


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    query: str = ""
    body: bytes = b""
    tag: str = ""


class ScimAnswer(NamedTuple):
    """An answer, and what stands in it; `tag` is the version of a resource, `date` the receiver's clock."""

    status: int
    content: dict[str, Any]
    tag: str = ""
    said: str = ""
    date: str = ""

    @property
    def is_taken(self) -> bool:
        """Tell whether the receiver did what it was asked for."""
        return 200 <= self.status < 300

    @property
    def type(self) -> str:
        """Return SCIM's type of the error."""
        return str(self.content.get("scimType") or "")

    @property
    def note(self) -> str:
        """Explain a refusal."""
        detail = self.content.get("detail") or self.content.get("error_description") or self.content.get("errorMessage")
        if not detail:
            return shorten(f"the receiver answered {self.said}", NOTE_CHARACTERS)
        words = " ".join(filter(None, (str(self.status), self.type)))
        return shorten(f"the receiver answered {words}: {' '.join(str(detail).split())}", NOTE_CHARACTERS)


class FailedError(SinkError):
    """A server that works fails at one request, and says so in SCIM's words: others may go well."""

    def __init__(self, message: str, note: str) -> None:
        super().__init__(message, hint="It is tried again.")
        self.note = note


class Door:
    """What all connections to one receiver have in common."""

    def __init__(self, settings: OauthSettings) -> None:
        self.pause = Pause()
        self.tokens = Tokens(settings) if settings.oauth_url else None


class ScimClient(Poster):
    """Asks one receiver over one connection."""

    _reads_refusals = True

    def __init__(
        self, settings: OauthSettings, trusted: ssl.SSLContext | None = None, door: Door | None = None
    ) -> None:
        super().__init__(settings, trusted)
        self._door = door or Door(settings)
        self._oauth = settings
        self._asked = Asked("GET", "")
        self._sent_login = ""
        self.may_be_done = False
        """Whether the last request may be done, or may still be, though nobody has said so."""

    def another(self) -> ScimClient:
        """Make one with a connection of its own to the same receiver."""
        return self.at(self._oauth)

    def at(self, settings: OauthSettings) -> ScimClient:
        """Make one for another address, with the same login and the same pauses."""
        return ScimClient(settings, self._trust, self._door)

    def ask(
        self, method: str, path: str, content: Any = None, *, query: dict[str, str] | None = None, tag: str = ""
    ) -> ScimAnswer:
        """Ask, and give what was answered; SinkError where nobody could ask now."""
        body = b"" if content is None else msgspec.json.encode(content)
        # Some servers read a + as it stands.
        asked = Asked(method, path, urlencode(query, quote_via=quote) if query else "", body, tag)
        left = self._door.pause.seconds_left
        if left:
            raise SinkError(f"{self.address} asked to wait: {left:.0f} s are left.", hint="It is tried again.")
        self.may_be_done = False
        answer = self._answer(asked)
        tokens = self._door.tokens
        if answer.status == HTTPStatus.UNAUTHORIZED and tokens is not None:
            # Only the one that was sent: another connection may have fetched a new one meanwhile.
            tokens.forget(self._sent_login)
            answer = self._answer(asked)
        passes = may_pass(answer.status) and answer.status != HTTPStatus.NOT_IMPLEMENTED
        if passes:
            # All connections to the receiver keep the pause that one of them was asked for.
            self._door.pause.ask(answer.retry_after)
        if answer.status == HTTPStatus.INTERNAL_SERVER_ERROR and not answer.retry_after:
            failure = self._read(answer)
            if ERROR.lower() in str(failure.content.get("schemas", "")).lower():
                self.may_be_done = False
                raise FailedError(f"{self.address} answered {failure.said}.", failure.note)
        if passes or answer.status == HTTPStatus.UNAUTHORIZED or 300 <= answer.status < 400:
            raise self._explain_refusal(answer, passes=passes)
        return self._read(answer)

    def wrong_address(self, answer: ScimAnswer) -> SinkError:
        """Make the error of an address at which nobody takes resources."""
        hint = HINTS.get(answer.status, HINTS[HTTPStatus.NOT_FOUND])
        return SinkError(f"{self.address} answered {answer.said}.", hint=hint, may_pass=False)

    def wait(self, seconds: float) -> None:
        """Wait so long, unless somebody breaks off."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self._broken_off:
            time.sleep(min(left, PIECE_SECONDS))

    def discreet(self, text: str) -> str:
        """Give a receiver's text without our credentials, tokens too."""
        return mask_secrets(super().discreet(text), (self._sent_login.rpartition(" ")[2],))

    def close(self) -> None:
        """Close the connections, the one for tokens too."""
        super().close()
        if self._door.tokens is not None:
            self._door.tokens.close()

    def _answer(self, asked: Asked) -> HttpAnswer:
        self._asked, self._method = asked, asked.method
        return self.post(Document(id="", body=asked.body, covers={}))

    def _exchange(self, *asked: Any) -> HttpAnswer:
        self.may_be_done = True
        answer = super()._exchange(*asked)
        self.may_be_done = may_pass(answer.status) and answer.status not in UNDONE
        return answer

    def _explain_refusal(self, answer: HttpAnswer, *, passes: bool) -> SinkError:
        hint = "It is tried again." if passes else HINTS.get(answer.status, "Check the output's `url`.")
        return SinkError(f"{self.address} answered {self.discreet(answer.summary)}.", hint=hint, may_pass=passes)

    def _read(self, answer: HttpAnswer) -> ScimAnswer:
        said = self.discreet(answer.summary)
        return ScimAnswer(answer.status, self._content_of(answer), answer.tag, said, answer.date)

    def _content_of(self, answer: HttpAnswer) -> dict[str, Any]:
        if not answer.body.strip():
            return {}
        try:
            content = msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, UnicodeError) as error:
            if not answer.taken:
                return {}
            raise UnreadableAnswer("it is no JSON.") from error
        content = content if isinstance(content, dict) else {}
        # What a refusal says is shown; some receivers repeat a login when they complain.
        if not answer.taken:
            said = content.get("error")
            if isinstance(said, dict):  # as Microsoft Graph does
                content = {"scimType": said.get("code"), "detail": said.get("message")}
            content = {key: self.discreet(str(value)) for key, value in content.items() if value is not None}
        return content

    def _target(self, route: str) -> str:
        query = "&".join(filter(None, (self._query.lstrip("?"), self._asked.query)))
        return self._path.rstrip("/") + self._asked.path + (f"?{query}" if query else "")

    def _headers(self, document: Document, plan: str) -> dict[str, str]:
        headers = {"Accept": f"{MEDIA_TYPE}, application/json", "User-Agent": USER_AGENT}
        if document.body:
            headers["Content-Type"] = MEDIA_TYPE
        if self._asked.tag:
            headers["If-Match"] = self._asked.tag
        headers |= tracing.headers()
        if self._door.tokens is not None:
            headers["Authorization"] = self._sent_login = self._door.tokens.header()
        elif self._settings.authorization is not None:
            headers["Authorization"] = self._settings.authorization
        return headers
