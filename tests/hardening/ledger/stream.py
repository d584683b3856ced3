"""Outputs whose reader is at the other end of a line: standard output, an HTTP receiver, Kafka."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final, TypeVar
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.hardening.ledger.checking import TRACKED, Finding, Seen, Shown
from tests.hardening.ledger.outputs import read_kafka, read_xds, rising
from tests.support.servers_kafka import consumed

_event = re.compile(rb'event-id="([\d-]+)"').findall
_whole = re.compile(rb"<\?xml(?:(?!<\?xml).)*?</nds>\n", re.DOTALL).finditer
MOODY: Final = 0.03
"""The part of the documents that the receiver does not simply take."""

LETTERS: Final = {"success": "S", "warning": "W", "error": "E"}
UNHEARD: Final = ("silent", "garbled")
"""Answers to a document that was taken, of which the publisher learns nothing."""


class StandardOutput:
    """XDS documents on standard output, as somebody collects them who reads those of all publishers as they come."""

    name = "stdout"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bodies: list[bytes] = []
        self._lock = Lock()

    def config(self) -> str:
        return 'sink = "stdout"\nwho = true\n'

    def collect(self, publisher: str) -> Path:
        """Where a publisher's standard output has to go for its documents to be read."""
        path = self._folder / f"{publisher}.stdout"
        os.mkfifo(path)
        Thread(target=self._read, args=(path,), daemon=True).start()
        return path

    def grown(self) -> object:
        return len(self._bodies)

    def shown(self) -> Shown:
        found = [one for number, body in enumerate(self._bodies) for one in read_xds(body, f"document {number}")]
        return Shown(output=self.name, seen=found, repeats=True)

    def watched(self) -> Sequence[Finding]:
        return ()

    def _read(self, path: Path) -> None:
        """Takes whole documents out of what comes; the half one of a publisher that was killed is nobody's."""
        rest = b""
        with path.open("rb", buffering=0) as stream:
            while piece := stream.read(1 << 16):
                rest += piece
                end = 0
                for match in _whole(rest):
                    end = match.end()
                    with self._lock:
                        self._bodies.append(match[0])
                rest = rest[end:]


class Receiver:
    """An HTTP receiver that remembers plans and ids, refuses publishers that were replaced, and answers at random.

    It takes a document, with a warning perhaps, refuses it, asks for it again, takes it and breaks off or says what nobody
    can read, or is away.
    """

    def __init__(
        self, seed: int, moods: str = "success warning error retry silent away", *, name: str = "HTTP"
    ) -> None:
        self.name = name
        self.port = 0
        self.moods: list[str] = moods.split()
        self._dice = random.Random(seed)
        self._lock = Lock()
        self._judged: dict[tuple[str, str], tuple[str, str]] = {}
        self._epochs: dict[str, int] = {}
        self.documents: list[tuple[str, bytes]] = []
        """What it has taken, each with where it came from."""
        self._answers: dict[int, str] = {}
        self._provoked: Event | None = None
        self.is_away = False
        """It answers nobody but that it is away."""

    def set_away(self, away: bool) -> None:
        """From now on it is away, or there again."""
        self.is_away = away

    def provoke(self, patience: float) -> bool:
        """Asks for the next new document to be sent again later; whether one has come in time."""
        self._provoked = asked = Event()
        return asked.wait(patience)

    def config(self) -> str:
        return f'sink = "http"\nwho = true\nurl = "http://127.0.0.1:{self.port}/"\n'

    def grown(self) -> object:
        return len(self.documents)

    def shown(self) -> Shown:
        found = [one for where, body in self.documents for one in read_xds(body, where)]
        return Shown(output=self.name, seen=found, answers=self._answers)

    def watched(self) -> Sequence[Finding]:
        return ()

    def take(self, headers: Mapping[str, str], body: bytes) -> str:
        """The answer to a document: a level, `silent`, `away` or `overtaken`."""
        log, plan = headers.get("Eventlog-Log", ""), headers.get("Eventlog-Plan", "")
        identity = (log, headers["Eventlog-Document"])
        with self._lock:
            epoch = int(headers.get("Eventlog-Epoch", "0"))
            if epoch < self._epochs.setdefault(log, epoch):
                return "overtaken"
            self._epochs[log] = epoch
            known, former = self._judged.get(identity, ("", ""))
            mood = self._mood(former if known == plan else "")
            level = "success" if mood in UNHEARD else mood
            if (known != plan or not former) and level in LETTERS:
                self._judged[identity] = (plan, level)
                if mood != "error":
                    where = f"document {len(self.documents)} {identity[1].lstrip('0')} of plan {plan} in epoch {epoch}"
                    self.documents.append((where, body))
            letter = LETTERS.get(level)
            if letter is not None:
                self._answers |= {int(event.rpartition(b"-")[2]): letter for event in _event(body)}
            return mood

    def _mood(self, former: str) -> str:
        """How it answers; the same as before what it has judged before, unless nobody hears it."""
        if self.is_away:
            return "away"
        mood = "success" if self._dice.random() > MOODY else self._dice.choice(self.moods)
        if former:
            return mood if mood == "away" else former
        if self._provoked is not None:
            self._provoked.set()
            self._provoked, mood = None, "retry"
        return mood


