"""Webhooks against real servers that behave and misbehave: each fault has a stated end, and nothing is lost."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import ExitStack, closing
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import create_engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import EventlogError, OccupiedError, SinkError
from eventlog.core.model import Document, Outcome, Status
from eventlog.core.plugins import SinkOrder
from eventlog.core.seams import Format, Sink
from eventlog.sinks.webhook.plugin import WEBHOOK, WebhookOutput
from eventlog.sinks.webhook.sink import WebhookSink
from eventlog.testing import FormatSuite, SinkSuite, SinkTarget, document
from eventlog.tracked.options import Style, TriggerOptions
from tests.integration.publishing import publish_all
from tests.integration.scripted_server import (
    ScriptedServer,
    Step,
    answer,
    drop_by_drop,
    hang_up,
    raw,
    silence,
)
from tests.support.events import event_format
from tests.support.sinks import opened, tenure

SECRET = f"whsec_{b64encode(b'k' * 32).decode()}"
NEW_SECRET = f"whsec_{b64encode(b'n' * 32).decode()}"


class Sent(NamedTuple):
    """A request as a receiver reads it."""

    line: str
    headers: Message
    body: bytes

    @property
    def id(self) -> str:
        return str(self.headers["webhook-id"])


def requests(server: ScriptedServer) -> list[Sent]:
    found = []
    for head, body in server.requests:
        line, _, rest = head.partition("\r\n")
        found.append(Sent(line, Parser().parsestr(rest), body))
    return found


def verified(request: Sent, secret: str = SECRET) -> bool:
    """Whether the signature is right, reckoned by the text of the specification and without our code."""
    content = ".".join([request.id, str(request.headers["webhook-timestamp"]), request.body.decode()])
    key = b64decode(secret.removeprefix("whsec_"))
    expected = b64encode(hmac.new(key, content.encode(), hashlib.sha256).digest()).decode()
    fresh = abs(time.time() - int(str(request.headers["webhook-timestamp"]))) < 300
    return fresh and f"v1,{expected}" in str(request.headers["webhook-signature"]).split(" ")


def sink_to(server: ScriptedServer, **settings: Any) -> WebhookSink:
    output = WebhookOutput(**{"url": server.url, "secrets": (SECRET,), **settings})
    made = WEBHOOK.build(SinkOrder(output=output, format=event_format("jsonl", batch=1, array=True)))
    assert isinstance(made, WebhookSink)
    return made


def json_document(number: int, body: bytes = b'{"a":1}') -> Document:
    return Document(id=f"{number:020d}", body=body, covers={str(number): ((number,),)})


def sent(steps: list[Step], **settings: Any) -> tuple[list[Outcome], list[Sent]]:
    """What becomes of a document at a server that plays the steps."""
    with ScriptedServer(steps) as server, closing(opened(sink_to(server, **settings), tenure())) as sink:
        return list(sink.commit("p1", [json_document(1)])), requests(server)


def failure(steps: list[Step], **settings: Any) -> SinkError:
    """What is said of a document that one request has not brought there."""
    with ScriptedServer(steps) as server, closing(opened(sink_to(server, **settings), tenure())) as sink:
        with pytest.raises(SinkError) as caught:
            sink.commit("p1", [json_document(1)])
        assert len(server.requests) == 1
    return caught.value


class TestWebhookSink(SinkSuite):
    @pytest.fixture
    def target(self) -> Iterator[SinkTarget]:
        with ScriptedServer([answer(status="204 No Content")]) as server:

            def ids() -> list[str]:
                return [str(one.headers["eventlog-document"]) for one in requests(server)]

            with ExitStack() as stack:

                def make() -> Sink:
                    return stack.enter_context(closing(sink_to(server)))

                yield SinkTarget(make=make, ids=ids, document=document)


@pytest.mark.parametrize("kind", ["jsonl", "debezium", "cloudevents"])
class TestEventFormats(FormatSuite):
    @pytest.fixture
    def form(self, kind: str) -> Format:
        return event_format(kind, batch=2)


@pytest.mark.parametrize("kind", ["jsonl", "debezium", "cloudevents"])
class TestEventMessages(FormatSuite):
    @pytest.fixture
    def form(self, kind: str) -> Format:
        return event_format(kind, batch=3, topics=True)


class TestAvroMessages(FormatSuite):
    @pytest.fixture
    def form(self) -> Format:
        return event_format("debezium", batch=3, topics=True, encoding="avro")


def test_a_request_is_signed_and_says_what_it_is() -> None:
    outcomes, [request] = sent([answer(status="202 Accepted")], secrets=(SECRET, NEW_SECRET))
    assert outcomes == []
    assert request.line.startswith("POST /xds?key=hidden ")
    assert request.headers["content-type"] == "application/json"
    assert request.id == "p1_00000000000000000001"
    assert verified(request)
    assert verified(request, NEW_SECRET)
    assert not verified(request._replace(body=b'{"a":2}'))
    assert not verified(request, f"whsec_{b64encode(b'x' * 32).decode()}")


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "410 Gone", "413 Too Large", "422 No"])
def test_what_a_receiver_refuses_ends_as_an_error_with_the_reason(status: str) -> None:
    [outcome], made = sent([answer(b"no such thing", status)])
    assert outcome.status is Status.ERROR
    assert outcome.note is not None
    assert outcome.note.startswith(f"the receiver answered {status[:3]}")
    assert "no such thing" in outcome.note
    assert len(made) == 1


def test_an_error_page_under_200_is_a_success() -> None:
    """A webhook is judged by its status alone, as Standard Webhooks has it."""
    assert sent([answer(b"<html>Internal error</html>")])[0] == []
    assert sent([raw(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nthe rest is cut")])[0] == []
    assert sent([answer(b"x" * 5000)], reply_limit=100)[0] == []


@pytest.mark.parametrize(
    "steps, settings, why, passes",
    [
        ([answer(status="500 No")], {}, "answered 500", True),
        ([answer(status="503 Busy")], {}, "answered 503", True),
        ([answer(b"", "408 Slow")], {}, "answered 408", True),
        ([answer(b"", "302 Found", "Location: https://evil.example/")], {}, "answered 302", False),
        ([answer(b"", "308 Moved", "Location: https://evil.example/")], {}, "answered 308", False),
        ([silence], {"read_timeout": 0.2}, "did not answer in time", True),
        ([drop_by_drop(b"HTTP/1.1 200 OK\r\n" * 9, 0.1)], {"total_timeout": 0.3}, "did not answer in time", True),
    ],
)
def test_what_may_pass_waits_and_a_redirection_is_not_followed(
    steps: list[Step], settings: dict[str, Any], why: str, passes: bool
) -> None:
    error = failure(steps, authorization="Bearer s3cret", **settings)
    assert why in str(error)
    assert error.may_pass is passes
    assert not any(secret in str(error) for secret in ("s3cret", "hidden", SECRET))


def test_a_receiver_that_asks_for_a_pause_gets_one_on_all_connections() -> None:
    with ScriptedServer([answer(b"", "429 Too Many Requests", "Retry-After: 1"), answer()]) as server:
        sink = opened(sink_to(server, connections=2), tenure())
        with pytest.raises(SinkError, match="answered 429"):
            sink.commit("p1", [json_document(1)])
        for lane in sink.lanes:
            with pytest.raises(SinkError, match="asked to wait"):
                lane.commit("p1", [json_document(1)])
        assert len(server.requests) == 1
        time.sleep(1.05)
        assert list(sink.commit("p1", [json_document(1)])) == []
        assert len({one.id for one in requests(server)}) == 1
        sink.close()


def test_a_publisher_that_was_replaced_stops() -> None:
    with ScriptedServer([answer(b"", "409 Conflict", "Eventlog-Epoch: 2")]) as server, pytest.raises(OccupiedError):
        opened(sink_to(server), tenure()).commit("p1", [json_document(1)])
    assert sent([answer(b"", "409 Conflict")])[0][0].status is Status.ERROR


def test_a_body_may_be_compressed_and_is_signed_as_it_was() -> None:
    _, [request] = sent([answer()], compression="gzip")
    assert request.headers["content-encoding"] == "gzip"
    assert verified(request._replace(body=gzip.decompress(request.body)))


def test_a_token_is_fetched_once_and_again_when_it_is_refused() -> None:
    lives = {"token-1": 3600, "token-2": "3600"}
    grants = [answer(json.dumps({"access_token": one, "expires_in": life}).encode()) for one, life in lives.items()]
    steps = [answer(), answer(), answer(status="401 Unauthorized"), answer()]
    with ScriptedServer(grants) as idp, ScriptedServer(steps) as server:
        login = {
            "oauth_url": idp.url,
            "oauth_client_id": "me",
            "oauth_client_secret": "hu sh",
            "oauth_scope": "x",
        }
        sink = opened(sink_to(server, **login), tenure())
        for number in (1, 2, 3):
            assert list(sink.commit("p1", [json_document(number)])) == []
        sink.close()
        tokens = [str(one.headers["authorization"]) for one in requests(server)]
        [asked, again] = requests(idp)
    assert tokens == ["Bearer token-1"] * 3 + ["Bearer token-2"]
    assert asked.body == again.body == b"grant_type=client_credentials&scope=x"
    assert b64decode(str(asked.headers["authorization"]).removeprefix("Basic ")) == b"me:hu+sh"


@pytest.mark.parametrize(
    "step, why, passes",
    [
        (answer(b'{"error":"invalid_client: hush"}', "401 Unauthorized"), "gave no token: it answered 401", False),
        (answer(status="503 Busy"), "gave no token: it answered 503", True),
        (answer(b"<html>"), "no token", True),
        (answer(b'{"access_token":"a\\nb"}'), "no header can carry", True),
    ],
)
def test_without_a_token_nothing_is_sent(step: Step, why: str, passes: bool) -> None:
    with ScriptedServer([step]) as idp, ScriptedServer([answer()]) as server:
        login = {"oauth_url": idp.url, "oauth_client_id": "me", "oauth_client_secret": "hush"}
        sink = sink_to(server, **login)
        with pytest.raises(SinkError) as caught:
            sink.commit("p1", [json_document(1)])
        sink.close()
        assert server.requests == []
    assert why in str(caught.value)
    assert "hush" not in str(caught.value)
    assert caught.value.may_pass is passes


def test_a_proxy_gets_the_whole_address_and_its_login() -> None:
    with ScriptedServer([answer()]) as proxy:
        url, by = "http://receiver.example/in?key=1", f"http://user:p%40ss@localhost:{proxy.port}"
        sink = opened(sink_to(proxy, url=url, proxy=by), tenure())
        assert list(sink.commit("p1", [json_document(1)])) == []
        sink.close()
        [request] = requests(proxy)
    assert request.line == "POST http://receiver.example/in?key=1 HTTP/1.1"
    assert b64decode(str(request.headers["proxy-authorization"]).removeprefix("Basic ")) == b"user:p@ss"
    assert request.headers["host"] == "receiver.example"


def webhook(url: str, **settings: Any) -> dict[str, Any]:
    return {"sink": "webhook", "url": url, "secrets": [SECRET], **settings}


def logged(folder: Path, output: dict[str, Any], *statements: str) -> Config:
    """A log of two tables with these changes, and a configuration of the output."""
    engine = create_engine(f"sqlite:///{folder / 'app.db'}")
    with engine.begin() as connection:
        for name in ("people", "things"):
            connection.execute(text(f"CREATE TABLE IF NOT EXISTS {name} (id INTEGER PRIMARY KEY, name TEXT)"))
    install(engine)
    track(engine, ["people", "things"], TriggerOptions(style=Style("image")))
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    settings = {"source": {"url": str(engine.url)}, "publisher": {"allow_loopback": True}, "output": [output]}
    engine.dispose()
    return from_settings(settings, {}, origin="a test")


def statuses(config: Config) -> dict[int, str]:
    """What became of the rows."""
    engine = create_engine(config.source.url)
    with engine.begin() as connection:
        rows = connection.execute(text("SELECT record_id, status FROM event_log ORDER BY record_id")).all()
    engine.dispose()
    return {int(number): str(status) for number, status in rows}


def published(folder: Path, output: dict[str, Any], *statements: str) -> tuple[Config, dict[int, str]]:
    """What became of the rows of such a log, after a publisher was there."""
    config = logged(folder, output, *statements)
    publish_all(config)
    return config, statuses(config)


def test_a_publisher_sends_each_table_to_its_address_and_refused_rows_can_come_again(tmp_path: Path) -> None:
    steps = [answer(), answer(b"not this one", "422 No"), answer()]
    rows = [
        "INSERT INTO people VALUES (1, 'Ada')",
        "INSERT INTO things VALUES (1, 'pen')",
        "INSERT INTO people VALUES (2, 'Bo')",
    ]
    with ScriptedServer(steps) as server:
        url = f"http://localhost:{server.port}/in/{{table}}/new?k=1"
        config, ended = published(tmp_path, webhook(url), *rows)
        assert list(ended.values()) == ["S", "E", "S"]
        first = requests(server)
        assert [one.line.split(" ")[1] for one in first] == [
            f"/in/{name}/new?k=1" for name in ("people", "things", "people")
        ]
        assert json.loads(first[0].body)["after"] == {"id": 1, "name": "Ada"}
        engine = create_engine(config.source.url)
        with engine.begin() as connection:
            connection.execute(text("UPDATE event_log SET status = 'N' WHERE status = 'E'"))
        engine.dispose()
        publish_all(config)
        requeued = requests(server)[-1]
    assert requeued.body == first[1].body
    assert requeued.id != first[1].id
    assert all(map(verified, (*first, requeued)))


@pytest.mark.parametrize("sink", ["webhook", "http"])
@pytest.mark.parametrize(
    "step, said",
    [
        (silence, "in time"),
        (answer(b"", "302 Found", "Location: https://evil.example/"), "302"),
        (hang_up, "closed|ended|reset"),
    ],
)
def test_after_an_error_the_row_waits_and_the_same_request_comes_again(
    tmp_path: Path, sink: str, step: Step, said: str
) -> None:
    """A receiver that has taken a request and died over the answer knows it by its id."""
    with ScriptedServer([step, answer()]) as server:
        output = {**webhook(f"http://localhost:{server.port}/", read_timeout=0.3), "sink": sink}
        if sink == "http":
            del output["secrets"]
        config = logged(tmp_path, output, "INSERT INTO people VALUES (1, 'Ada')")
        with pytest.raises(EventlogError, match=said):
            publish_all(config)
        assert statuses(config) == {1: "N"}
        publish_all(config)
        one, again = requests(server)
    assert statuses(config) == {1: "S"}
    assert (one.id, one.body) == (again.id, again.body)
