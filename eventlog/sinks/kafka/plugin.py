"""The sink `kafka`: messages into the topics of a Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from eventlog.core.outputs import Places
from eventlog.core.plugins import Finding, Need, SinkOrder, SinkPlugin
from eventlog.core.seams import Sink
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.events.settings import CloudEventsSettings, DebeziumSettings, JsonLinesSettings
from eventlog.sinks.kafka.settings import KafkaSettings


class KafkaOutput(KafkaSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="kafka"):
    """Messages or events into the topics of a Kafka, or XDS documents into one."""

    format: Literal["messages", "jsonl", "debezium", "cloudevents", "xds"] = "messages"
    messages: MessageSettings = MessageSettings()
    jsonl: JsonLinesSettings = JsonLinesSettings()
    debezium: DebeziumSettings = DebeziumSettings()
    cloudevents: CloudEventsSettings = CloudEventsSettings()

    @property
    def needs_registry(self) -> bool:
        """Return True if its schemas are in a registry."""
        if self.format == "messages":
            return self.messages.mode == "registry"
        return self.format == "debezium" and self.debezium.encoding == "avro"

    @property
    def places(self) -> Places:
        """Name its topics, except those for marks, metadata and transactions."""
        others = (self.marks_topic, self.messages.metadata_topic, self.debezium.transaction_topic)
        return "topic", "Kafka", tuple(filter(None, others))


def _sink(order: SinkOrder) -> Sink:
    from eventlog.sinks.kafka.sink import KafkaSink

    return KafkaSink(order.output)


def _needs(_: KafkaOutput) -> Iterator[Need]:
    yield Need('An output with sink = "kafka"', "confluent_kafka")


def _findings(output: KafkaOutput) -> Iterator[Finding]:
    from eventlog.sinks.kafka.registry import registry_of
    from eventlog.sinks.kafka.topics import missing_topics

    if output.format == "xds":
        wanted = [output.topic]
    else:
        wanted = [getattr(output, output.format).topic]
    if output.format == "messages" and output.messages.mode == "metadata":
        wanted.append(output.messages.metadata_topic)
    if output.format == "debezium":
        wanted.append(output.debezium.transaction_topic)
    # A topic that is made of a row's facts is not known before there is a row.
    missing = missing_topics(output, [topic for topic in wanted if topic and "{" not in topic])
    if output.needs_registry:
        registry_of(output).reach()
    if missing and not output.create_topics:
        problem = f"Kafka at {output.servers} has no topic {missing[0]} yet."
        mend = "Create it, or set output.create_topics = true; a broker may also make it itself."
        yield Finding(message=problem, mend=mend)
    else:
        yield Finding(message=f"Kafka at {output.servers} takes our login")


KAFKA: Final = SinkPlugin(
    settings=KafkaOutput,
    build=_sink,
    place=lambda output: f"kafka {output.servers} {output.transactional_id}",
    formats=("messages", "jsonl", "debezium", "cloudevents", "xds"),
    check=_findings,
    needs=_needs,
    takes_values=True,
)
