"""Whoever watches a publisher hears from it, whatever visitors do: half a request, a slow one, very many."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from threading import Event as Flag

import pytest
from msgspec import Struct
from sqlalchemy import Engine

from eventlog.core.errors import SinkError
from eventlog.daemon.health import PublisherHealth
from eventlog.web import app as pages
from eventlog.web import endpoint, server
from eventlog.web.endpoint import ADDRESS_CONNECTIONS, MOST_CONNECTIONS, Endpoint, leaving
from eventlog.web.settings import WebConfig
from tests.integration.publishing import until
from tests.web.test_access import TOKEN
from tests.web.visiting import Visit, opened, watched

ENDS = ("page", "endpoint")


class Guest(Struct, kw_only=True, eq=False):
    """A connection as admission sees it."""

    peer: str = "a"
    waits_since: float | None = 0.0
    proved: bool = False


class Somewhere(Struct, frozen=True):
    """Where the three paths are."""

    port: int


@contextmanager
def watching(kind: str, engine: Engine, vitals: PublisherHealth, web: WebConfig | None = None) -> Iterator[Somewhere]:
    """The three paths behind the page, or by themselves."""
    if kind == "page":
        watched(engine)
        with opened(engine, web, vitals) as page:
            yield Somewhere(page.port)
        return
    endpoint = Endpoint("127.0.0.1:0", vitals)
    try:
        yield Somewhere(endpoint.port)
    finally:
        endpoint.close()


def said(port: int, path: str, patience: float = 4.0) -> tuple[int, bytes]:
    """What a probe is answered that waits as long as that of the image: status and body."""
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as probe:
        probe.sendall(f"GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while more := probe.recv(65_536):
            answer += more
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@pytest.fixture
def nobody_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is shut off stays so for longer than a probe of a test waits, and a probe may take its time on a busy machine."""
    for module in (endpoint, server):
        monkeypatch.setattr(module, "PATIENCE_SECONDS", 3000.0)


@pytest.mark.usefixtures("nobody_is_late")
@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("half", [b"", b"GET / HT", b"GET /rows HTTP/1.1\r\nHost: localhost\r\nX-Long: "])
def test_half_sent_requests_shut_nobody_off(kind: str, half: bytes, sqlite: Engine) -> None:
    with watching(kind, sqlite, PublisherHealth(watched=True)) as there, ExitStack() as held:
        for number in range(MOST_CONNECTIONS + 60):
            visitor = held.enter_context(socket.create_connection(("127.0.0.1", there.port), timeout=10))
            visitor.sendall(half)
            if number % 50 == 0 or number > MOST_CONNECTIONS:
                assert said(there.port, "/health", 60)[0] == 200
        assert [said(there.port, path, 60)[0] for path in ("/health", "/ready", "/metrics")] == [200, 503, 200]


FORM = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\ntoken=wrong"


@pytest.mark.usefixtures("nobody_is_late")
@pytest.mark.parametrize(
    "sent, count",
    [
        (FORM % 60_000, MOST_CONNECTIONS + 20),
        (FORM % 11, ADDRESS_CONNECTIONS + 5),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 400, ADDRESS_CONNECTIONS + 5),
    ],
    ids=["forms that do not end", "logins that wait for their refusal", "answers that nobody takes"],
)
def test_visitors_shut_nobody_off(sqlite: Engine, sent: bytes, count: int) -> None:
    web = WebConfig(token=TOKEN)
    with watching("page", sqlite, PublisherHealth(watched=True), web) as there, ExitStack() as held:
        for _ in range(count):
            visitor = held.enter_context(socket.socket())
            visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            visitor.connect(("127.0.0.1", there.port))
            visitor.sendall(sent)
        assert [said(there.port, path, 60)[0] for path in ("/health", "/ready", "/metrics")] == [200, 503, 200]


HALF_FORM = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\n\r\ntoken=wrong"
WRONG_TOKENS = {
    "logins": FORM % 11,
    "halves of logins": HALF_FORM,
    "bearers": b"GET /rows HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n",
    "forms for what only operators do": b"POST /act HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\n\r\naction=",
}


@pytest.mark.usefixtures("nobody_is_late")
@pytest.mark.parametrize("sent", WRONG_TOKENS.values(), ids=WRONG_TOKENS.keys())
def test_wrong_tokens_keep_no_operator_out(sqlite: Engine, sent: bytes) -> None:
    log = watched(sqlite)
    with opened(log.engine, WebConfig(token=TOKEN), PublisherHealth()) as page, ExitStack() as held:
        session, bearer = Visit(page), Visit(page, Authorization=f"Bearer {TOKEN}")
        assert session.post("/login", {"token": TOKEN}).status == 303
        for _ in range(40):
            visitor = held.enter_context(socket.create_connection(("127.0.0.1", page.port), timeout=10))
            visitor.sendall(sent)
        asked = [visit.get("/rows").status for _ in range(5) for visit in (session, bearer)]
        assert asked == [200] * 10
        assert Visit(page).post("/login", {"token": TOKEN}).status == 303, "and who has the token gets in"
        assert [said(page.port, path, 60)[0] for path in ("/health", "/ready", "/metrics")] == [200, 503, 200]


@pytest.mark.usefixtures("nobody_is_late")
def test_a_flood_of_those_who_proved_nothing_ends_no_operators_connection(sqlite: Engine) -> None:
    log = watched(sqlite)
    with opened(log.engine, WebConfig(token=TOKEN), PublisherHealth()) as page, ExitStack() as held:
        operator = HTTPConnection("127.0.0.1", page.port, timeout=30)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        operator.request("GET", "/rows", headers=headers)
        assert operator.getresponse().read()
        kept = operator.sock
        for _ in range(MOST_CONNECTIONS + 20):
            visitor = held.enter_context(socket.create_connection(("127.0.0.1", page.port), timeout=10))
            visitor.sendall(HALF_FORM)
        assert said(page.port, "/health", 60)[0] == 200
        operator.request("GET", "/rows", headers=headers)
        answer = operator.getresponse()
        assert (answer.status, operator.sock) == (200, kept)
        operator.close()


