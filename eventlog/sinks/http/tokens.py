"""Tokens of OAuth 2 by client credentials: fetched when needed, kept while they are good, and the
same for all connections.
"""

from __future__ import annotations

import time
from base64 import b64encode
from threading import Lock
from typing import Final
from urllib.parse import quote, quote_plus, urlencode

import msgspec
from msgspec import Struct

from eventlog.core.errors import SinkError
from eventlog.core.model import Document
from eventlog.sinks.http.oauth import OauthSettings
from eventlog.sinks.http.post import USER_AGENT, Poster, UnreadableAnswer
from eventlog.sinks.http.sink import may_pass

EARLY_SECONDS: Final = 30.0
"""A token is fetched again so long before its end."""

UNSTATED_SECONDS: Final = 300.0
"""How long a token is kept whose end nobody states."""


class TokenAnswer(Struct, frozen=True):
    """An answer of the token server."""

    access_token: str
    token_type: str = "Bearer"  # noqa: S105  # the name of a scheme
    expires_in: float | None = None


class Tokens:
    """The token for one receiver."""

    def __init__(self, settings: OauthSettings) -> None:
        self._poster = _TokenPoster(settings)
        self._form = {"grant_type": "client_credentials"}
        if settings.oauth_scope:
            self._form["scope"] = settings.oauth_scope
        self._lock = Lock()
        self._token = ""
        self._good_until = 0.0

    def header(self) -> str:
        """Return the `Authorization` header, with a token fetched anew once it expires."""
        # Held while one is fetched: all connections wait for the same token.
        with self._lock:
            if not self._token or time.monotonic() >= self._good_until:
                self._fetch()
            return f"Bearer {self._token}"

    def forget(self, header: str) -> None:
        """Forgets the token that a receiver has refused, unless it has been replaced already."""
        with self._lock:
            if header == f"Bearer {self._token}":
                self._token = ""

    def close(self) -> None:
        with self._lock:
            self._poster.close()

    def _fetch(self) -> None:
        address = self._poster.address
        try:
            form = urlencode(self._form).encode()
            answer = self._poster.post(Document(id="", body=form, covers={}))
            if not answer.taken:
                hint = "Check output.oauth_client_id and output.oauth_client_secret."
                problem = f"{address} gave no token: it answered {answer.summary}."
                raise SinkError(problem, hint=hint, may_pass=may_pass(answer.status))
            # Not strict, for there are servers that write the number of seconds as a text.
            answered = msgspec.json.decode(answer.body, type=TokenAnswer, strict=False)
        except (UnreadableAnswer, msgspec.DecodeError, UnicodeError) as error:
            raise SinkError(
                f"{address} gave an answer that is no token.",
                hint="It is tried again.",
            ) from error
        token = answered.access_token
        if not token or not token.isascii() or not token.isprintable():
            raise SinkError(
                f"{address} gave a token that no header can carry.",
                hint="It is tried again.",
            )
        self._token = token
        good = UNSTATED_SECONDS
        if answered.expires_in is not None:
            good = answered.expires_in
        # At least a second, or a token that ends soon would be fetched for each document.
        self._good_until = time.monotonic() + max(good - EARLY_SECONDS, 1.0)


class _TokenPoster(Poster):
    """Asks for tokens; the client says who it is in the header, as every server must take it."""

    def __init__(self, settings: OauthSettings) -> None:
        super().__init__(settings.token_endpoint())
        # Both are form-encoded before they are joined (RFC 6749, section 2.3.1).
        login = f"{quote_plus(settings.oauth_client_id)}:{quote_plus(settings.oauth_client_secret)}"
        self._login = b64encode(login.encode()).decode()
        forms = (settings.oauth_client_secret, quote(settings.oauth_client_secret), self._login)
        self._secrets = (*self._secrets, *forms)

    def _headers(self, document: Document, plan: str) -> dict[str, str]:
        return {
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
            "User-Agent": USER_AGENT,
            "Authorization": f"Basic {self._login}",
        }
