"""How messages look: encoding, mode, topics, keys, names. The keys of [output.messages]."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from eventlog.core.errors import ConfigError
from eventlog.core.places import PlaceTemplate, topic_name
from eventlog.core.seams import OnValue

Encoding = Literal["json", "avro"]
Mode = Literal["bare", "envelope", "metadata", "registry"]
MOST_MESSAGES: Final = 10_000
TOPIC_FIELDS: Final = ("schema", "table", "task", "server")


class MessageSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How messages look.

    `mode` says where a consumer finds the schema: nowhere (`bare`, and `envelope` with one around
    it), in a topic of metadata messages (`metadata`), or in a schema registry (`registry`, Avro
    only). `topic` is a template of {schema}, {table}, {task} and {server}. A message's key is that
    of its row, its table, or none; several key columns are joined by `key_separator`, and written
    as a table_key where that is empty. With `names` = map a column whose name Avro cannot hold gets
    one that it can. `batch_size` is how many messages are given to a sink as one document.
    `on_value` says what becomes of a value that a message cannot hold. With `table_names` a data
    message names its schema and table before the row. `metadata_key` is the key of metadata
    messages.
    """

    encoding: Encoding = "json"
    mode: Mode = "bare"
    topic: str = "{schema}.{table}"
    metadata_topic: str = "eventlog.metadata"
    key: Literal["row", "table", "none"] = "row"
    key_separator: str = ""
    avro_key: bool = False
    logical_types: bool = False
    names: Literal["refuse", "map"] = "refuse"
    server: str = "eventlog"
    task: str = "eventlog"
    external_schema_id: bool = False
    tombstones: bool = False
    subject: Literal["topic", "record", "topic-record"] = "topic"
    batch_size: int = 500
    on_value: OnValue = "omit"
    table_names: bool = False
    metadata_key: Literal["table", "schema-id", "none"] = "table"

    def __post_init__(self) -> None:
        """Refuses what no message could be written with."""
        if self.mode == "registry" and self.encoding != "avro":
            raise ConfigError(
                'output.messages.mode = "registry" needs encoding = "avro": registries describe Avro only.'
            )
        if self.avro_key and self.encoding != "avro":
            raise ConfigError('output.messages.avro_key needs encoding = "avro".')
        if not 1 <= self.batch_size <= MOST_MESSAGES:
            raise ConfigError(
                f"output.messages.batch_size is {self.batch_size}; it must be between 1 and {MOST_MESSAGES}."
            )
        if not self.topic:
            problem = "output.messages.topic is empty"
            hint = "name a topic, or write a template such as {schema}.{table}"
            raise ConfigError(f"{problem}; {hint}.")
        # So that a template that names another field is refused here, and not with the first row.
        self.topic_template()
        if topic_name(self.metadata_topic) is None:
            raise ConfigError(
                f"output.messages.metadata_topic is {self.metadata_topic!r}, which no topic can be"
                " called; write a-z A-Z 0-9 . _ - only."
            )
        if self.mode == "metadata" and self.topic == self.metadata_topic:
            raise ConfigError(
                "output.messages.metadata_topic is the topic of the data too; metadata need one of their own."
            )

    def topic_template(self) -> PlaceTemplate:
        """Return the template of topics."""
        return PlaceTemplate(self.topic, "output.messages.topic", TOPIC_FIELDS)
