"""A small receiver of XDS documents, for trying things out: it shows what came and answers as it
was asked to.

It knows documents by the plan and the id in their headers. One that it took comes again after a
crash or a lost answer, and is answered as before without being taken twice. A publisher that was
replaced is refused once its successor has sent something.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Final
from urllib.parse import unquote
from xml.sax.saxutils import quoteattr

from msgspec import Struct

from eventlog.cli.site import cannot_listen
from eventlog.core.errors import EventlogError, XmlError
from eventlog.core.model import Document
from eventlog.sinks.files import FileSink
from eventlog.sinks.http.post import DOCUMENT_ID, EPOCH, LOG_ID, PLAN_ID, header_number
from eventlog.xds.read import Level, parse

DOCUMENT_BYTES: Final = 256 * 1024 * 1024
"""Bytes of a document; a value of 50 MB in Base64 fits several times."""

TAKES: Final = frozenset({Level.SUCCESS, Level.WARNING})
"""Answers after which the receiver has the document."""

IDLE_SECONDS: Final = 60
"""Seconds until a connection that sends nothing is closed."""

TEXT: Final = "text/plain; charset=utf-8"


class Sender(Struct, frozen=True, kw_only=True):
    """Who says that a document comes from them, and under which plan."""

    plan: str = ""
    log: str = ""
    epoch: int = 0


NOBODY: Final = Sender()


class Overtaken(Exception):  # noqa: N818  # an answer, and no fault of anybody's
    """A later publisher of the log has sent something; `epoch` is its number."""

    def __init__(self, epoch: int) -> None:
        super().__init__(epoch)
        self.epoch = epoch


class ReceivedDocument(Struct, frozen=True, kw_only=True):
    """One document as it came. Without an id nobody can tell whether it was there before."""

    id: str | None
    body: bytes
    events: tuple[str, ...]
    repeated: bool = False


class Receiver:
    """Listens on a port (0: any free one) from the moment it is made, and answers once `serve`
    runs.

    `report` is called for each document, one at a time. With `folder` the documents taken are kept
    there as files, and a repeat is known after a restart too.
    """

    def __init__(
        self,
        report: Callable[[ReceivedDocument], object],
        *,
        answer: Level = Level.SUCCESS,
        host: str = "127.0.0.1",
        port: int = 0,
        folder: Path | None = None,
        once: bool = False,
    ) -> None:
        self._report = report
        self._level = answer
        self._files = None
        if folder is not None:
            self._files = _files(folder)
        self._taken: dict[str, str] = {}
        self._epochs: dict[str, int] = {}
        self._once = once
        self._turn = Lock()
        try:
            self._server = _ReceiverServer((host, port), self)
        except (OSError, OverflowError) as error:
            raise cannot_listen(host, port, error, "another port") from error
        # An IPv6 address has colons, which would be taken for that of the port.
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_address[1]}/"

    def serve(self) -> None:
        """Answer requests until `stop` is called; with `once`, until a document is answered."""
        try:
            self._server.serve_forever(poll_interval=0.1)
        finally:
            self._server.server_close()

    def stop(self) -> None:
        """Ends `serve`, from any thread; what is being answered is answered."""
        # From a thread of its own: `shutdown` waits until `serve_forever` has ended.
        Thread(target=self._server.shutdown, daemon=True).start()

    def take(self, identity: str | None, body: bytes, sender: Sender = NOBODY) -> bytes:
        """Takes one document and gives the reply to it.

        XmlError when it is none, Overtaken when its sender was replaced.
        """
        # Before the lock: documents that are none, and long ones, make nobody wait.
        events = event_ids(body)
        with self._turn:
            self._meet(sender)
            repeated = self._has(identity, sender.plan, body)
            delivery = ReceivedDocument(id=identity, body=body, events=events, repeated=repeated)
            if self._level in TAKES and not delivery.repeated:
                self._keep(delivery, sender.plan)
            self._report(delivery)
        return reply(events, self._level)

    def note_reply(self) -> None:
        """Count a sent reply; stop after it if asked to."""
        if self._once:
            self.stop()

    def _meet(self, sender: Sender) -> None:
        """Remembers the latest publisher of each log, and refuses those before it."""
        latest = self._epochs.get(sender.log, 0)
        if sender.epoch < latest:
            raise Overtaken(latest)
        # A sender without a log is of no publisher, and is never overtaken.
        self._epochs[sender.log] = sender.epoch

    def _has(self, identity: str | None, plan: str, body: bytes) -> bool:
        """Return True if the document came before, under this plan or with the same bytes."""
        if identity is None:
            return False
        if identity in self._taken:
            return self._taken[identity] == plan
        if self._files is None:
            return False
        # Under which plan it came is not on the disk, so the bytes must do.
        path = self._files.path(identity)
        return bool(path.exists() and path.read_bytes() == body)

    def _keep(self, delivery: ReceivedDocument, plan: str) -> None:
        if delivery.id is None:
            # Without an id nobody could know it again.
            return
        if self._files is not None:
            self._files.commit("", [Document(id=delivery.id, body=delivery.body, covers={})])
        self._taken[delivery.id] = plan


def _files(folder: Path) -> FileSink:
    files = FileSink(folder, ".xml")
    files.open(None)
    return files


def event_ids(body: bytes) -> tuple[str, ...]:
    """Return the event-ids in a document, in order; raise XmlError if it is not one."""
    root = parse(body, huge=True)
    given = root.find("input") if root.tag == "nds" else root
    if given is None or given.tag != "input":
        raise XmlError(f"a document is <nds> with <input>, or <input>, not <{root.tag}>", line=1)
    ids = [element.get("event-id") for element in given if element.tag != "status"]
    return tuple(str(event_id) for event_id in ids if event_id is not None)


def reply(events: tuple[str, ...], level: Level) -> bytes:
    """Write a reply with the same level for each event."""
    text = ""
    if level is not Level.SUCCESS:
        text = f"eventlog receive answers {level} as it was asked to"
    lines = []
    for event in events:
        attributes = f"level={quoteattr(level)} event-id={quoteattr(event)}"
        lines.append(f"    <status {attributes}>{text}</status>\n")
    statuses = "".join(lines)
    return f'<nds dtdversion="2.0">\n  <output>\n{statuses}  </output>\n</nds>\n'.encode()


class _ReceiverServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], receiver: Receiver) -> None:
        self.receiver = receiver
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    # With the library's own, 1.0, each document would need a connection.
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    wbufsize = 65536  # a head that goes out before its body makes the other side wait 40 ms for it

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, _ReceiverServer)
        body = self._body()
        if body is None:
            return
        identity = self.headers.get(DOCUMENT_ID)
        sender = Sender(
            plan=self.headers.get(PLAN_ID, ""),
            log=self.headers.get(LOG_ID, ""),
            epoch=header_number(self.headers.get(EPOCH, "")) or 0,
        )
        try:
            if identity is not None:
                identity = unquote(identity)
            answer = server.receiver.take(identity, body, sender)
        except Overtaken as later:
            self._say(HTTPStatus.CONFLICT, b"A later publisher sends by now.\n", TEXT, later.epoch)
        except XmlError as error:
            self._say(HTTPStatus.BAD_REQUEST, f"{error}\n".encode(), TEXT)
        except EventlogError as error:
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, f"{error}\n".encode(), TEXT)
        else:
            self._say(HTTPStatus.OK, answer, "application/xml; charset=utf-8")
            server.receiver.note_reply()

    def do_GET(self) -> None:
        self._say(HTTPStatus.METHOD_NOT_ALLOWED, b"Documents are sent here by POST.\n", TEXT)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is http.server's
        """Logs nothing: the documents are shown, not the requests."""

    def _body(self) -> bytes | None:
        """Read the document; None if the request was already refused."""
        length = header_number(self.headers.get("Content-Length", ""))
        if length is None:
            self._refuse(HTTPStatus.LENGTH_REQUIRED, b"A Content-Length is needed.\n")
        elif length > DOCUMENT_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"The document is too large.\n")
        else:
            body = self.rfile.read(length)
            if len(body) == length:
                return body
            self.close_connection = True  # the sender broke off, and nothing else can follow
        return None

    def _refuse(self, status: HTTPStatus, text: bytes) -> None:
        # What follows in the stream is the body that nobody has read, and no request.
        self.close_connection = True
        self._say(status, text, TEXT)

    def _say(
        self,
        status: HTTPStatus,
        body: bytes,
        content_type: str,
        epoch: int | None = None,
    ) -> None:
        self.send_response(status)
        if epoch is not None:
            self.send_header(EPOCH, str(epoch))
        self.send_header("Content-Type", content_type)
        # Always, for a connection is kept, and the other side must know where the body ends.
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        # Now, and not when the handler is through: with `once` the process may have ended by then.
        self.wfile.flush()
