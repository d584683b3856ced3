"""One document to one address over a connection that is kept: time limits, trust, bounds, and
errors by blame.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import closing, suppress
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, RemoteDisconnected, responses
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core import tracing
from eventlog.core.errors import SinkError, shorten
from eventlog.core.model import Document
from eventlog.core.seams import Tenure
from eventlog.core.secrets import bare_address, mask_secrets, secrets_of
from eventlog.sinks.http.address import HttpSettings, trust
from eventlog.version import VERSION

if TYPE_CHECKING:
    from eventlog.sinks.http.connection import KeptConnection

DOCUMENT_ID: Final = "Eventlog-Document"
"""The header that carries a document's id, by which a receiver recognises one that comes again."""

PLAN_ID: Final = "Eventlog-Plan"
"""The header with the plan under which a document goes out: the same id under another plan is no
repeat.
"""

USER_AGENT: Final = f"eventlog/{VERSION}"
LOG_ID: Final = "Eventlog-Log"
EPOCH: Final = "Eventlog-Epoch"
"""The header with the number of the publisher, which grows with each one that takes the log over.

A receiver that has seen a higher one refuses with 409 and that number in the same header.
"""

PIECE_BYTES: Final = 1 << 18
"""Bytes of a document that are sent after one look at the clock."""

REFUSAL_BYTES: Final = 2000
"""Bytes of a refusal that are read."""

_whole_number = re.compile(r"[0-9]{1,18}").fullmatch

_BROKEN_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
"""What TLS says when the connection ends; everything else that it says is a disagreement."""


def header_number(text: str) -> int | None:
    """Read a number from a header; None if it is none."""
    # Python refuses to read one of thousands of digits, and nobody means one.
    if _whole_number(text):
        return int(text)
    return None


class HttpAnswer(Struct, frozen=True, kw_only=True):
    """An HTTP answer that was read to its end."""

    status: int
    body: bytes
    location: str = ""
    retry_after: str = ""
    """When it may be tried again, as the receiver writes it."""
    tag: str = ""
    """The version of what it shows, as its header `ETag` has it."""
    date: str = ""
    """The receiver's clock, as its header `Date` has it."""
    overtaken: bool = False
    """It was refused because the receiver has documents of a later publisher."""

    @property
    def taken(self) -> bool:
        return 200 <= self.status < 300

    @property
    def summary(self) -> str:
        """Return the status and the beginning of the body; mask it before use."""
        name = f"{self.status} {responses.get(self.status, '')}".rstrip()
        text = shorten(" ".join(self.body.decode("utf-8", "replace").split()), 200).rstrip(".")
        if not text:
            return name
        return f"{name}: {text}"


