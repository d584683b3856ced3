"""Who may see the page and who may act: decided from a request's own words alone. Pure but for
drawing numbers.

Without token and proxy, this machine is believed, as long as it asks for this machine: a name that
somebody else's DNS points here is refused. What changes rows must come from a form of ours: same
origin, and a number that only our page of this session has.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.web.settings import WebConfig

if TYPE_CHECKING:
    from itsdangerous import Signer

SESSION_SECONDS: Final = 12 * 3600
"""Seconds that a session lasts."""


class RequestFacts(Struct, frozen=True, kw_only=True):
    """What a request says of itself; headers are named in lower case, and `repeated` came several
    times.
    """

    peer: str
    headers: Mapping[str, str]
    now: float
    repeated: frozenset[str] = frozenset()

    @property
    def host(self) -> str:
        return self.headers.get("host", "")


class Visitor(Struct, frozen=True, kw_only=True):
    """Somebody who may see the page. `session` binds forms to who got them; a bearer needs no
    form.
    """

    name: str
    session: str
    bearer: bool = False
    fresh: bool = False


class AccessRefused(Struct, frozen=True, kw_only=True):
    """Why somebody may not, and whether logging in would help."""

    status: int
    why: str
    login: bool = False


_FOREIGN: Final = AccessRefused(status=403, why="This came from another site and was not done.")


class Guard:
    """Judges requests by the configuration, with a key that sessions are signed with.

    Law: a session that somebody has ended lets nobody in here again, and with another token all
    sessions have ended. The sessions of a token are known to every process that has it; which have
    ended, only to the process that was told.
    """

    def __init__(self, settings: WebConfig, key: bytes | None = None) -> None:
        self.settings = settings
        # Without a token it is made anew each time, and sessions of another one are over.
        self._secret = settings.token.encode() if settings.token else key or secrets.token_bytes(32)
        self._ended: dict[str, int] = {}
        self._since = 0
        # Browsers keep one jar for all ports of a host: pages of two logs must not end each other's
        # sessions.
        self.cookie = f"eventlog_{hmac.new(self._secret, b'eventlog cookie', 'sha256').hexdigest()[:8]}"

    def adopting(self, settings: WebConfig, now: float) -> Guard:
        """Make the guard for other settings; sessions survive if the token is the same."""
        new = Guard(settings)
        if settings.token == self.settings.token:
            new._ended, new._since = self._ended, self._since
        else:
            # To whole seconds, as sessions say their times.
            new._since = int(now)
        return new

    def visitor(self, asked: RequestFacts) -> Visitor | AccessRefused:
        """Identify the visitor, or refuse."""
        settings = self.settings
        # Before the name: programs ask by whatever address they have.
        if self.knows(_bearer_token(asked)):
            return Visitor(name="bearer", session="", bearer=True)
        misnamed = self._name_refused(asked)
        if misnamed is not None:
            return misnamed
        if settings.user_header and settings.believes(asked.peer):
            header = settings.user_header.lower()
            # One of them is the visitor's own, and which one nobody knows.
            if header in asked.repeated:
                why = f"{settings.user_header} came twice: the proxy must remove that of the request."
                return AccessRefused(status=403, why=why)
            name = asked.headers.get(header, "").strip()
            if name:
                return self._with_session(asked, name)
        if settings.token:
            session = self._session(asked, "token")
            if session is not None:
                return Visitor(name="token", session=session)
            why = "This page needs the token of the configuration."
            return AccessRefused(status=401, why=why, login=True)
        if settings.user_header:
            why = "This page is seen through its proxy, which says who you are."
            return AccessRefused(status=403, why=why)
        # The name too: by a name that somebody's DNS points here a site could ask through a browser.
        if not (is_local(asked.host) and _is_loopback(asked.peer)):
            why = "Without a token, this page answers its own machine by that machine's name."
            return AccessRefused(status=421, why=why)
        return self._with_session(asked, "this machine")

    def may_log_in(self, asked: RequestFacts, *, sends: bool) -> AccessRefused | None:
        """Refuse a login under another name, or one that another site has a browser send."""
        refused = self._name_refused(asked)
        return refused or (_FOREIGN if sends and foreign(asked) else None)

    def tries_token(self, asked: RequestFacts) -> bool:
        """Return True if a request has a wrong bearer token."""
        token = _bearer_token(asked)
        return bool(self.settings.token and token) and not self.knows(token)

    def _name_refused(self, asked: RequestFacts) -> AccessRefused | None:
        if self.settings.answers(host_name(asked.host)):
            return None
        why = "This page is not there under this name; web.hosts lists its names."
        # 421 is for a request that came to a server which does not answer for its name.
        return AccessRefused(status=421, why=why)

    def may_act(
        self,
        visitor: Visitor,
        asked: RequestFacts,
        form: Mapping[str, str],
    ) -> AccessRefused | None:
        """Refuse unless the page allows actions and the request comes from one of our forms."""
        if self.settings.read_only:
            return AccessRefused(status=403, why="This page is read-only.")
        return self.may_leave(visitor, asked, form)

    def may_leave(
        self,
        visitor: Visitor,
        asked: RequestFacts,
        form: Mapping[str, str],
    ) -> AccessRefused | None:
        """Refuse unless the request comes from one of our forms."""
        # No browser sends that header by itself, so no site can have it sent.
        if visitor.bearer:
            return None
        if foreign(asked):
            return _FOREIGN
        if not self._signer("form").verify_signature(_form_of(visitor), form.get("proof", "")):
            why = "This form is too old or not ours. Go back, load the page again, repeat it."
            return AccessRefused(status=403, why=why)
        return None

    def proof(self, visitor: Visitor) -> str:
        return self._signer("form").get_signature(_form_of(visitor)).decode()

    def knows(self, token: str) -> bool:
        # It takes as long for every token: by the time nobody learns how much of one was right.
        own = str(self.settings.token).encode()
        return bool(self.settings.token) and hmac.compare_digest(token.encode(), own)

    def new_session(self, name: str, now: float) -> str:
        """Make a session's cookie: its end, a random number and a signature."""
        content = f"{int(now) + SESSION_SECONDS}.{secrets.token_urlsafe(12)}"
        return self._signer(f"session of {name}").sign(content).decode()

    def end(self, visitor: Visitor, now: float) -> None:
        """Ends a session; it is remembered until it would have ended by itself."""
        self._ended = {session: until for session, until in self._ended.items() if until > now}
        if visitor.session:
            self._ended[_signed_part(visitor.session)] = _end_of(visitor.session)

    def lives(self, visitor: Visitor, now: float) -> bool:
        """Return True if the visitor's session is still valid."""
        # A bearer has no session that could end.
        return visitor.bearer or self._lasts(visitor.session, now)

    def _lasts(self, session: str, now: float) -> bool:
        until = _end_of(session)
        # With another token all sessions that were begun before have ended.
        is_of_token = until - SESSION_SECONDS >= self._since
        return until > now and is_of_token and _signed_part(session) not in self._ended

    def _with_session(self, asked: RequestFacts, name: str) -> Visitor:
        session = self._session(asked, name)
        if session is None:
            return Visitor(name=name, session=self.new_session(name, asked.now), fresh=True)
        return Visitor(name=name, session=session)

    def _session(self, asked: RequestFacts, name: str) -> str | None:
        """Return the session in the cookie, if it is ours and valid."""
        # Ours alone: a browser sends what others have set, and a stranger sends thousands.
        parts = (part.strip().partition("=") for part in asked.headers.get("cookie", "").split(";"))
        session = next((value for key, _, value in parts if key == self.cookie), None)
        if session is None or not self._signer(f"session of {name}").validate(session):
            return None
        return session if self._lasts(session, asked.now) else None

    def _signer(self, purpose: str) -> Signer:
        """Signs for one purpose only: what was signed for another is not valid here."""
        # The extra brings it; who asks only whether a door is open does without.
        from itsdangerous import Signer

        return Signer(
            self._secret,
            salt=f"eventlog {purpose}",
            key_derivation="hmac",
            # The library would take SHA-1.
            digest_method=hashlib.sha256,
        )


