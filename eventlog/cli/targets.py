"""What `eventlog convert` writes and where to, from the command line's words and a configuration's outputs."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from eventlog.cli.order import ConversionOrder
from eventlog.config.outputs import DatabaseOutput, FilesOutput, KafkaOutput, StdoutOutput
from eventlog.config.settings import Config
from eventlog.convert.settings import MessageFiles, SentMessages, SentTables, TableFiles, Target
from eventlog.core.errors import UsageError
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.database.sink import DatabaseSettings
from eventlog.sinks.kafka.settings import KafkaSettings

FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "xds": (),
    "change-tables": ("parquet", "csv"),
    "messages": ("json", "avro"),
}
"""The files that a target can be written to, by their names on the command line."""

OWN_TASK: Final = "eventlog-convert"
"""Who a conversion is where the position is kept, unless the configuration names a task."""


def refuse_target(order: ConversionOrder) -> None:
    """UsageError says which words about the target do not go together."""
    _refuse_sending(order)
    known = FORMATS[order.target]
    if order.file_format is not None and order.file_format not in known:
        what = f"it takes {' or '.join(known)}" if known else "it has no choice of files"
        raise UsageError(f"--format {order.file_format} does not go with --to {order.target}; {what}.")
    if order.metadata_topic is not None and order.target != "messages":
        raise UsageError("--metadata-topic goes with --to messages.")


def _refuse_sending(order: ConversionOrder) -> None:
    """What does not go with a database or a Kafka as the destination."""
    if order.to_database is not None and order.target != "change-tables":
        raise UsageError("--to-database goes with --to change-tables.")
    if order.kafka is not None and order.target != "messages":
        raise UsageError("--kafka goes with --to messages.")
    if order.to_database is not None and order.file_format is not None:
        raise UsageError("--format says what files are written, and with --to-database there are none.")
    if order.to_database is not None and (order.engine == "spark" or order.master or order.conf):
        raise UsageError("--to-database goes with the local engine: say --engine local.")


def target_of(order: ConversionOrder, config: Config) -> Target:
    """What is written: as the configuration's outputs of this format have it, and the command line over them."""
    if order.target == "change-tables":
        return _tables(order, config)
    if order.target == "messages":
        return _messages(order, config)
    from eventlog.config.build import xds_of

    return replace(xds_of(config), batch_size=1)  # parts have a size of their own


def _tables(order: ConversionOrder, config: Config) -> TableFiles | SentTables:
    databases = [one for one in config.output if isinstance(one, DatabaseOutput)]
    files = [one for one in config.output if isinstance(one, FilesOutput)]
    sent = [one.change_tables for one in databases]
    written = [one.change_tables for one in files]
    if order.to_database is None:
        settings = [*written, *sent, ChangeTableSettings()][0]
        return TableFiles(settings=settings, file_format="csv" if order.file_format == "csv" else "parquet")
    settings = [*sent, *written, ChangeTableSettings()][0]
    known: DatabaseSettings = databases[0] if databases else DatabaseSettings(url="", task=OWN_TASK)
    return SentTables(settings=settings, into=replace(known, url=order.to_database))


def _messages(order: ConversionOrder, config: Config) -> MessageFiles | SentMessages:
    kafkas = [one for one in config.output if isinstance(one, KafkaOutput)]
    sent = [one.messages for one in kafkas]
    written = [one.messages for one in config.output if isinstance(one, FilesOutput | StdoutOutput)]
    found = [*sent, *written, MessageSettings()] if order.kafka else [*written, *sent, MessageSettings()]
    settings = found[0]
    if order.file_format in ("json", "avro"):
        settings = replace(settings, encoding="avro" if order.file_format == "avro" else "json")
    if order.metadata_topic:
        settings = replace(settings, mode="metadata", metadata_topic=order.metadata_topic)
    if order.kafka is None:
        return MessageFiles(settings=settings)
    known: KafkaSettings = kafkas[0] if kafkas else KafkaSettings(servers=order.kafka, transactional_id=OWN_TASK)
    return SentMessages(settings=settings, into=replace(known, servers=order.kafka))
