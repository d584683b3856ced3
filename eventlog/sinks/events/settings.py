"""How events look: the keys of [output.jsonl], [output.debezium] and [output.cloudevents]."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from msgspec import Struct

from eventlog.core.errors import ConfigError
from eventlog.core.places import PlaceTemplate, topic_name
from eventlog.core.seams import OnValue

MOST_EVENTS: Final = 10_000
BATCH_EVENTS: Final = 500
"""Events in one document where nobody says how many, and no receiver answers each document."""

Decimals = Literal["precise", "string", "double"]
TimePrecision = Literal["adaptive", "adaptive_time_microseconds", "microseconds", "nanoseconds", "connect"]
Encoding = Literal["json", "avro"]


class EventSettings(Struct, frozen=True, kw_only=True):
    """What all formats of events have.

    `batch_size` is how many a document holds: 0 is one where a receiver answers each document, else
    500. `topic` is a template of the topics of Kafka. `on_value` says what becomes of a value that
    cannot be written.
    """

    batch_size: int = 0
    topic: str = "{schema}.{table}"
    on_value: OnValue = "omit"

    key: ClassVar[str] = ""
    topic_fields: ClassVar[tuple[str, ...]] = ("schema", "table")

    def __post_init__(self) -> None:
        """Refuses what no event could be written with."""
        if not 0 <= self.batch_size <= MOST_EVENTS:
            limits = f"it must be between 0 and {MOST_EVENTS}"
            raise ConfigError(f"output.{self.key}.batch_size is {self.batch_size}; {limits}.")
        if not self.topic:
            problem = f"output.{self.key}.topic is empty"
            raise ConfigError(f"{problem}; write a template such as {{schema}}.{{table}}.")
        self.topic_template()

    def topic_template(self) -> PlaceTemplate:
        """Return the template of topics."""
        return PlaceTemplate(self.topic, f"output.{self.key}.topic", self.topic_fields)


class JsonLinesSettings(EventSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of JSON for each change."""

    key: ClassVar[str] = "jsonl"


class DebeziumSettings(EventSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The envelope that Debezium writes.

    `server` is its topic.prefix and `database` the name in `source.db`. With `schemas` each key and
    value in JSON carries its schema of Kafka Connect; those of Avro are in a registry. The modes are
    Debezium's of these names, with _ for a dot, and so are their defaults. With a
    `transaction_topic` events are counted in their transactions, and messages there say where these
    begin and end.
    """

    encoding: Encoding = "json"
    topic: str = "{server}.{schema}.{table}"
    server: str = "eventlog"
    database: str = ""
    schemas: bool = False
    tombstones: bool = True
    decimal_handling_mode: Decimals = "precise"
    time_precision_mode: TimePrecision | None = None
    binary_handling_mode: Literal["bytes", "base64", "base64-url-safe", "hex"] = "bytes"
    interval_handling_mode: Literal["numeric", "string"] = "numeric"
    bigint_unsigned_handling_mode: Literal["long", "precise"] = "long"
    transaction_topic: str = ""

    key: ClassVar[str] = "debezium"
    topic_fields: ClassVar[tuple[str, ...]] = ("schema", "table", "server")

    def __post_init__(self) -> None:
        """Refuses schemas in two places, and a topic that cannot be."""
        EventSettings.__post_init__(self)
        if self.schemas and self.encoding == "avro":
            problem = "output.debezium.schemas is for JSON: the schemas of Avro are in a registry."
            raise ConfigError(problem, hint='Take it out, or say encoding = "json".')
        topic = self.transaction_topic
        if topic and (topic_name(topic) is None or topic == self.topic):
            problem = f"output.debezium.transaction_topic is {topic!r}"
            raise ConfigError(f"{problem}; name a topic of its own, with a-z A-Z 0-9 . _ - only.")


class CloudEventsSettings(EventSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """CloudEvents 1.0. `source` and `type` are the attributes of that name; `type` is a template.
    With `mode` = binary the attributes are headers, at Kafka and HTTP.
    """

    source: str = "/eventlog"
    type: str = "eventlog.{table}.{op}"
    mode: Literal["structured", "binary"] = "structured"

    key: ClassVar[str] = "cloudevents"

    def __post_init__(self) -> None:
        """Refuses attributes that would be empty, which the specification forbids."""
        EventSettings.__post_init__(self)
        for name in ("source", "type"):
            text = getattr(self, name)
            if not text or not text.isprintable() or " " in text:
                raise ConfigError(f"output.cloudevents.{name} must hold something, and no blanks.")
        self.type_template()

    def type_template(self) -> PlaceTemplate:
        """Return the template of the attribute `type`."""
        return PlaceTemplate(self.type, "output.cloudevents.type", ("schema", "table", "op"))
