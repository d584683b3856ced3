"""Traces: one of each batch, from the time of its oldest row to the receiver's answer, and never a value of a row in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from sqlalchemy import Engine

from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core import tracing
from eventlog.core.errors import ConfigError, SinkError
from eventlog.daemon.command import _trace_batches
from eventlog.daemon.publisher import Publisher
from eventlog.daemon.traces import switch_on_traces
from eventlog.qlik.messages.document import Message
from eventlog.sinks.http.plugin import HttpOutput
from eventlog.sinks.kafka.settings import KafkaSettings
from eventlog.sinks.kafka.sink import KafkaSink
from eventlog.sinks.outputs import FilesOutput
from tests.integration.publishing import config_of, site

SECRET = "value-of-a-row"
REPLY = b"<nds><output><status level='success'/></output></nds>"


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    made = InMemorySpanExporter()
    with switch_on_traces("event_log", SimpleSpanProcessor(made)):
        yield made


@contextmanager
def receiver() -> Iterator[tuple[str, list[str]]]:
    """Somebody who takes documents, and the `traceparent` of each request."""
    parents: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            parents.append(self.headers.get("traceparent", ""))
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(REPLY)))
            self.end_headers()
            self.wfile.write(REPLY)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Nobody reads it."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/xds", parents
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def prepared(engine: Engine) -> None:
    log = site(engine)
    log.run("INSERT INTO usr (idu, fname) VALUES (1, :secret)", {"secret": SECRET})
    for number, second in ((1, "20"), (2, "19")):
        time = f"2026-01-02 03:04:{second}"
        log.write(number, event_type=2, old_value=SECRET, new_value=SECRET, perpetrator=SECRET, event_time=time)


def two_outputs(engine: Engine, folder: Path, url: str, connections: int = 1) -> Config:
    outputs = (FilesOutput(path=str(folder), name="near"), HttpOutput(url=url, name="far", connections=connections))
    return replace(config_of(engine, folder), output=outputs)


def told(spans: Sequence[ReadableSpan], name: str, output: str | None = None) -> ReadableSpan:
    [found] = [one for one in spans if one.name == name and (one.attributes or {}).get("eventlog.output") == output]
    return found


@pytest.mark.parametrize("connections", [1, 2])
def test_a_batch_is_one_trace_from_the_row_to_the_answer(
    sqlite: Engine, tmp_path: Path, exporter: InMemorySpanExporter, connections: int
) -> None:
    prepared(sqlite)
    with receiver() as (url, parents), Publisher(two_outputs(sqlite, tmp_path, url, connections)) as publisher:
        report = publisher.run_once()
    spans = exporter.get_finished_spans()
    batch = told(spans, "batch")
    assert batch.start_time == int(datetime(2026, 1, 2, 3, 4, 19, tzinfo=UTC).timestamp() * 1e9)
    assert batch.attributes == {
        "eventlog.rows": 2,
        "eventlog.changes": report.changes,
        "eventlog.documents": report.documents,
    }
    names = [
        (one.name, str((one.attributes or {}).get("eventlog.output", ""))) for one in spans if one.name != "encode"
    ]
    finished = [(name, output) for output in ("near", "far") for name in ("write", "settle")]
    assert names == [("read", ""), ("decide", ""), *finished, ("batch", "")]
    assert {(one.attributes or {})["eventlog.output"] for one in spans if one.name == "encode"} == {"near", "far"}
    assert {one.context.trace_id for one in spans} == {batch.context.trace_id}
    assert {one.parent.span_id for one in spans if one.parent is not None} == {batch.context.span_id}
    sent = told(spans, "write", "far")
    [parent] = set(parents)
    assert parent.startswith(f"00-{sent.context.trace_id:032x}-{sent.context.span_id:016x}-0")
    assert SECRET not in "".join(one.to_json() for one in spans)
    assert batch.resource.attributes["service.name"] == "eventlog"


def test_a_receiver_that_is_away_is_an_error_of_its_span_without_the_words(
    sqlite: Engine, tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    prepared(sqlite)
    with Publisher(two_outputs(sqlite, tmp_path, "http://127.0.0.1:9/xds")) as publisher, pytest.raises(SinkError):
        publisher.run_once()
    spans = exporter.get_finished_spans()
    assert told(spans, "write", "near").status.status_code is StatusCode.UNSET
    for failed in (told(spans, "write", "far"), told(spans, "batch")):
        assert failed.status.status_code is StatusCode.ERROR
        assert (failed.attributes or {})["error.type"] == "SinkError"
    assert "127.0.0.1:9" not in "".join(one.to_json() for one in spans)


@pytest.mark.parametrize("silent", [False, True])
def test_the_end_sends_what_is_left_and_waits_no_longer_than_it_says(
    monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    answered = Event()
    monkeypatch.setattr("eventlog.daemon.traces.FLUSH_SECONDS", 0.5 if silent else 30)

    class Collector(InMemorySpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            if silent:
                answered.wait(20)
            return super().export(spans)

    made = Collector()
    began = monotonic()
    with switch_on_traces("event_log", BatchSpanProcessor(made)):
        span = tracing.batch_span(lambda: (), None, 1)
        assert span is not None
        span.end(2, None, {})
    assert monotonic() - began < 10
    answered.set()
    assert silent or [span.name for span in made.get_finished_spans()] == ["batch"]


def test_a_message_of_kafka_carries_the_trace_beside_its_own_headers_and_a_mark_does_not() -> None:
    produced: list[dict[str, object]] = []
    producer = SimpleNamespace(produce=lambda *_, **options: produced.append(options))
    with closing(KafkaSink(KafkaSettings(servers="nowhere:9092", transactional_id="t", marks_topic="marks"))) as sink:
        message = Message(topic="usr", key=b"k", value=b"v", headers=(("id", b"7"),))
        with switch_on_traces("event_log", SimpleSpanProcessor(InMemorySpanExporter())):
            span = tracing.batch_span(lambda: (), None, 1)
            with tracing.step(span, "write", output="bus"):
                parent = tracing.headers()["traceparent"]
                sink._produce(producer, message)  # type: ignore[arg-type]  # it is a producer as far as this asks
                sink._produce(producer, replace(message, topic="marks", headers=()))  # type: ignore[arg-type]  # as above
        sink._produce(producer, replace(message, headers=()))  # type: ignore[arg-type]  # as above
    assert produced == [{"headers": [("id", b"7"), ("traceparent", parent.encode())]}, {}, {}]


def test_the_setting_without_the_extra_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.core.packages.find_spec", lambda _module: None)
    config = Config(source=SourceConfig(url="sqlite://"), publisher=PublisherConfig(traces=True))
    with pytest.raises(ConfigError, match=r"publisher\.traces needs the package opentelemetry"), _trace_batches(config):
        raise AssertionError("it was let in")
