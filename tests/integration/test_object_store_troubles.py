"""A store that stops to do its part, and uploads that a kill broke off: rows wait, and come once when it is over."""

from __future__ import annotations

import http.client
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import obstore
import pytest
from sqlalchemy import Engine

from eventlog.core.errors import SinkError
from eventlog.sinks.store import objects as module
from eventlog.sinks.store.plans import StoredPlans
from tests.acceptance.command import eventlog, ok
from tests.integration.publishing import Process, finished, site, until
from tests.integration.test_object_store import OLD, configured
from tests.support.converting import log_row, write_lines
from tests.support.forking import Forked
from tests.support.servers_store import ENVIRONMENT, PARTS, SECRET, StoreServer, asked_by_boto3, content, uploads

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
            until(finished(log, 1), "the first row is published")
            way.trouble = trouble
            log.write(2, key="idu=2")
            until(lambda: f"{address} {said}" in process.said.read_text(), "it is said what is wrong")
            assert log.statuses()[2] == "N"
            way.trouble = None
            way.is_over.set()
            until(finished(log, 2), "the other row is published")
            assert process.stop() == 0
    found = b"".join(content(s3_store.objects(address)).values())
    assert [found.count(f"idu={number},".encode()) for number in (1, 2)] == [1, 1]
    assert SECRET not in process.said.read_text()


@pytest.mark.parametrize("name", ["no right", "no answer"])
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


BREAKING = f"""{PARTS}
import os, signal, obstore
usual = obstore.put
def pieces():
    yield bytes(6_000_000)
    os.kill(os.getpid(), signal.SIGKILL)
def put(store, name, content, **named):
    if named["use_multipart"]:
        content = pieces()
    return usual(store, name, content, **named)
obstore.put = put
"""
"""A process that is killed between two parts of its first upload."""


@pytest.fixture
def foreign(s3_store: StoreServer) -> Iterator[list[str]]:
    """Uploads of others, at the same place and elsewhere; they are there still when the test ends."""
    client, bucket = asked_by_boto3(s3_store), "bucket"
    names = ["others/a", f"{s3_store.address().removeprefix('s3://bucket/')}/.eventlog/hidden/0123456789abcdef/000000"]
    begun = {name: client.create_multipart_upload(Bucket=bucket, Key=name)["UploadId"] for name in names}
    yield names
    there = uploads(s3_store, "s3://bucket/")
    for name in there:
        if name in names:
            client.abort_multipart_upload(Bucket=bucket, Key=name, UploadId=begun[name])
    assert there == sorted({*there, *names})


@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize("right", [True, False], ids=["with the right", "without the right"])
def test_a_conversion_leaves_no_upload_of_one_that_was_killed(
    s3_store: StoreServer, tmp_path: Path, right: bool
) -> None:
    """Without the right to list uploads they stay, and the conversion is made all the same."""
    lines = write_lines(tmp_path / "a.jsonl", [log_row(number, table_key=f"idu={number}") for number in range(1, 8)])
    address = s3_store.address()
    with way_to(s3_store) as (seen, way):
        environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": seen.url, "TMPDIR": str(tmp_path)}
        words = ("convert", lines, "--out", address, "--engine", "local[1]", "--part-events", "3")
        assert Forked(*words, environment=environment, program=BREAKING).wait(120) == -signal.SIGKILL
        assert uploads(s3_store, address)
        way.trouble = None if right else uploads_denied
        ok(*words, environment=environment)
    assert bool(uploads(s3_store, address)) != right
    objects = s3_store.objects(address)
    assert content(objects).keys() == {"_SUCCESS", "outcomes.parquet", *(f"part-0000{one}.xml" for one in range(3))}
    assert not list(objects.names(".eventlog/"))


def uploads_denied(way: Way) -> bool:
    return "uploads" in way.path and way.command == "GET" and answers(403, "AccessDenied", way)


def test_of_two_at_once_the_earlier_one_is_told_that_its_upload_was_ended(
    s3_store: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = s3_store.address()
    earlier, later = (StoredPlans(s3_store.objects(address)) for _ in range(2))
    file = tmp_path / "file"
    file.write_bytes(b"x" * 11_000_000)
    monkeypatch.setattr(module, "IN_ONE_BYTES", 1000)
    usual = obstore.put

    def overtaken(store: Any, name: str, content: Any, **named: Any) -> Any:
        def pieces() -> Iterator[bytes]:
            yield file.read_bytes()
            monkeypatch.setattr(obstore, "put", usual)
            # A request inside of a request needs a thread of its own.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(later.take_over, None).result()
            yield file.read_bytes()

        return usual(store, name, pieces() if named["use_multipart"] else content, **named)

    earlier.take_over(None)
    monkeypatch.setattr(obstore, "put", overtaken)
    with pytest.raises(SinkError, match=r"knows an upload no more, because a later run .* ended it\. Let one run"):
        earlier.hide("earlier", [(earlier.folder / "a", file)])
    later.show(later.hide("later", [(later.folder / "a", file)]))
    later.forget()
    objects = s3_store.objects(address)
    assert content(objects) == {"a": file.read_bytes()}
    assert not uploads(s3_store, address)
    assert not list(objects.names(".eventlog/"))