class Poster:
    """POSTs to the address of its settings. `address` names it without what may be secret."""

    _method = "POST"
    _reads_refusals = False
    """Whether a refusal is read to its end: it may be one of many, and its connection is kept."""

    def __init__(self, settings: HttpSettings, trusted: ssl.SSLContext | None = None) -> None:
        self._settings = settings
        parts = urlsplit(settings.url)
        self.address = bare_address(settings.url)
        self._host = parts.hostname or ""
        self._port = parts.port
        self._path, self._query = parts.path, ""
        if parts.query:
            self._query = f"?{parts.query}"
        self._trust = trusted
        if trusted is None and parts.scheme == "https":
            self._trust = trust(settings)
        self._proxy = urlsplit(settings.proxy) if settings.proxy else None
        self._proxy_headers = _proxy_login(self._proxy)
        self._proxied = ""
        # A proxy gets the whole address, unless it only carries what is encrypted.
        if self._proxy is not None and self._trust is None:
            self._proxied = f"{parts.scheme}://{parts.netloc}"
        self._secrets = tuple(dict.fromkeys(_credentials(settings)))
        self._connection: KeptConnection | None = None
        self._broken_off = False
        self.tenure: Tenure | None = None

    def another(self) -> Poster:
        """Make a poster to the same address with a connection of its own."""
        return Poster(self._settings, self._trust)

    def post(self, document: Document, plan: str = "") -> HttpAnswer:
        """Send a document under that plan; return the answer."""
        from urllib3.exceptions import HTTPError

        deadline = time.monotonic() + self._settings.total_timeout
        try:
            connection, kept = self._connect()
            try:
                return self._exchange(connection, document, plan, deadline)
            except (BrokenPipeError, ConnectionResetError, RemoteDisconnected):
                # A kept connection may have been given up by the other side while nothing was sent: it
                # is replaced, once.
                if not kept or self._broken_off:
                    raise
                self._drop()
            connection, _ = self._connect()
            return self._exchange(connection, document, plan, deadline)
        except (HTTPError, HTTPException, OSError) as error:
            self._drop()
            raise self._in_words(error) from error
        except BaseException:
            self._drop()
            raise

    def close(self) -> None:
        """Closes the connection, if there is one; the next document opens another."""
        self._broken_off = False
        self._drop()

    def break_off(self) -> None:
        """Ends from another thread what is on its way; until `close` nothing else is begun."""
        self._broken_off = True
        # The other thread may drop either of them at any moment, so each is read once.
        connection = self._connection
        sock = None if connection is None else connection.sock
        if sock is not None:
            cut(sock)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> tuple[KeptConnection, bool]:
        """Return an open connection, and True if it was open already."""
        if self._connection is not None and self._connection.is_connected:
            return self._connection, True
        self._drop()
        from eventlog.sinks.http.connection import Encrypted, Plain

        timeout = min(self._settings.connect_timeout, self._settings.total_timeout)
        host, port = self._host, self._port
        if self._proxy is not None:
            host, port = self._proxy.hostname or "", self._proxy.port or 80
        connection: KeptConnection = Plain(host, port, timeout=timeout)
        if self._trust is not None:
            connection = Encrypted(host, port, timeout=timeout, ssl_context=self._trust)
            if self._proxy is not None:
                connection.set_tunnel(self._host, self._port or 443, self._proxy_headers)
        # Kept before it is open, so that `break_off` can end the connecting too.
        self._connection = connection
        connection.connect()
        return connection, False

    def _exchange(
        self,
        connection: KeptConnection,
        document: Document,
        plan: str,
        deadline: float,
    ) -> HttpAnswer:
        if self._broken_off:
            raise ConnectionAbortedError("it was interrupted")
        sock = connection.sock

        def wait() -> None:
            """Lets what comes next last no longer than it may; TimeoutError where the receiver had its time."""
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            sock.settimeout(min(left, self._settings.read_timeout))

        headers, body = self._content(document, plan)
        headers["Content-Length"] = str(len(body))
        target = self._proxied + self._target(document.route)
        with closing(connection.ask(self._method, target, headers, _pieces(body), wait)) as response:
            if response.status < 300 or self._reads_refusals:
                tag, date = response.headers.get("ETag", ""), response.headers.get("Date", "")
                answer = HttpAnswer(status=response.status, body=self._body(response), tag=tag, date=date)
                if not answer.taken:
                    return replace(answer, retry_after=response.headers.get("Retry-After", ""))
            else:
                answer = self._refusal(response)
        # The body of a refusal was not read to its end, so nothing else can come over its connection.
        if not answer.taken:
            self._drop()
        return answer

    def _refusal(self, response: HTTPResponse) -> HttpAnswer:
        """Read an answer that refuses the document."""
        try:
            # Some receivers explain at length, and a refusal may be a whole page.
            body = response.read(REFUSAL_BYTES)
        except (HTTPException, OSError):
            body = b""  # its status counts
        status, headers = response.status, response.headers
        text = self.discreet(body.decode("utf-8", "replace"))
        answer = HttpAnswer(status=status, body=text.encode())
        # A redirect is not followed: where it leads to nobody has said who is there.
        if status < 400:
            return replace(answer, location=self.discreet(headers.get("Location", "")))
        overtaken = False
        if status == HTTPStatus.CONFLICT and self.tenure is not None:
            epoch = header_number(headers.get(EPOCH, ""))
            overtaken = epoch is not None and epoch > self.tenure.epoch
        return replace(answer, retry_after=headers.get("Retry-After", ""), overtaken=overtaken)

    def _target(self, route: str) -> str:
        """Return the target of the request: path, route and query."""
        path = self._path or "/"
        if route:
            path = f"{self._path.rstrip('/')}/{quote(route, safe='/%~')}"
        return path + self._query

    def _content(self, document: Document, plan: str) -> tuple[dict[str, str], bytes]:
        """Return headers and body of a request."""
        login = self._proxy_headers if self._proxied else {}
        return self._headers(document, plan) | login, document.body

    def _headers(self, document: Document, plan: str) -> dict[str, str]:
        headers = {
            "Content-Type": "application/xml; charset=utf-8",
            "Accept": "application/xml, text/xml",
            "User-Agent": USER_AGENT,
            DOCUMENT_ID: quote(document.id, safe="!#$&'()*+,/:;=?@[]~"),
        }
        if plan:
            headers[PLAN_ID] = plan
        if self.tenure is not None:
            headers |= {LOG_ID: self.tenure.log, EPOCH: str(self.tenure.epoch)}
        headers |= tracing.headers()
        authorization = self._settings.authorization
        if authorization is not None:
            headers["Authorization"] = authorization
        return headers

    def discreet(self, text: str) -> str:
        """Mask our credentials in a receiver's text: some repeat them in errors."""
        return mask_secrets(text, self._secrets)

    def _body(self, response: HTTPResponse) -> bytes:
        """Read the body to its end.

        UnreadableAnswer if the answer to an accepted document is cut short or too long.
        """
        limit = self._settings.reply_limit
        body = b""
        try:
            while len(body) <= limit:
                # One byte more than may be, to see that it is too long.
                more = response.read(limit + 1 - len(body))
                if not more:
                    break
                body += more
        except TimeoutError:
            raise
        except (HTTPException, OSError) as error:
            raise UnreadableAnswer("it ends in the middle.") from error
        if len(body) > limit:
            raise UnreadableAnswer(f"it is longer than {limit} bytes.")
        # What http.client says of bytes that never came, where it was asked for a number of them.
        if response.length:
            raise UnreadableAnswer("it ends in the middle.")
        return body

    def _in_words(self, error: Exception) -> SinkError:
        """Convert an error of the connection to ours."""
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = error.verify_message.rstrip(".")
            message = f"The certificate of {self.address} is not trusted: {reason}."
            return SinkError(message, hint="`ca_file` names the authority that signed it.", may_pass=False)
        if isinstance(error, ssl.SSLError) and not isinstance(error, _BROKEN_OFF):
            message = f"{self.address} and we find no way to speak TLS: {_reason(error)}."
            return SinkError(message, hint="Check `url` and `client_certificate`.", may_pass=False)
        from urllib3.exceptions import NewConnectionError
        from urllib3.exceptions import TimeoutError as TooLong

        # urllib3 counts a connection that was refused among its timeouts.
        is_late = isinstance(error, TooLong) and not isinstance(error, NewConnectionError)
        if is_late or isinstance(error, TimeoutError):
            return SinkError(f"{self.address} did not answer in time.", hint="It is tried again.")
        return SinkError(f"{self.address} cannot be reached: {_reason(error)}.", hint="It is tried again.")


