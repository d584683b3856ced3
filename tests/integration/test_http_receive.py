"""`eventlog receive`: what it prints, keeps and answers, and the whole way from a row to an answer and back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import Engine

from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.http.plugin import HttpOutput
from eventlog.sinks.http.receiver import ReceivedDocument, Receiver
from eventlog.xds.read import Level, read_statuses
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import site, url_of

DOCUMENT = b'<nds dtdversion="2.0"><input><add class-name="usr" event-id="1-2"/><status level="success"/></input></nds>'


@contextmanager
def receiving(receiver: Receiver) -> Iterator[None]:
    thread = Thread(target=receiver.serve, daemon=True)
    thread.start()
    yield
    receiver.stop()
    thread.join(30)


def connected(url: str) -> HTTPConnection:
    return HTTPConnection(url.removeprefix("http://").rstrip("/"), timeout=30)


def post(url: str, body: bytes, identity: str | None = "7", **headers: str) -> tuple[int, bytes]:
    if identity is not None:
        headers["Eventlog-Document"] = identity
    with closing(connected(url)) as connection:
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        return response.status, response.read()


@pytest.mark.parametrize("level", list(Level))
def test_every_event_is_answered_with_the_chosen_status(level: Level) -> None:
    came: list[ReceivedDocument] = []
    receiver = Receiver(came.append, answer=level)
    with receiving(receiver):
        status, reply = post(receiver.url, DOCUMENT)
    assert status == 200
    assert [(found.level, found.event_id) for found in read_statuses(reply)] == [(level, "1-2")]
    assert came == [ReceivedDocument(id="7", body=DOCUMENT, events=("1-2",))]


def test_a_document_that_was_taken_is_recognised_and_one_that_was_not_is_new() -> None:
    came: list[ReceivedDocument] = []
    taking, refusing = Receiver(came.append), Receiver(came.append, answer=Level.RETRY)
    for receiver in (taking, refusing):
        with receiving(receiver):
            answers = {post(receiver.url, DOCUMENT) for _ in range(2)}
            post(receiver.url, DOCUMENT, None)
        assert len(answers) == 1
    assert [delivery.repeated for delivery in came] == [False, True, False, False, False, False]


def test_a_publisher_that_was_replaced_is_refused_and_those_of_other_logs_are_not() -> None:
    came: list[ReceivedDocument] = []
    receiver = Receiver(came.append)
    sent = [("ours", "5", 200), ("ours", "4", 409), ("theirs", "4", 200), ("ours", "5", 200), ("ours", "x", 409)]
    sent += [("ours", "9" * 5000, 409), ("ours", "5", 200)]
    with receiving(receiver):
        for log, epoch, status in sent:
            assert post(receiver.url, DOCUMENT, **{"Eventlog-Log": log, "Eventlog-Epoch": epoch})[0] == status
        assert post(receiver.url, DOCUMENT)[0] == 200
    assert len(came) == 5


def test_with_a_folder_documents_are_kept_once_and_known_after_a_restart(tmp_path: Path) -> None:
    came: list[ReceivedDocument] = []
    for _ in range(2):
        receiver = Receiver(came.append, folder=tmp_path)
        with receiving(receiver):
            post(receiver.url, DOCUMENT)
    assert [delivery.repeated for delivery in came] == [False, True]
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("7.xml", DOCUMENT)]


@pytest.mark.parametrize("body", [b"", b"nonsense", b"<nds/>", b"<!DOCTYPE nds><nds><input/></nds>"])
def test_what_is_no_document_is_refused_with_a_sentence(body: bytes) -> None:
    came: list[ReceivedDocument] = []
    receiver = Receiver(came.append)
    with receiving(receiver):
        status, said = post(receiver.url, body)
        too_large, _ = post(receiver.url, b"x", **{"Content-Length": "999999999999"})
        without_end, _ = post(receiver.url, b"x", **{"Content-Length": "9" * 5000})
    assert (status, too_large, without_end, came) == (400, 413, 411, [])
    assert said.startswith(b"Line 1: ")


class SlowToEnd(Receiver):
    """Looks, when it thinks that a reply was sent, whether it is there."""

    there = Event()
    was_there = False

    def note_reply(self) -> None:
        self.was_there = self.there.wait(30)


def test_who_ends_after_a_reply_has_sent_it() -> None:
    receiver = SlowToEnd(lambda _: None, once=True)
    with receiving(receiver):
        assert post(receiver.url, DOCUMENT)[0] == 200
        receiver.there.set()
    assert receiver.was_there


def test_the_command_prints_a_document_and_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "eventlog", "receive", "--port", "0", "--once", "--answer", "warning"]
    with subprocess.Popen(
        [*command, "--out", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[2].rstrip(";")
        assert post(url, DOCUMENT)[0] == 200
        printed, said = process.communicate(timeout=300)
    assert process.returncode == 0
    assert printed == DOCUMENT.decode() + "\n"
    assert said == "Document 7 with 1 event.\n"
    assert (tmp_path / "7.xml").read_bytes() == DOCUMENT


@pytest.fixture
def log(sqlite: Engine) -> LogTable:
    return site(sqlite)


def publisher(log: LogTable, url: str, batch_size: int = 2) -> Publisher:
    publishing = PublisherConfig(batch_size=batch_size)
    source = SourceConfig(url=url_of(log.engine))
    return Publisher(Config(source=source, publisher=publishing, output=(HttpOutput(url=url),)))


@pytest.mark.parametrize(
    "level,statuses,reasons",
    [
        (Level.SUCCESS, "SSS", set()),
        (Level.WARNING, "WWW", {"published"}),
        (Level.ERROR, "EEE", {"refused"}),
        (Level.RETRY, "NNN", {"retry", "behind"}),
        (Level.FATAL, "FFN", {"refused"}),
    ],
)
def test_the_answer_decides_about_the_rows(log: LogTable, level: Level, statuses: str, reasons: set[str]) -> None:
    for number in (1, 2, 3):
        log.write(number, f"idu={number}")
    came: list[ReceivedDocument] = []
    receiver = Receiver(came.append, answer=level)
    with receiving(receiver), publisher(log, receiver.url) as publishing:
        report = publishing.run_once()
    assert "".join(log.statuses().values()) == statuses
    parked = {str(reason) for (reason,) in log.ask("SELECT reason FROM event_log_parked")}
    assert {outcome[1] for outcome in log.outcomes().values()} | parked == reasons
    assert report.fatal is (level is Level.FATAL)
    assert [delivery.events for delivery in came] == ([("1", "2")] if "N" in statuses else [("1", "2"), ("3",)])


def test_after_a_lost_answer_the_same_documents_come_again_and_are_recognised(
    log: LogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        log.write(number, f"idu={number}")
    came: list[ReceivedDocument] = []
    receiver = Receiver(came.append)
    with receiving(receiver), publisher(log, receiver.url, 1) as publishing:
        with monkeypatch.context() as crash:
            crash.setattr(
                "eventlog.publisher.writing.record_ends", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt())
            )
            with pytest.raises(KeyboardInterrupt):
                publishing.run_once()
        log.write(3, "idu=1", column_name="lname")
        publishing.run_once()
        publishing.run_once()
    assert "".join(log.statuses().values()) == "SSS"
    assert [(delivery.events, delivery.repeated) for delivery in came] == [
        (("1",), False),
        (("2",), False),
        (("1",), True),
        (("2",), True),
        (("3",), False),
    ]


@pytest.mark.parametrize(
    "identity", ["../../outside", "a%0D%0AX-Evil: 1", "x" * 5000, "%00", ".", "..", "\u202e".encode().decode("latin-1")]
)
def test_an_id_of_others_is_neither_a_path_nor_a_header(tmp_path: Path, identity: str) -> None:
    receiver = Receiver(lambda _: None, folder=tmp_path / "kept")
    with receiving(receiver), closing(connected(receiver.url)) as connection:
        connection.request("POST", "/", b'<nds dtdversion="2.0"><input/></nds>', {"Eventlog-Document": identity})
        answered = connection.getresponse()
        assert answered.status in (200, 500)
        assert b"fault" not in answered.read()
        assert answered.headers["x-evil"] is None
    assert {entry.parent for entry in tmp_path.rglob("*") if entry.is_file()} <= {tmp_path / "kept"}