def _bearer_token(asked: RequestFacts) -> str:
    kind, _, token = asked.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _signed_part(session: str) -> str:
    """Return the signed part of a session.

    A signature has several spellings, so it does not identify the session.
    """
    return session.rpartition(".")[0]


def _form_of(visitor: Visitor) -> str:
    """Return the content a form's proof signs."""
    return f"{visitor.name} {_signed_part(visitor.session)}"


def _end_of(session: str) -> int:
    """Return the end of a session, written in it; the signature vouches for it."""
    return int(session.partition(".")[0])


def foreign(asked: RequestFacts) -> bool:
    """Return True if the browser says another site caused the request."""
    # Old browsers and programs do not send it; then the origin decides.
    if asked.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = asked.headers.get("origin")
    return origin is not None and origin.partition("://")[2] != asked.host


def is_local(host: str) -> bool:
    """Return True if a Host header is this machine's loopback name or address.

    Another name could be pointed here by somebody's DNS.
    """
    name = host_name(host)
    return name.lower().rstrip(".") == "localhost" or _is_loopback(name)


def is_open_door(host: str, settings: WebConfig) -> bool:
    """Return True if others reach the address and no login is required."""
    # An IPv6 address stands in brackets where a port may follow.
    return not is_local(f"[{host}]" if ":" in host else host) and not settings.guarded


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    name, _, port = host.rpartition(":")
    # Without a port, the last colon may be one of an IPv6 address.
    return (name if name and port.isdigit() else host).strip("[]")


def _is_loopback(address: str) -> bool:
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    # A socket of IPv6 sees an IPv4 address as ::ffff:127.0.0.1.
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback
