"""The sink `webhook`: signed requests of JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from eventlog.core.errors import ConfigError
from eventlog.core.outputs import Places
from eventlog.core.plugins import EVERY_DOCUMENT, Finding, SinkOrder, SinkPlugin
from eventlog.core.seams import Sink
from eventlog.core.secrets import bare_address
from eventlog.sinks.events.plugin import batch_size
from eventlog.sinks.events.settings import CloudEventsSettings, DebeziumSettings, JsonLinesSettings
from eventlog.sinks.http.address import reach
from eventlog.sinks.webhook.settings import WebhookSettings

EVENT_FORMATS: Final = ("jsonl", "debezium", "cloudevents")
_TYPES: Final = {
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".xml": "application/xml; charset=utf-8",
}


class WebhookOutput(
    WebhookSettings,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="sink",
    tag="webhook",
):
    """Documents POSTed to an address, each signed.

    The status of the answer says what becomes of the rows.
    """

    format: str = "jsonl"
    jsonl: JsonLinesSettings = JsonLinesSettings()
    debezium: DebeziumSettings = DebeziumSettings()
    cloudevents: CloudEventsSettings = CloudEventsSettings()

    def __post_init__(self) -> None:
        """Refuses an address with a table where documents may have several."""
        WebhookSettings.__post_init__(self)
        if self.address is not None and self.format not in EVENT_FORMATS:
            formats = ", ".join(EVENT_FORMATS)
            problem = f"output.url has a field, and only {formats} make documents of one table each."
            raise ConfigError(problem, hint="Take the field out, and route changes by a step.")

    @property
    def places(self) -> Places:
        """Name the output's places: addresses below its `url`."""
        return "address", "an address", ()


def _sink(order: SinkOrder) -> Sink:
    from eventlog.sinks.webhook.sink import WebhookSink

    output: WebhookOutput = order.output
    is_binary = output.format == "cloudevents" and output.cloudevents.mode == "binary"
    return WebhookSink(output, content_type(output, order.format.suffix), is_binary=is_binary)


def content_type(output: WebhookOutput, suffix: str) -> str:
    """Return the content type of documents."""
    if output.format != "cloudevents":
        return _TYPES.get(suffix, "application/octet-stream")
    from eventlog.sinks.events.cloudevents import BATCH, STRUCTURED

    if batch_size(output.cloudevents, answers=True) == 1:
        return STRUCTURED
    return BATCH


def _findings(output: WebhookOutput) -> Iterable[Finding]:
    yield reach(replace(output, url=output.base))
    if output.oauth_url:
        yield reach(output.token_endpoint())


def _place(output: WebhookOutput) -> str:
    return f"webhook {bare_address(output.url)}"


WEBHOOK: Final = SinkPlugin(
    settings=WebhookOutput,
    build=_sink,
    place=_place,
    formats=(*EVENT_FORMATS, EVERY_DOCUMENT),
    check=_findings,
    answers=True,
)
