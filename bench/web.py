"""How soon the status page is there, and how large it is, with a million rows in the log; and what it costs a publisher."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import create_engine, text

from bench.backlog import Backlog, Standing, backlog, closed_at_the_end
from bench.ending import at_end
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.postgresql import url
from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, SourceConfig
from eventlog.daemon.logging import library_journal
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TriggerOptions
from eventlog.web.open_page import open_page
from eventlog.web.server import PageServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROWS: Final = 1_000_000
QUICK: Final = 20_000
PUBLISHED: Final = 100_000
LOADS: Final = 10
SOONEST: Final = 0.2
"""Seconds until the first paint, and until each list answers."""

LARGEST: Final = 100_000
"""Bytes of the first page with all that it needs."""

PAINT, EMPTY = "first paint in Chromium", "first paint of an empty page there"
ALONE, SEEN = "publishing, nobody looks", "publishing, a page is open"
PATHS = {
    "overview": "/",
    "list": "/rows",
    "errors": "/rows?status=E",
    "search": "/rows?text=nowhere",
    "timeline": "/rows?table=person&key=idu%3D7",
    "timeline of an old row": "/rows?table=person&key=idu%3D7&near=7",
    "a row": "/rows/{row}",
}
FILL = (
    "INSERT INTO {log} (table_key, status, event_type, perpetrator, table_name, column_name, old_value, new_value)"
    " SELECT 'idu=' || n % 100000, CASE WHEN n % 1000 = 0 THEN 'E' WHEN n > :count - 2000 THEN 'N' ELSE 'S' END,"
    " 2, 'app', 'person', 'fname', 'Jack', 'John' FROM generate_series(1, :count) AS n"
)
TABLE = (
    "CREATE TABLE person (idu integer PRIMARY KEY, fname text)",
    "INSERT INTO person SELECT n, 'John' FROM generate_series(1, 100000) AS n",
)
NOTED = (
    "INSERT INTO {log}_outcome (record_id, status, reason, note)"
    " SELECT record_id, 'E', 'refused', 'no such group' FROM {log} WHERE status = 'E'"
)


def benchmark(*, quick: bool) -> Benchmark:
    """Loads of each page, the first paint where there is a Chromium, and a backlog with and without somebody who looks."""
    count = QUICK if quick else ROWS
    page = _page("page_log", count)
    browser = None if quick else _browser()  # the tests that try this have browsers of their own
    loads = [
        Contestant(name=name, run=partial(_load, page, path.format(row=count // 2)), units=LOADS)
        for name, path in PATHS.items()
    ]
    paints = []
    if browser is not None:
        paints = [
            Contestant(name=PAINT, run=partial(_paint, browser, page.url)),
            Contestant(name=EMPTY, run=partial(_paint, browser, _empty_page(page)), floor=True),
        ]
    log = backlog("watched_log", 1000 if quick else PUBLISHED)
    alone = Standing(log)
    looking = _Looking(log, alone)
    publishing = [
        Contestant(name=ALONE, run=alone.publish, prepare=log.refill, units=log.count),
        Contestant(name=SEEN, run=looking.publish, prepare=looking.prepare, units=log.count),
    ]
    return Benchmark(
        name="web",
        question=f"how soon is the status page there, with {count:,} rows in the log, and what does it cost a publisher?",
        unit="load",
        contestants=[*loads, *paints, *publishing],
        targets=partial(_targets, size=_size(page), count=count),
        note="PostgreSQL; the log as `install` makes it. A load is a request with its style and script. Publishing: rows"
        " into files, a page beside it whose first page is asked for ten times a second.",
    )


class _Looking:
    """A page on the log that is published, and somebody who asks for its first page ten times a second."""

    def __init__(self, log: Backlog, publisher: Standing) -> None:
        self._log = log
        self._publisher = publisher
        self._page: PageServer | None = None

    def prepare(self) -> None:
        self._log.refill()
        self._page = open_page("127.0.0.1:0", self._log.config(), library_journal())
        _get(self._page, "/")

    def publish(self) -> float:
        """The seconds that the publisher takes for the backlog."""
        assert self._page is not None
        ended = Event()
        eyes = Thread(target=self._look, args=(self._page, ended), daemon=True)
        eyes.start()
        begin = time.perf_counter()
        self._publisher.publish()
        taken = time.perf_counter() - begin
        ended.set()
        eyes.join()
        self._page.close()
        return taken

    def _look(self, page: PageServer, ended: Event) -> None:
        while not ended.wait(0.1):
            _get(page, "/")


def _page(name: str, count: int) -> PageServer:
    """A page on a log with so many rows."""
    engine = closed_at_the_end(create_engine(url()))
    log = LogNames(table=name)
    install(engine, log)
    with engine.begin() as connection:
        for statement in TABLE:
            connection.execute(text(statement))
    track(engine, ["person"], TriggerOptions(), log)
    with engine.begin() as connection:
        connection.execute(text(FILL.format(log=name)), {"count": count})
        connection.execute(text(NOTED.format(log=name)))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
    page = open_page("127.0.0.1:0", Config(source=SourceConfig(url=url(), log=name)), library_journal())
    at_end(page.close)
    return page


def _load(page: PageServer, path: str) -> float:
    """Seconds of so many loads."""
    begin = time.perf_counter()
    for _ in range(LOADS):
        _get(page, path)
    return time.perf_counter() - begin


def _get(page: PageServer, path: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", page.port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status != 200:
        raise AssertionError(f"{path} answered {response.status}")
    return body


def _size(page: PageServer) -> int:
    """Bytes of the first page with its style and script, once something was measured and counted."""
    end = time.monotonic() + 60
    while b"not yet" in (body := _get(page, "/")) and time.monotonic() < end:
        time.sleep(0.1)
    assets = {part.split(b'"')[0] for part in body.split(b'"/static/')[1:]}
    return len(body) + sum(len(_get(page, f"/static/{asset.decode()}")) for asset in assets)


def _browser() -> Browser | None:
    binary = shutil.which("chromium")
    if binary is None:
        return None
    from playwright.sync_api import sync_playwright

    playwright = sync_playwright().start()
    started = playwright.chromium.launch(
        executable_path=binary, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
    )
    at_end(playwright.stop)
    at_end(started.close)
    return started


class _Empty(BaseHTTPRequestHandler):
    """A page of one letter: what a browser needs for itself, and for a page that nobody who opened it may reach
    (`cross-origin-opener-policy` begins another process).
    """

    headers_sent: Mapping[str, str] = {}

    def do_GET(self) -> None:
        body = b"<!doctype html><title>x</title><p>x</p>"
        self.send_response(200)
        for name, said in {**self.headers_sent, "content-length": str(len(body))}.items():
            self.send_header(name, said)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _empty_page(page: PageServer) -> str:
    """The address of an empty page that is sent with the same headers as the status page."""
    connection = HTTPConnection("127.0.0.1", page.port, timeout=60)
    connection.request("GET", "/")
    response = connection.getresponse()
    headers = {name: said for name, said in response.getheaders() if name != "date"}
    connection.close()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("_Headed", (_Empty,), {"headers_sent": headers}))
    Thread(target=server.serve_forever, daemon=True).start()
    at_end(server.shutdown)
    return f"http://127.0.0.1:{server.server_port}/"


def _paint(browser: Browser, url: str) -> float:
    """Seconds until a browser that has never seen the page shows something of it."""
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(url)
    found: Any = None
    while found is None:  # the page's policy lets nobody wait in it
        found = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    context.close()
    return float(found) / 1000


def _targets(timings: Timings, *, size: int, count: int) -> list[Target]:
    first = timings.get(PAINT) or timings["overview"]
    empty = timings.get(EMPTY)
    cost = timings[SEEN].median / timings[ALONE].median - 1
    slowest = max((timings[name] for name in PATHS), key=lambda timing: timing.each)
    return [
        Target(
            promise=f"the first page painted in less than {SOONEST} s, with {count:,} rows in the log",
            measured=f"{first.each:.3f} s ({first.name})"
            + (f", {empty.each:.3f} s of them an empty page" if empty else ""),
            reached=first.each < SOONEST,
        ),
        Target(promise="in less than 100 kB", measured=f"{size / 1000:.1f} kB", reached=size < LARGEST),
        Target(
            promise=f"every list, and a row, in less than {SOONEST} s",
            measured=f"{slowest.each:.3f} s ({slowest.name})",
            reached=slowest.each < SOONEST,
        ),
        Target(
            promise="the page costs the publisher less than the runs differ among themselves",
            measured=f"{cost:+.1%}, runs differ by {max(timings[ALONE].spread, timings[SEEN].spread):.1%}",
            reached=cost <= max(timings[ALONE].spread, timings[SEEN].spread),
        ),
    ]
