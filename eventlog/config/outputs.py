"""What an output of the configuration can be: its sink's own keys, and how documents look that go there."""

from __future__ import annotations

from typing import Literal

from eventlog.core.secrets import SecretSettings
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.database.sink import DatabaseSettings
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.kafka.settings import KafkaSettings


class FilesOutput(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="files"):
    """Documents as files in a folder."""

    path: str
    format: Literal["xds", "change-tables", "messages"] = "xds"
    file_format: Literal["parquet", "csv"] = "parquet"
    task: str = "eventlog"
    on_refused: Literal["set-aside", "stop"] = "set-aside"
    change_tables: ChangeTableSettings = ChangeTableSettings()
    messages: MessageSettings = MessageSettings()


class StdoutOutput(
    SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="stdout"
):
    """Documents on standard output."""

    format: Literal["xds", "messages"] = "xds"
    messages: MessageSettings = MessageSettings()


class HttpOutput(HttpSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="http"):
    """Documents POSTed to an address, whose answers say what becomes of the rows."""

    format: Literal["xds"] = "xds"


class DatabaseOutput(
    DatabaseSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="database"
):
    """Change tables in a database."""

    format: Literal["change-tables"] = "change-tables"
    change_tables: ChangeTableSettings = ChangeTableSettings()


class KafkaOutput(KafkaSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="kafka"):
    """Messages into the topics of a Kafka, or XDS documents into one."""

    format: Literal["messages", "xds"] = "messages"
    messages: MessageSettings = MessageSettings()


OutputConfig = FilesOutput | StdoutOutput | HttpOutput | DatabaseOutput | KafkaOutput
KINDS = (FilesOutput, StdoutOutput, HttpOutput, DatabaseOutput, KafkaOutput)
