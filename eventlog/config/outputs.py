"""What an output of the configuration can be: its sink's own keys, and how documents look that go there."""

from __future__ import annotations

from typing import Literal

from eventlog.core.outputs import OutputKeys
from eventlog.core.places import PlaceKind
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.change_files.settings import RowFileSettings, RowFormat
from eventlog.sinks.database.settings import DatabaseSettings
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.kafka.settings import KafkaSettings

Places = tuple[PlaceKind | None, str, tuple[str, ...]]
"""What kind of places an output has, how it is called, and the topics that have another use."""


class FilesOutput(OutputKeys, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="files"):
    """Documents as files in a folder."""

    path: str
    format: Literal["xds", "change-tables", "messages"] = "xds"
    file_format: RowFormat = "parquet"
    row_files: RowFileSettings = RowFileSettings()
    task: str = "eventlog"
    on_refused: Literal["set-aside", "stop"] = "set-aside"
    change_tables: ChangeTableSettings = ChangeTableSettings()
    messages: MessageSettings = MessageSettings()

    @property
    def places(self) -> Places:
        """Folders of documents or tables; messages name their topics."""
        if self.format == "messages":
            return "topic", "files", (self.messages.metadata_topic,)
        return "table" if self.format == "change-tables" else "folder", "files", ()


class StdoutOutput(OutputKeys, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="stdout"):
    """Documents on standard output."""

    format: Literal["xds", "messages"] = "xds"
    messages: MessageSettings = MessageSettings()

    @property
    def places(self) -> Places:
        """Messages name their topics; documents stand one after the other."""
        return "topic" if self.format == "messages" else None, "standard output", (self.messages.metadata_topic,)


class HttpOutput(HttpSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="http"):
    """Documents POSTed to an address, whose answers say what becomes of the rows."""

    format: Literal["xds"] = "xds"

    @property
    def places(self) -> Places:
        """Addresses below its `url`."""
        return "address", "an address", ()


class DatabaseOutput(
    DatabaseSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="database"
):
    """Change tables in a database."""

    format: Literal["change-tables"] = "change-tables"
    change_tables: ChangeTableSettings = ChangeTableSettings()

    @property
    def places(self) -> Places:
        """Its tables."""
        return "table", "a database", ()


class KafkaOutput(KafkaSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="kafka"):
    """Messages into the topics of a Kafka, or XDS documents into one."""

    format: Literal["messages", "xds"] = "messages"
    messages: MessageSettings = MessageSettings()

    @property
    def places(self) -> Places:
        """Its topics, but those that say how far it is and what tables look like."""
        return "topic", "Kafka", (self.marks_topic, self.messages.metadata_topic)


OutputConfig = FilesOutput | StdoutOutput | HttpOutput | DatabaseOutput | KafkaOutput
KINDS = (FilesOutput, StdoutOutput, HttpOutput, DatabaseOutput, KafkaOutput)
