"""A store that stops to do its part under a publisher: the reason is said, rows wait, and each comes once when it is over."""

from __future__ import annotations

import http.client
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from urllib.request import Request, urlopen

import pytest
from sqlalchemy import Engine

from eventlog.sinks.store.plans import HIDDEN
from tests.acceptance.command import eventlog, ok
from tests.integration.publishing import Process, settled, site, until
from tests.integration.test_object_store import OLD, configured
from tests.support.converting import log_row, write_lines
from tests.support.forking import Forked
from tests.support.servers_store import ENVIRONMENT, PARTS, SECRET, StoreServer, content

IMPATIENT = "import eventlog.sinks.store.objects as objects; objects.ANSWER_SECONDS = 0.5\n"
HOPPING = ("connection", "transfer-encoding", "content-length")
"""Headers that are about one connection alone."""

Trouble = Callable[["Way"], bool]
"""What happens to a request; whether that is all that happens to it."""


class Way(BaseHTTPRequestHandler):
    """A request on its way to the store."""

    target = ""
    trouble: Trouble | None = None
    is_over = Event()

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        trouble = type(self).trouble
        if trouble is not None and trouble(self):
            return
        store = http.client.HTTPConnection(self.target, timeout=60)
        store.request(self.command, self.path, body, dict(self.headers.items()))
        answer = store.getresponse()
        found = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOPPING:
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(found))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(found)
        store.close()

    do_GET = do_PUT = do_DELETE = do_POST = do_HEAD = pass_on  # noqa: N815  # as the library calls them

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def answers(status: int, code: str, way: Way) -> bool:
    body = f"<Error><Code>{code}</Code><Message>{SECRET}</Message></Error>" if code else "<html>It works!</html>"
    way.send_response(status)
    way.send_header("Content-Length", str(len(body)))
    way.end_headers()
    if way.command != "HEAD":
        way.wfile.write(body.encode())
    return True


def hangs_up(way: Way) -> bool:
    way.close_connection = True
    return True


def is_silent(way: Way) -> bool:
    way.is_over.wait(60)
    return hangs_up(way)


TROUBLES: dict[str, tuple[Trouble, str]] = {
    "no bucket": (partial(answers, 404, "NoSuchBucket"), "has no such bucket"),
    "no right": (partial(answers, 403, "AccessDenied"), "may not be used with these credentials"),
    "another region": (partial(answers, 301, "PermanentRedirect"), "is in another region"),
    "a clock that is off": (partial(answers, 403, "RequestTimeTooSkewed"), "does not believe the clock"),
    "no answer": (hangs_up, "does not answer"),
    "silence": (is_silent, "does not answer"),
    "a page": (partial(answers, 200, ""), "does not answer"),
}


@contextmanager
def way_to(server: StoreServer) -> Iterator[tuple[StoreServer, type[Way]]]:
    """The store as it is seen at the end of a way."""

    class Ours(Way):
        target = server.url.removeprefix("http://")
        is_over = Event()

    with ThreadingHTTPServer(("127.0.0.1", 0), Ours) as relay:
        Thread(target=relay.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield StoreServer(f"http://127.0.0.1:{relay.server_address[1]}"), Ours
        finally:
            Ours.is_over.set()
            relay.shutdown()


@pytest.mark.parametrize("name", TROUBLES)
def test_what_a_store_does_not_do_is_said_and_rows_wait_until_it_does(
    s3_store: StoreServer, sqlite: Engine, tmp_path: Path, name: str
) -> None:
    (trouble, said), log, address = TROUBLES[name], site(sqlite), s3_store.address()
    publisher = "[publisher]\nretry_first = 0.1\nretry_longest = 0.5\npolling_interval = 1\n"
    with way_to(s3_store) as (seen, way):
        file = configured(tmp_path, address, seen, publisher)
        options = ("--config", str(file))
        with Process(log.engine, tmp_path / "out", *options, out=False, program=IMPATIENT) as process:
            log.write(1, key="idu=1")
            until(settled(log, 1), "the first row is published")
            way.trouble = trouble
            log.write(2, key="idu=2")
            until(lambda: f"{address} {said}" in process.said.read_text(), "it is said what is wrong")
            assert log.statuses()[2] == "N"
            way.trouble = None
            way.is_over.set()
            until(settled(log, 2), "the other row is published")
            assert process.stop() == 0
    found = b"".join(content(s3_store.objects(address)).values())
    assert [found.count(f"idu={number},".encode()) for number in (1, 2)] == [1, 1]
    assert SECRET not in process.said.read_text()


@pytest.mark.parametrize("name", [name for name in TROUBLES if name != "silence"])
def test_rows_that_cannot_be_archived_stay(s3_store: StoreServer, sqlite: Engine, tmp_path: Path, name: str) -> None:
    (trouble, said), log, address = TROUBLES[name], site(sqlite), s3_store.address()
    for number in (1, 2, 3):
        log.write(number, status="S", event_time=OLD)
    words = ("purge", "--database", str(sqlite.url), "--older-than", "1d", "--yes", "--archive", address)
    with way_to(s3_store) as (seen, way):
        environment = {**os.environ, **ENVIRONMENT, "AWS_ENDPOINT_URL": seen.url}
        way.trouble = trouble
        done = eventlog(*words, environment=environment)
        assert (done.returncode, f"{address} {said}" in done.stderr, len(log.statuses())) == (75, True, 3), done.stderr
        assert SECRET not in done.stderr
        way.trouble = None
        assert "3 rows deleted, 3 archived in 1 file" in ok(*words, environment=environment)


def uploads(server: StoreServer, address: str) -> dict[str, str]:
    """The uploads of parts below an address that nobody has ended, by name."""
    with urlopen(f"{server.url}/bucket?uploads", timeout=60) as answer:  # noqa: S310  # our own
        listed = answer.read().decode()
    pairs = zip(re.findall("<Key>([^<]+)", listed), re.findall("<UploadId>([^<]+)", listed), strict=True)
    prefix = address.removeprefix("s3://bucket/") + "/"
    return {name.removeprefix(prefix): upload for name, upload in pairs if name.startswith(prefix)}


def test_parts_of_a_killed_command_are_hidden_and_a_rule_of_the_bucket_may_remove_them(
    s3_store: StoreServer, tmp_path: Path
) -> None:
    lines = write_lines(tmp_path / "a.jsonl", [log_row(number, table_key=f"idu={number}") for number in range(1, 8)])
    words = ("convert", lines, "--engine", "local", "--jobs", "1", "--part-events", "3", "--out")
    ok(*words, tmp_path / "whole")
    address = s3_store.address()
    objects = s3_store.objects(address)
    with way_to(s3_store) as (seen, way):
        environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": seen.url, "TMPDIR": str(tmp_path)}

        def dies(way: Way) -> bool:
            if "partNumber=" not in way.path:
                return False
            process.kill()
            return hangs_up(way)

        way.trouble = dies
        process = Forked(*words, address, environment=environment, program=PARTS)
        assert process.wait(120) == -signal.SIGKILL
        begun = uploads(s3_store, address)
        assert begun
        assert all(name.startswith(HIDDEN) for name in begun)
        assert content(objects) == {}
        for name, upload in begun.items():
            url = f"{s3_store.url}/{address.removeprefix('s3://')}/{name}?uploadId={upload}"
            urlopen(Request(url, method="DELETE"), timeout=60).close()  # noqa: S310  # our own
        way.trouble = None
        ok(*words, address, environment=environment)
    assert uploads(s3_store, address) == {}
    assert content(objects) == {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
