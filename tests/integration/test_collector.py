"""A collector that is not ours takes the spans of a batch by OTLP, and hands them on as they were: rotel, from Python's index."""

from __future__ import annotations

import gzip
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sqlalchemy import Engine

from eventlog.config.settings import PublisherConfig
from eventlog.daemon.command import _trace_batches
from eventlog.daemon.publisher import Publisher
from tests.integration.publishing import until
from tests.integration.test_traces import SECRET, prepared, receiver, two_outputs
from tests.support.servers import absent, found, free_port


@contextmanager
def behind_it() -> Iterator[tuple[str, list[bytes]]]:
    """Where the collector sends what it takes, and what has come."""
    came: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Nobody reads it."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", came
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def collecting(folder: Path, onward: str) -> Iterator[str]:
    """The address of a collector that takes spans by OTLP over HTTP, and sends them on to another one."""
    program = found("rotel", "rotel") / "rotel" / "rotel-agent"
    port = free_port()
    words = [str(program), "start", "--pid-file", str(folder / "pid"), "--batch-timeout", "50ms"]
    words += ["--otlp-http-endpoint", f"127.0.0.1:{port}", "--otlp-grpc-endpoint", f"127.0.0.1:{free_port()}"]
    words += ["--exporter", "otlp", "--otlp-exporter-endpoint", onward, "--otlp-exporter-protocol", "http"]
    program.chmod(0o755)  # its own package does so when it is called
    with (folder / "rotel.log").open("wb") as log:
        collector = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        until(lambda: collector.poll() is not None or _answers(port), "a collector that listens")
        if collector.poll() is not None:
            absent("rotel", f"it does not run here: {(folder / 'rotel.log').read_text()[-300:]}")
        yield f"http://127.0.0.1:{port}"
    finally:
        collector.terminate()
        collector.wait(timeout=30)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def spans_of(bodies: Sequence[bytes]) -> list[Any]:
    """The spans that came, with what is said of who sent them."""
    found = []
    for body in bodies:
        request = ExportTraceServiceRequest.FromString(body)
        for one in request.resource_spans:
            about = {word.key: word.value.string_value for word in one.resource.attributes}
            assert (about["service.name"], about["eventlog.log"]) == ("eventlog", "event_log")
            found += [span for scope in one.scope_spans for span in scope.spans]
    return found


def test_a_real_collector_takes_the_whole_batch_and_never_a_value(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(sqlite)
    with behind_it() as (onward, came), collecting(tmp_path, onward) as address, receiver() as (url, parents):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        config = two_outputs(sqlite, tmp_path / "out", url)
        config = replace(config, publisher=PublisherConfig(allow_loopback=True, traces=True))
        with _trace_batches(config), Publisher(config) as publisher:
            report = publisher.run_once()
        until(lambda: {"batch"} <= {span.name for span in spans_of(came)}, "the last span of the batch")
    spans = spans_of(came)
    [batch] = [span for span in spans if span.name == "batch"]
    said = {word.key: word.value.int_value for word in batch.attributes}
    assert said == {"eventlog.rows": 2, "eventlog.changes": report.changes, "eventlog.documents": report.documents}
    assert {span.name for span in spans} == {"batch", "read", "decide", "encode", "write", "settle"}
    assert {span.trace_id for span in spans} == {batch.trace_id}
    assert {span.parent_span_id for span in spans} == {b"", batch.span_id}
    sent = {span.span_id.hex() for span in spans if span.name == "write"}
    assert {parent.split("-")[2] for parent in parents} <= sent, "what the receiver was told leads to a span"
    assert SECRET.encode() not in b"".join(came)