def test_pages_that_take_long_keep_no_probe_waiting(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = Flag()
    monkeypatch.setattr("eventlog.web.log_pages.LogPages.rows", lambda *_: goes_on.wait(60) and [])
    with watching("page", sqlite, PublisherHealth(watched=True)) as there, ExitStack() as held:
        try:
            for _ in range(60):  # more than there are threads
                visitor = held.enter_context(socket.create_connection(("127.0.0.1", there.port), timeout=10))
                visitor.sendall(b"GET /rows HTTP/1.1\r\nHost: localhost\r\n\r\n")
            until(lambda: said(there.port, "/static/x/live.js")[0] == 200, "all have been read")
            assert Visit(there).get("/rows", Host="localhost").status == 503, "all places are taken"
            assert [said(there.port, path)[0] for path in ("/health", "/ready", "/metrics")] == [200, 503, 200]
        finally:
            goes_on.set()


@pytest.mark.parametrize("kind", ENDS)
def test_who_says_nothing_for_too_long_has_to_go(kind: str, sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (endpoint, server):
        monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.3)
    with watching(kind, sqlite, PublisherHealth()) as there:
        with socket.create_connection(("127.0.0.1", there.port), timeout=20) as visitor:
            assert ended(visitor, b"GET /health HTTP/1.1\r\n")
        if kind == "page":
            with socket.create_connection(("127.0.0.1", there.port), timeout=20) as visitor:
                visitor.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                assert visitor.recv(65_536).startswith(b"HTTP/1.1 200")
                assert ended(visitor, b"GET /health HTTP/1.1\r\n")


def ended(visitor: socket.socket, half: bytes) -> bool:
    """Whether the connection is ended, although its request goes on coming letter by letter."""
    visitor.sendall(half)
    visitor.settimeout(0.05)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            visitor.sendall(b"x")
            if visitor.recv(100) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_a_form_that_takes_too_long_is_given_up(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PATIENCE_SECONDS", 0.2)
    half = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\ntoken="
    with (
        watching("page", sqlite, PublisherHealth(), WebConfig(token=TOKEN)) as there,
        socket.create_connection(("127.0.0.1", there.port), timeout=20) as visitor,
    ):
        visitor.sendall(half)
        assert b" 400 " in visitor.recv(65_536)


@pytest.mark.parametrize(
    "body, said", [({"x": "y" * 70_000}, "longer than any form"), ({str(n): "" for n in range(2_100)}, "more fields")]
)
def test_a_form_that_is_none_is_refused_in_words(sqlite: Engine, body: dict[str, str], said: str) -> None:
    log = watched(sqlite)
    with opened(log.engine, WebConfig(token=TOKEN)) as page:
        answer = Visit(page).post("/login", body)
        assert (answer.status, said in answer.body) == (400, True)
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("kind", ENDS)
def test_health_tells_the_state_and_no_words(kind: str, sqlite: Engine) -> None:
    vitals = PublisherHealth(watched=True)
    vitals.note_failure(SinkError("https://receiver.internal answered 500: user scott, password tig"))
    with watching(kind, sqlite, vitals) as there:
        for path in ("/health", "/ready"):
            body = said(there.port, path)[1]
            assert json.loads(body).keys() == {"state", "silent_seconds"}
            assert json.loads(body)["state"] == "failing"
        assert not [word for word in (b"receiver", b"scott", b"tig") if word in said(there.port, "/metrics")[1]]


def test_room_is_made_by_who_lets_us_wait_longest() -> None:
    newcomer = Guest(peer="b", waits_since=50.0)
    crowd = [Guest(peer=f"p{n}", waits_since=float(n) or None) for n in range(MOST_CONNECTIONS)]
    assert leaving([*crowd[1:], newcomer], newcomer) == []
    assert leaving([*crowd, newcomer], newcomer) == [crowd[1]], "the first is being served"
    served = [Guest(peer=f"p{n}", waits_since=None) for n in range(MOST_CONNECTIONS)]
    assert leaving([*served, newcomer], newcomer) == [], "they are served soon, and who comes is not sent away"
    assert leaving([*crowd, *served[:2], newcomer], newcomer) == crowd[1:4], "and then there are as many as before"


def test_a_flood_from_one_address_ends_its_own_connections() -> None:
    other = Guest(peer="other", waits_since=0.0)
    flood = [Guest(peer="flood", waits_since=float(n + 1)) for n in range(ADDRESS_CONNECTIONS)]
    newcomer = Guest(peer="flood", waits_since=999.0)
    assert leaving([other, *flood, newcomer], newcomer) == [flood[0]]
    assert leaving([other, *flood], other) == []
    flood[0].proved = True
    assert leaving([other, *flood, newcomer], newcomer) == [flood[1]], "who has proved who they are goes last"
    operators = [Guest(peer="flood", waits_since=float(n), proved=True) for n in range(ADDRESS_CONNECTIONS)]
    assert leaving([*operators, newcomer], newcomer) == [operators[0]], "but nobody keeps a newcomer out"


def test_what_a_busy_page_says_is_guarded_like_everything_else(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "WORKING_CONNECTIONS", 0)
    log = watched(sqlite)
    with opened(log.engine) as page:
        answer = Visit(page).get("/rows")
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.headers["x-frame-options"] == "DENY"
