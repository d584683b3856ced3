"""What every sink must do; a new sink joins by an entry in SINKS.

`kept` gives the documents that a consumer sees, in their order; a sink whose memory ends with the process has none
of the tests that restart it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread

import pytest
from msgspec import Struct

from eventlog.model import Document
from eventlog.receiver import Receiver
from eventlog.seams import Laned, Sink
from eventlog.sinks.address import HttpSettings
from eventlog.sinks.files import FileSink
from eventlog.sinks.http import HttpSink
from eventlog.sinks.kafka import KafkaSink
from eventlog.sinks.stdout import StdoutSink
from tests.servers_kafka import consumed, settings, stand_in


class Place(Struct, frozen=True, kw_only=True):
    """Where a sink under test puts documents: how to open it, again too, and what a consumer finds there."""

    open: Callable[[], Sink]
    kept: Callable[[], list[bytes]]
    leave: Callable[[], object] = bool


def files(folder: Path) -> Place:
    return Place(
        open=lambda: FileSink(folder, ".xml"),
        kept=lambda: [path.read_bytes() for path in sorted(folder.glob("*.xml"))],
    )


def stdout(_folder: Path) -> Place:
    stream = io.BytesIO()
    return Place(open=lambda: StdoutSink(stream), kept=lambda: stream.getvalue().splitlines())


def http(_folder: Path, connections: int = 1) -> Place:
    """A receiver that notes what comes, documents or not; what it was sent twice it holds twice."""
    bodies: list[bytes] = []

    class Noting(Receiver):
        def take(self, identity: str | None, body: bytes) -> bytes:
            bodies.append(body)
            return b""

    receiver = Noting(print)
    own = HttpSettings(url=receiver.url, connections=connections)
    Thread(target=receiver.serve, daemon=True).start()
    opened = ExitStack()
    opened.callback(receiver.stop)
    return Place(
        open=lambda: opened.enter_context(closing(HttpSink(own))),
        kept=lambda: list(bodies),
        leave=opened.close,
    )


def http_over_four(folder: Path) -> Place:
    return http(folder, connections=4)


def kafka(_folder: Path) -> Place:
    """A topic of librdkafka's own cluster; tests/integration/test_kafka_broker.py has a real one."""
    cluster = ExitStack()
    servers = cluster.enter_context(stand_in())
    own = settings(servers, topic="documents")
    opened = ExitStack()
    cluster.callback(opened.close)
    return Place(
        open=lambda: opened.enter_context(closing(KafkaSink(own))),
        kept=lambda: [one.value or b"" for one in consumed(servers, own.topic)],
        leave=cluster.close,
    )


SINKS: dict[str, Callable[[Path], Place]] = {
    "files": files,
    "http": http,
    "http over four": http_over_four,
    "kafka": kafka,
    "stdout": stdout,
}
REMEMBERS = ["files", "kafka"]
"""Sinks that recognise a repeated document and know their last one after a restart; a stream cannot."""


@pytest.fixture(params=sorted(SINKS))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    found = SINKS[request.param](tmp_path)
    yield found
    found.leave()


@pytest.fixture(params=REMEMBERS)
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    found = SINKS[request.param](tmp_path)
    yield found
    found.leave()


def document(number: int, body: bytes | None = None) -> Document:
    return Document(id=f"{number:020d}", body=body if body is not None else b"<n>%d</n>" % number, covers={})


def bodies(*numbers: int) -> list[bytes]:
    return [b"<n>%d</n>" % number for number in numbers]


def test_an_empty_sink_has_no_last_document(place: Place) -> None:
    sink = place.open()
    assert sink.last() == ""
    assert list(sink.write([])) == []
    assert (sink.last(), place.kept()) == ("", [])


def test_documents_are_kept_in_order_and_the_last_is_known(place: Place) -> None:
    sink = place.open()
    assert list(sink.write([document(1), document(2)])) == []
    sink.write([document(10)])
    assert place.kept() == bodies(1, 2, 10)
    assert sink.last() == document(10).id
    sink.close()


def test_more_documents_than_one_group_are_all_there(place: Place) -> None:
    sink = place.open()
    sink.write([document(number) for number in range(1, 1201)])
    assert place.kept() == bodies(*range(1, 1201))
    assert sink.last() == document(1200).id


def test_taking_a_document_twice_is_taking_it_once(lasting: Place) -> None:
    sink = lasting.open()
    sink.write([document(1), document(2)])
    sink.write([document(2), document(3), document(3)])
    lasting.open().write([document(1)])
    assert lasting.kept() == bodies(1, 2, 3)


def test_the_last_document_is_known_after_a_restart(lasting: Place) -> None:
    lasting.open().write([document(3), document(11)])
    again = lasting.open()
    assert again.last() == document(11).id
    again.write([document(3)])
    assert again.last() == document(11).id


def test_each_way_to_a_receiver_is_a_sink_by_itself(tmp_path: Path) -> None:
    place = http_over_four(tmp_path)
    sink = place.open()
    assert isinstance(sink, Laned)
    assert [lane.last() for lane in sink.lanes] == [""] * 4
    for number, lane in enumerate(sink.lanes, 1):
        assert list(lane.write([document(number)])) == []
        assert lane.last() == document(number).id
    assert place.kept() == bodies(1, 2, 3, 4)
    assert sink.last() == document(4).id
    place.leave()


@pytest.mark.parametrize("survivors", [0, 1, 2])
def test_after_a_crash_a_beginning_of_the_batch_is_there_and_nothing_by_halves(
    tmp_path: Path, survivors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The power goes between writing the temporary files and giving them their names."""
    lasting = files(tmp_path)
    sink = lasting.open()
    sink.write([document(1)])
    left = survivors
    replace = Path.replace

    def crash(self: Path, target: Path) -> Path:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        return replace(self, target)

    with monkeypatch.context() as power:
        power.setattr(Path, "replace", crash)
        power.setattr("eventlog.durable._discard", lambda _paths: None)  # nobody cleans up after a power cut
        with pytest.raises(KeyboardInterrupt):
            sink.write([document(number) for number in (2, 3, 4)])
    again = lasting.open()
    assert lasting.kept() == bodies(1, *range(2, 2 + survivors))
    assert again.last() == document(1 + survivors).id
    again.write([document(number) for number in (2, 3, 4)])
    assert lasting.kept() == bodies(1, 2, 3, 4)