def _proxy_login(proxy: SplitResult | None) -> dict[str, str]:
    """Return the header with user and password of the proxy's address."""
    if proxy is None or proxy.username is None:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {b64encode(login).decode()}"}


def _credentials(settings: HttpSettings) -> Iterator[str]:
    """Yield the address's secrets in each form a receiver may repeat."""
    authorization = settings.authorization or ""
    login = authorization.rpartition(" ")[2]
    yield from filter(None, (authorization, login))
    proxy = _proxy_login(urlsplit(settings.proxy) if settings.proxy else None)
    yield from (login.rpartition(" ")[2] for login in proxy.values())
    if authorization.lower().startswith("basic "):
        # A receiver can repeat what is no Base64 only as it stands.
        with suppress(ValueError):
            plain = b64decode(login, validate=True).decode("utf-8", "replace")
            yield from filter(None, (plain, plain.partition(":")[2]))
    yield from secrets_of(settings.url)


def _pieces(body: bytes) -> Iterator[bytes]:
    """Cut the body into pieces, so that timeouts apply to each piece."""
    for start in range(0, len(body), PIECE_BYTES):
        yield body[start : start + PIECE_BYTES]


def _reason(error: BaseException) -> str:
    """Return the system's reason without the library's words around it."""
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    words = str(cause) or type(cause).__name__
    if isinstance(cause, OSError) and cause.strerror:
        words = cause.strerror
    return " ".join(words.split()).rstrip(".")


def cut(sock: socket.socket) -> None:
    """Ends a connection under the hands of whoever reads or writes in another thread."""
    with suppress(OSError):
        # Not the SSL socket's own, which disturbs who reads from it.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


class UnreadableAnswer(Exception):  # noqa: N818  # it is no error of ours: the sink turns it into an outcome
    """An answer began well and then broke off, or does not end."""
