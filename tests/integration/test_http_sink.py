"""The HTTP sink against a real server that behaves and misbehaves: each fault has a stated end."""

from __future__ import annotations

import logging
import socket
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from eventlog.core.errors import OccupiedError, SinkError
from eventlog.core.model import Document, Outcome, Reason, Status
from eventlog.core.seams import Tenure
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.sink import HttpSink
from tests.integration.scripted_server import (
    ScriptedServer,
    Step,
    answer,
    drop_by_drop,
    hang_up,
    raw,
    silence,
)
from tests.support.sinks import opened, tenure

ERROR = b'<nds dtdversion="2.0"><output><status level="error" event-id="1">no</status></output></nds>'
RETRY = b'<nds dtdversion="2.0"><output><status level="retry" event-id="1">busy</status></output></nds>'
FATAL = b'<nds dtdversion="2.0"><output><status level="fatal" event-id="1">stop</status></output></nds>'


@contextmanager
def sink_to(server: ScriptedServer, **settings: float) -> Iterator[HttpSink]:
    sink = HttpSink(replace(HttpSettings(url=server.url, authorization="Bearer s3cret"), **settings))
    try:
        yield sink
    finally:
        sink.close()


def document(number: int) -> Document:
    return Document(id=f"{number:020d}", body=b"<n>%d</n>" % number, covers={str(number): ((number,),)})


def sent(steps: list[Step], count: int = 1, /, **settings: float) -> tuple[list[Outcome], ScriptedServer]:
    """What becomes of documents 1 to `count` at a server that plays the steps."""
    with ScriptedServer(steps) as server, sink_to(server, **settings) as sink:
        return list(sink.commit("", [document(number) for number in range(1, count + 1)])), server


def refused(steps: list[Step], **settings: float) -> SinkError:
    with pytest.raises(SinkError) as caught:
        sent(steps, 1, **settings)
    assert "s3cret" not in str(caught.value)
    assert "hidden" not in str(caught.value)
    return caught.value


def test_a_document_is_posted_with_its_id_its_type_and_the_secret() -> None:
    outcomes, server = sent([answer()])
    head, body = server.requests[0]
    assert outcomes == []
    assert body == b"<n>1</n>"
    assert head.startswith("POST /xds?key=hidden HTTP/1.1\r\n")
    for line in (f"Eventlog-Document: {1:020d}", "Authorization: Bearer s3cret", f"Host: localhost:{server.port}"):
        assert line in head.split("\r\n")
    assert "Content-Type: application/xml; charset=utf-8" in head


@pytest.mark.parametrize("word", ["error", "status", "output", "e", "level"])
def test_a_password_that_is_a_word_of_the_grammar_makes_no_answer_unreadable(word: str) -> None:
    reply = f'<nds><output><status level="error" event-id="1">{word} is no login for persons</status></output></nds>'
    with ScriptedServer([answer(reply.encode())]) as server:
        login = b64encode(f"idm:{word}".encode()).decode()
        sink = HttpSink(HttpSettings(url=server.url, authorization=f"Basic {login}"))
        (outcome,) = sink.commit("", [document(1)])
        sink.close()
    assert (outcome.status, outcome.reason) == (Status.ERROR, Reason.REFUSED)
    assert outcome.note == "*** is no login for persons"


def test_a_document_says_under_which_plan_and_from_which_publisher_it_comes() -> None:
    with ScriptedServer([answer(), answer()]) as server, sink_to(server) as sink:
        sink.commit("", [document(1)])
        sink.open(tenure(7, "log-1"))
        sink.commit("plan-1", [document(2)])
    plain, told = [head.split("\r\n") for head, _ in server.requests]
    assert [line for line in plain if line.startswith("Eventlog-")] == [f"Eventlog-Document: {1:020d}"]
    assert {"Eventlog-Plan: plan-1", "Eventlog-Log: log-1", "Eventlog-Epoch: 7"} < set(told)


@pytest.mark.parametrize(
    "header, who, error",
    [
        ("Eventlog-Epoch: 8", tenure(7), OccupiedError),
        ("Eventlog-Epoch: 7", tenure(7), SinkError),
        ("Eventlog-Epoch: soon", tenure(7), SinkError),
        (f"Eventlog-Epoch: {'9' * 5000}", tenure(7), SinkError),
        ("Server: x", tenure(7), SinkError),
        ("Eventlog-Epoch: 8", None, SinkError),
    ],
)
def test_a_conflict_with_a_later_publisher_is_told_from_other_conflicts(
    header: str, who: Tenure | None, error: type[Exception]
) -> None:
    steps = [answer(b"", "409 Conflict", header)]
    with ScriptedServer(steps) as server, sink_to(server) as sink, pytest.raises(error) as caught:
        opened(sink, who).commit("a", [document(1)])
    assert not isinstance(caught.value, SinkError) or not caught.value.may_pass


