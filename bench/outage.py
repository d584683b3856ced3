"""Files and Kafka while an HTTP receiver is away for five minutes and rows come all the time; then it catches up, in order."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import text

from bench.backlog import FIELDS, NAMES, Backlog, backlog, engine
from bench.broker import local_broker
from bench.lagging import PROMISED, closed_port, kafka
from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.http.plugin import HttpOutput

AWAY_SECONDS: Final = 300.0
QUICK_SECONDS: Final = 2.0
ALONE: Final = 0.2
"""Of these seconds: how long rows come while the receiver is there, before it goes away."""
ROWS: Final = 2_000
"""Rows that come in a second."""
PATIENCE_SECONDS: Final = 600.0
RECEIVER: Final = "receiver"
THERE, AWAY, CATCHING = "the receiver is there", "the receiver is away", "the receiver catches up"

_event = re.compile(rb'event-id="(?:\d+-)*(\d+)".*?<association>([^<]*)<', re.DOTALL).findall


class Receiver:
    """Remembers for each object the last row that it was told of, and counts what came out of order."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.changes = self.late = 0
        self._last: dict[bytes, int] = {}
        self._server: ThreadingHTTPServer | None = None

    def take(self, body: bytes) -> None:
        """A document."""
        for record, place in _event(body):
            self.changes += 1
            self.late += int(record) <= self._last.get(place, 0)
            self._last[place] = int(record)

    def come(self) -> None:
        """Listens from now on."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):  # HTTP/1.0: no connection outlives the listener
            def do_POST(self) -> None:
                receiver.take(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def go(self) -> None:
        """Nobody listens there any more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class Outage:
    """One outage: what was written, what files and Kafka had by then, and how the receiver caught up."""

    def __init__(self, log: Backlog, seconds: float, servers: str | None) -> None:
        self.log = log
        self.seconds = seconds
        self.receiver = Receiver(closed_port())
        config = log.config()
        outputs = [*config.output, HttpOutput(name=RECEIVER, url=f"http://127.0.0.1:{self.receiver.port}/")]
        outputs += [] if servers is None else [kafka(servers, "outage")]
        self._publisher = Publisher(replace(config, output=tuple(outputs)))
        self._written = 0
        self._over = Event()

    def there(self) -> float:
        """Rows come while all outputs are in step; seconds for as many rows as come in a second."""
        self.receiver.come()
        Thread(target=self._publish, daemon=True).start()
        self._write(ROWS)
        self._wait(lambda: self.log.is_told(RECEIVER), "the publisher has begun")
        return self._under_load(self.seconds * ALONE)

    def away(self) -> float:
        """The same while the receiver is away."""
        self.receiver.go()
        before = self.receiver.changes
        took = self._under_load(self.seconds)
        if self.receiver.changes != before:
            raise AssertionError("the receiver was not away")
        return took

    def catch_up(self) -> float:
        """The receiver is there again: seconds until every row has its letter."""
        began = time.monotonic()
        self.receiver.come()
        self._wait(lambda: not self._waiting(), "the receiver has everything")
        took = time.monotonic() - began
        self._publisher.stop()
        self._over.wait(60)
        self.receiver.go()
        return took

    def _under_load(self, seconds: float) -> float:
        """How long files and Kafka take for a second's rows, while so many come in every second."""
        first, began = self._written, time.monotonic()
        end = began + seconds
        while (now := time.monotonic()) < end:
            self._write(ROWS)
            time.sleep(max(0.0, now + 1.0 - time.monotonic()))
        self._wait(lambda: self.log.is_told(RECEIVER), "files and Kafka have everything")
        return (time.monotonic() - began) / (self._written - first) * ROWS

    @staticmethod
    def _wait(condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"waited in vain: {what}")
            time.sleep(0.02)

    def _write(self, count: int) -> None:
        numbers = "generate_series(CAST(:first AS bigint), CAST(:last AS bigint))"
        rows = FIELDS.replace("generate_series(0, :count - 1)", numbers)
        with engine().begin() as connection:
            asked = {"first": self._written, "last": self._written + count - 1}
            connection.execute(text(rows.format(log=self.log.name, names=NAMES)), asked)
        self._written += count

    def _waiting(self) -> int:
        with engine().connect() as connection:
            asked = text(f"SELECT count(*) FROM {self.log.name} WHERE status = 'N'")
            return int(connection.execute(asked).scalar_one())

    def _publish(self) -> None:
        try:
            with self._publisher as publisher:
                for _ in publisher.rounds():
                    pass
        finally:
            self._over.set()

    def order(self) -> Target:
        """Whether the receiver has every change, each object's in their order."""
        changes = self._written // 8 * 2  # eight rows are one object's: its insert and one update
        return Target(
            promise="the receiver has every change once, those of an object in their order",
            measured=f"{self.receiver.changes:,} of {changes:,}, {self.receiver.late:,} out of order",
            reached=self.receiver.changes == changes and not self.receiver.late,
        )


def benchmark(*, quick: bool) -> Benchmark:
    """One outage."""
    seconds = QUICK_SECONDS if quick else AWAY_SECONDS
    servers = local_broker()
    outage = Outage(backlog("outage_log", 0), seconds, servers)
    once = partial(Contestant, once=True)
    rows = round(seconds) * ROWS
    with_kafka = "files and Kafka" if servers is not None else "files"
    return Benchmark(
        name="outage",
        question=f"what becomes of {with_kafka} while a receiver is away for {seconds:g} s, and of the receiver then?",
        unit="row",
        contestants=[
            once(name=f"{with_kafka}, {THERE}", run=outage.there, units=ROWS, floor=True),
            once(name=f"{with_kafka}, {AWAY}", run=outage.away, units=ROWS),
            once(name=CATCHING, run=outage.catch_up, units=rows),
        ],
        targets=partial(_targets, outage),
        note=(
            f"{ROWS:,} rows come in every second, which is what bounds the first two; nothing is measured twice. The receiver"
            f" is away for {seconds:g} s and then gets what was kept for it, while no more rows come."
        ),
    )


def _targets(outage: Outage, timings: Timings) -> list[Target]:
    there, away, _ = timings.values()
    ratio = there.each / away.each
    kept = f"{away.name.partition(',')[0]} at {PROMISED:g} of their rate while the receiver is away"
    return [Target(promise=kept, measured=f"{ratio:.2f}", reached=ratio >= PROMISED), outage.order()]
