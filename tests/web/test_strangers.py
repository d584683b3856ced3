"""Who has proved nothing: they log in under the page's name and from its form only, fill no disk and no memory."""

from __future__ import annotations

import io
import json
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.config.settings import Config, SourceConfig
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.logging import journal
from eventlog.web import refused_logins
from eventlog.web.open_page import open_page
from eventlog.web.server import PageServer
from eventlog.web.settings import WebConfig
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import until
from tests.web.test_access import TOKEN
from tests.web.test_room import ENDS, watching
from tests.web.visiting import Visit

NAMED = WebConfig(token=TOKEN, hosts=("log.example.net",))
LONG_HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\n" + (b"X-%d: " % 1 + b"a" * 60_000 + b"\r\n") * 40 + b"\r\n"
COOKIES = b"GET /rows HTTP/1.1\r\nHost: localhost\r\nCookie: " + b"a=1;" * 60_000 + b"\r\n\r\n"
NONSENSE = {
    "no request": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "no request behind one": b"GET /rows HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"\x00\x01nonsense\r\n\r\n",
    "no request behind half a login": b"POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    "a web socket": b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    "another protocol": b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
    "a long head": LONG_HEAD,
    "a lot of cookies": COOKIES,
    "a strange name": b"GET /login HTTP/1.1\r\nHost: [[::x%00\xff]\r\n\r\n",
    "a strange token": b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
    "a strange cookie": b'GET / HTTP/1.1\r\nHost: x\r\nCookie: \xff=\xfe; "\\\r\n\r\n',
    "half a login": b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\ntok",
    "a strange form": b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n%ff&=\xff;&a",
}


@contextmanager
def told(
    log: LogTable, web: WebConfig, vitals: PublisherHealth | None = None
) -> Iterator[tuple[PageServer, io.StringIO]]:
    """A page, and what it writes to the journal."""
    written = io.StringIO()
    config = Config(source=SourceConfig(url=str(log.engine.url)), tables={"web": web})
    page = open_page("127.0.0.1:0", config, journal("json", stream=written), vitals)
    try:
        yield page, written
    finally:
        page.close()


def records(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def answered(port: int, sent: bytes, patience: float = 20.0) -> bytes:
    """What is answered until the connection ends, or waits for more."""
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as visitor:
        answer = b""
        try:
            visitor.sendall(sent)
            while more := visitor.recv(65_536):
                answer += more
        except OSError:
            pass
        return answer


def test_a_login_asks_for_the_name_and_the_origin_as_everything_else_does(log: LogTable) -> None:
    with told(log, NAMED) as (page, _):
        for method in ("get", "post"):
            visit = Visit(page, Host="evil.example")
            answer = visit.get("/login") if method == "get" else visit.post("/login", {"token": TOKEN})
            assert (answer.status, visit.cookies) == (421, {}), method
        for headers in ({"Origin": "https://evil.example"}, {"Sec_Fetch_Site": "cross-site"}):
            visit = Visit(page, Host="log.example.net", **headers)
            assert (visit.post("/login", {"token": TOKEN}).status, visit.cookies) == (403, {})
        linked = Visit(page, Host="log.example.net", Sec_Fetch_Site="cross-site")
        assert linked.get("/login").status == 200, "a link from elsewhere leads here"
        own = Visit(page, Host="log.example.net", Origin="https://log.example.net", Sec_Fetch_Site="same-origin")
        assert own.post("/login", {"token": TOKEN}).status == 303
        assert own.get("/rows").status == 200


@pytest.mark.parametrize("order", [("ada", "mallory"), ("mallory", "ada")])
def test_a_visitor_names_nobody_beside_the_proxy(log: LogTable, order: tuple[str, str]) -> None:
    web = WebConfig(user_header="X-Forwarded-User", hosts=("log.example.net",))
    head = "GET /rows HTTP/1.1\r\nHost: log.example.net\r\nConnection: close\r\n"
    one = f"{head}X-Forwarded-User: {order[0]}\r\n"
    with told(log, web) as (page, _):
        assert b"HTTP/1.1 200" in answered(page.port, f"{one}\r\n".encode())
        assert b"HTTP/1.1 403" in answered(page.port, f"{one}x-forwarded-user: {order[1]}\r\n\r\n".encode())


def test_refused_logins_are_counted_and_not_written_each(log: LogTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_logins, "LINE_SECONDS", 1.0)
    with told(log, WebConfig(token=TOKEN), PublisherHealth()) as (page, written):
        for _ in range(20):
            assert Visit(page).post("/login", {"token": "wrong"}).status == 401
            assert Visit(page, Authorization="Bearer wrong").get("/rows").status == 401
        assert "eventlog_refused_logins_total 40.0" in Visit(page).get("/metrics").body
        assert Visit(page).get("/rows").status == 401, "who tries nothing is no refused login"
        until(lambda: sum(record["count"] for record in records(written)) == 40, "all were written")
        assert records(written)[0]["count"] == 1, "the first is written at once"
        assert len(records(written)) <= 8
        assert {(record["action"], record["peer"]) for record in records(written)} == {("login_refused", "127.0.0.1")}


def test_the_last_refused_logins_are_written_at_the_end(log: LogTable) -> None:
    with told(log, WebConfig(token=TOKEN)) as (page, written):
        for _ in range(7):
            Visit(page).post("/login", {"token": "wrong"})
        assert [record["count"] for record in records(written)] == [1]
    assert [record["count"] for record in records(written)] == [1, 6]


@pytest.mark.parametrize("sent", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_writes_nothing_to_the_journal(
    log: LogTable, sent: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("eventlog.web.app.PATIENCE_SECONDS", 0.3)
    with told(log, WebConfig(token=TOKEN), PublisherHealth()) as (page, written):
        for _ in range(3):
            assert b"HTTP/1.1 500" not in answered(page.port, sent, 0.3)
        assert Visit(page).get("/login").status == 200
    assert [record for record in records(written) if record["action"] != "login_refused"] == []
    # Outside of a test the journal has what libraries say.
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("kind", ENDS)
def test_a_head_takes_little_memory(kind: str, sqlite: Engine) -> None:
    with watching(kind, sqlite, PublisherHealth()) as there:
        # The last line is not sent: who takes it all would wait for that.
        assert b" 200 " not in answered(there.port, LONG_HEAD[:-2]), "it ends before all was read"
        assert b" 200 " not in answered(there.port, LONG_HEAD)
        assert b" 200 " in answered(there.port, b"GET /health HTTP/1.0\r\nHost: x\r\nX: %s\r\n\r\n" % (b"a" * 30_000))