def test_a_kept_connection_that_was_given_up_is_replaced() -> None:
    outcomes, server = sent([answer(), hang_up, answer()], 2)
    assert outcomes == []
    assert [body for _, body in server.requests] == [b"<n>1</n>", b"<n>2</n>", b"<n>2</n>"]
    assert server.connections == 2


@pytest.mark.parametrize("status", ["100 Continue", "102 Processing", "103 Early Hints"])
def test_what_comes_before_the_answer_is_none(status: str) -> None:
    early = f"HTTP/1.1 {status}\r\nLink: </x>\r\n\r\n".encode()
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(ERROR), ERROR)
    [outcome], _ = sent([raw(early * 2 + whole)])
    assert (outcome.status, outcome.note) == (Status.ERROR, "no")
    assert refused([raw(early)]).may_pass
    [cut], _ = sent([raw(early + b"HTTP/1.1 200 O")])
    assert cut.reason is Reason.RETRY


@pytest.mark.parametrize("reply,letter", [(RETRY, Status.NEW), (FATAL, Status.FATAL)])
def test_nothing_overtakes_a_document_that_was_not_taken(reply: bytes, letter: Status) -> None:
    outcomes, server = sent([answer(reply)], 3)
    assert [(outcome.position[0], outcome.status) for outcome in outcomes] == [
        (1, letter),
        (2, Status.NEW),
        (3, Status.NEW),
    ]
    assert [outcome.reason for outcome in outcomes[1:]] == [Reason.HELD, Reason.HELD]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "step",
    [
        answer(b"OK"),
        answer(b"\x00\xff garbage"),
        answer(ERROR[:40]),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + ERROR),
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<nds>\r\n"),
        answer(b" " * 2000),
        raw(b"HTTP/1.1 200 OK\r\nContent-Le"),
        raw(b"HTTP/1.1 200 O"),
        raw(b"HTTP/1.1 204 No Content\r\nServer: x\r\n"),
    ],
    ids=[
        "no XML",
        "garbage",
        "half a document",
        "half a body",
        "half a chunked body",
        "too large",
        "half a head",
        "half a line",
        "no end of the head",
    ],
)
def test_an_answer_that_cannot_be_read_means_again_later(step: Step) -> None:
    outcomes, server = sent([step], 2, reply_limit=1000)
    assert [(outcome.status, outcome.reason) for outcome in outcomes] == [
        (Status.NEW, Reason.RETRY),
        (Status.NEW, Reason.HELD),
    ]
    assert outcomes[0].note is not None
    assert "gave an answer that cannot be read" in outcomes[0].note
    assert len(server.requests) == 1


