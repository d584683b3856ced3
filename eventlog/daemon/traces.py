"""Traces by OpenTelemetry: what the words of core.tracing mean there, and where spans go.

Imported only where `publisher.traces` is set. OpenTelemetry's own variables say where spans go,
such as OTEL_EXPORTER_OTLP_ENDPOINT, what the service is called, and how many traces are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Final

from msgspec import Struct
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from eventlog.core import tracing
from eventlog.version import VERSION

SERVICE: Final = "eventlog"
"""What the service is called unless OTEL_SERVICE_NAME says so."""

FLUSH_SECONDS: Final = 5
"""How long the end of a publisher waits for spans to be sent."""


class OtelSpan(Struct, frozen=True, eq=False):
    """A span of OpenTelemetry."""

    tracer: Tracer
    span: Span

    def child(self, name: str, began: int, attributes: Mapping[str, str | int]) -> OtelSpan:
        """Begin a span in it; a writing one is marked as a call of another system."""
        kind = SpanKind.PRODUCER if name == "write" else SpanKind.INTERNAL
        context = trace.set_span_in_context(self.span)
        made = self.tracer.start_span(name, context, kind=kind, start_time=began, attributes=dict(attributes))
        return OtelSpan(self.tracer, made)

    def headers(self) -> Mapping[str, str]:
        """Return the header `traceparent` of W3C's Trace Context."""
        carried: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carried, trace.set_span_in_context(self.span))
        return carried

    def end(self, ended: int, failure: BaseException | None, attributes: Mapping[str, str | int]) -> None:
        """End it; keep a failure's kind but not its text, perhaps with values."""
        self.span.set_attributes(dict(attributes))
        if failure is not None:
            self.span.set_attribute("error.type", type(failure).__name__)
            self.span.set_status(Status(StatusCode.ERROR))
        self.span.end(ended)


@contextmanager
def switch_on_traces(log: str, processor: SpanProcessor | None = None) -> Iterator[None]:
    """Switches traces on while the block runs; without a processor spans are sent by OTLP over HTTP."""
    resource = Resource.create({"service.version": VERSION, "eventlog.log": log})
    # OpenTelemetry puts this name where nobody has set one.
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": SERVICE}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(_sending() if processor is None else processor)
    tracer = provider.get_tracer("eventlog", VERSION)
    # No parent, even where the program around us has a span open.
    tracing.switch(OtelSpan(tracer, trace.INVALID_SPAN).child)
    try:
        yield
    finally:
        tracing.switch(None)
        # It sends what is left, and OpenTelemetry bounds neither that nor a single request.
        sending = Thread(target=provider.shutdown, name="eventlog-traces", daemon=True)
        sending.start()
        sending.join(FLUSH_SECONDS)


def _sending() -> SpanProcessor:
    # A package of its own, which only those need that send spans.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return BatchSpanProcessor(OTLPSpanExporter())