R = TypeVar("R", bound=Receiver)


@contextmanager
def receiving(receiver: R) -> Iterator[R]:
    """The receiver at work."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # an answer in two packets would wait for the acknowledgement of the first

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if len(body) < int(self.headers["Content-Length"]):  # who sent it was killed
                self.close_connection = True
                return
            answer = receiver.take(dict(self.headers), body)
            if answer == "silent":
                self.close_connection = True
                return
            statuses = [f'<status level="{answer}" event-id="{event.decode()}"/>' for event in _event(body)]
            said = f'<nds dtdversion="2.0"><output>{"".join(statuses)}</output></nds>'.encode()
            if answer == "garbled":
                said = said[: len(said) // 2]
            self.send_response({"away": 503, "overtaken": 409}.get(answer, 200))
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A publisher that was killed leaves its connection: that is what this is about."""

    server = Server(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Kafka:
    """Topics of one partition, read as somebody does who sees only what was committed. A stand-in shows more than that."""

    def __init__(self, servers: str, *, real: bool) -> None:
        self.servers, self.real = servers, real
        self.own = f"ledger-{uuid4().hex[:12]}"
        quiet = {"bootstrap.servers": servers, "group.id": "ledger", "log_level": 0}
        self._consumer = Consumer(quiet)

    @property
    def common(self) -> str:
        return (
            f'sink = "kafka"\nservers = "{self.servers}"\ntransactional_id = "{self.own}"\ntimeout = 10.0\n'
            f'create_topics = true\nreplication = 1\nmarks_topic = "{self.own}.marks"\n'
        )

    def values(self, topic: str) -> list[bytes | None]:
        """What stands in a topic."""
        name = f"{self.own}.{topic}"
        there = name in self._consumer.list_topics(timeout=10).topics
        return [one.value for one in consumed(self.servers, name)] if there else []

    def end_of(self, topic: str) -> int:
        """How many messages the partition of a topic has, committed or not."""
        try:
            return int(self._consumer.get_watermark_offsets(TopicPartition(f"{self.own}.{topic}", 0), timeout=1)[1])
        except KafkaException:
            return 0

    def watched(self) -> Sequence[Finding]:
        self._consumer.close()
        return ()


class KafkaMessages(Kafka):
    """Messages in topics, one for each table."""

    name = "Kafka messages"

    def config(self) -> str:
        return f'{self.common}[output.messages]\ntopic = "{self.own}.{{table}}"\n'

    def grown(self) -> object:
        return sum(map(self.end_of, TRACKED))

    def shown(self) -> Shown:
        found = [seen for _, seen in self._rows()]
        return Shown(output=self.name, seen=found, repeats=not self.real)

    def watched(self) -> Sequence[Finding]:
        rows = self._rows()
        numbers = {table: [number for number, seen in rows if seen.place[0] == table] for table in TRACKED}
        super().watched()
        return [finding for mine in numbers.values() for finding in rising(self.name, mine)] if self.real else ()

    def _rows(self) -> list[tuple[str, Seen]]:
        return [row for table in TRACKED for row in read_kafka(self.values(table), table)]


class KafkaXds(Kafka):
    """XDS documents in a topic."""

    name = "Kafka XDS"

    def config(self) -> str:
        return f'{self.common}format = "xds"\nwho = true\ntopic = "{self.own}.xds"\n'

    def grown(self) -> object:
        return self.end_of("xds")

    def shown(self) -> Shown:
        bodies = enumerate(self.values("xds"))
        found = [one for number, body in bodies if body is not None for one in read_xds(body, f"offset {number}")]
        return Shown(output=self.name, seen=found, repeats=not self.real)