def test_after_an_answer_that_cannot_be_read_the_same_document_goes_out_again() -> None:
    with ScriptedServer([raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<nd"), answer()]) as server:
        with sink_to(server) as sink:
            assert sink.commit("", [document(1)])[0].reason is Reason.RETRY
            assert sink.last() == ""
            assert list(sink.commit("", [document(1)])) == []
            assert sink.last() == document(1).id
        assert server.requests[0] == server.requests[1]


def test_unknown_event_ids_are_said_and_the_known_ones_count(caplog: pytest.LogCaptureFixture) -> None:
    reply = ERROR.replace(b"</output>", b'<status level="fatal" event-id="99"/></output>')
    with caplog.at_level(logging.WARNING):
        outcomes, _ = sent([answer(reply)])
    assert [(outcome.position[0], outcome.status) for outcome in outcomes] == [(1, Status.ERROR)]
    assert f"answered for events that document {1:020d} does not have: 99." in caplog.text


@pytest.mark.parametrize("status", ["500 Oops", "502 Bad Gateway", "503 Later", "429 Too Many", "408 Slow", "599 Own"])
def test_what_may_pass_is_said_to_pass(status: str) -> None:
    error = refused([answer(b"come back  later.\n", status)])
    assert error.may_pass
    assert f" answered {status[:3]}" in str(error)
    assert "come back later." in str(error)


@pytest.mark.parametrize(
    "status,way_out",
    [
        ("400 Bad", "answered 400 Bad Request: come back later."),
        ("401 Who", "Check the output's `authorization`."),
        ("404 Gone", "Check the output's `url`."),
        ("405 No", "takes no POST"),
        ("413 Big", "publisher.batch_size"),
        ("499 Own", "answered 499: come back later."),
    ],
)
def test_what_does_not_pass_by_waiting_says_the_way_out(status: str, way_out: str) -> None:
    error = refused([answer(b"come back later", status)])
    assert not error.may_pass
    assert way_out in str(error)


def test_a_redirect_is_not_followed_and_says_where_to() -> None:
    error = refused([answer(b"", "301 Moved", "Location: https://new.example/xds")])
    assert not error.may_pass
    assert "It points to https://new.example/xds" in str(error)


@pytest.mark.parametrize(
    "step", [hang_up, raw(b"HTTP/1"), raw(b"SSH-2.0-OpenSSH\r\n")], ids=["nothing", "half a word", "no HTTP"]
)
def test_an_answer_that_never_begins_is_an_error_that_may_pass(step: Step) -> None:
    assert refused([step]).may_pass


@pytest.mark.parametrize(
    "step,settings",
    [
        (silence, {"read_timeout": 0.3}),
        (silence, {"total_timeout": 0.3}),
        (drop_by_drop(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 2000, 0.05), {"total_timeout": 0.4, "read_timeout": 5}),
        (
            drop_by_drop(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b" " * 2000, 0.02),
            {"total_timeout": 1.3, "read_timeout": 5},
        ),
        (drop_by_drop(b"HTTP/1.0 200 OK\r\n\r\n" + b" " * 2000, 0.02), {"total_timeout": 0.8, "read_timeout": 5}),
    ],
    ids=["read", "total", "drops in the head", "drops in the body", "drops without an end"],
)
def test_a_receiver_that_hangs_is_left(step: Step, settings: dict[str, float]) -> None:
    start = time.monotonic()
    error = refused([step], **settings)
    assert time.monotonic() - start < 30, "two thousand drops take forty seconds"
    assert error.may_pass
    assert "did not answer in time" in str(error)


def test_a_document_that_nobody_reads_is_left_too() -> None:
    with ScriptedServer([answer()]) as unread:
        listener = socket.create_server(("127.0.0.1", 0), backlog=1)  # it accepts nothing, so it reads nothing
        settings = HttpSettings(url=f"http://127.0.0.1:{listener.getsockname()[1]}/", total_timeout=0.5)
        sink = HttpSink(settings)
        with pytest.raises(SinkError, match="did not answer in time"):
            sink.commit("", [Document(id="1", body=b"x" * 50_000_000, covers={})])
        listener.close()
        assert unread.requests == []


def test_a_refused_connection_may_pass() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(SinkError, match=r"127\.0\.0\.1:\d+/ cannot be reached: Connection refused") as caught:
        HttpSink(HttpSettings(url=f"http://127.0.0.1:{port}/")).commit("", [document(1)])
    assert caught.value.may_pass


def test_a_failure_in_the_middle_does_not_undo_what_was_answered() -> None:
    outcomes, server = sent([answer(ERROR), answer(b"", "503 Later"), answer()], 3)
    assert [(outcome.position[0], outcome.status, outcome.reason) for outcome in outcomes] == [
        (1, Status.ERROR, Reason.REFUSED),
        (2, Status.NEW, Reason.RETRY),
        (3, Status.NEW, Reason.HELD),
    ]
    assert len(server.requests) == 2


def test_an_interruption_leaves_no_connection_in_the_middle_of_an_exchange() -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with ScriptedServer([answer()]) as server, sink_to(server) as sink:
        sink.commit("", [document(1)])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("eventlog.sinks.http.connection.Plain.getresponse", interrupted)
            with pytest.raises(KeyboardInterrupt):
                sink.commit("", [document(2)])
        assert list(sink.commit("", [document(3)])) == []
    assert server.connections == 2


def test_a_receiver_that_repeats_our_authorization_is_not_quoted() -> None:
    said = b"you said Authorization: Bearer s3cret, and s3cret is wrong \x1b[2J\x9b"
    error = refused([answer(said, "500 Oops")])
    assert "***" in str(error)
    assert str(error).isprintable()
    reply = ERROR.replace(b">no<", b">s3cret is wrong<")
    [outcome], _ = sent([answer(reply)])
    assert outcome.note == "*** is wrong"
