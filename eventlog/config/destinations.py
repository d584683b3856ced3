"""Builds the outputs that a configuration names: a format, the sink that takes it, and a name that stays the same."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from eventlog.config.outputs import DatabaseOutput, FilesOutput, HttpOutput, KafkaOutput, OutputConfig, StdoutOutput
from eventlog.config.settings import Config
from eventlog.core.durable_files import make_folder
from eventlog.core.errors import ConfigError, EventlogError
from eventlog.core.packages import require
from eventlog.core.seams import Format
from eventlog.delivery.output import Output

if TYPE_CHECKING:
    from eventlog.xds.write import XdsFormat

LONGEST_NAME: Final = 170
"""Characters in the name of an output; the name of its mark has a prefix and takes 200."""


def outputs_of(config: Config) -> list[Output]:
    """The outputs; without any, documents go to standard output."""
    outputs: list[Output] = []
    try:
        for output in config.output or (StdoutOutput(),):
            outputs.append(_output(output, config))
            _refuse_twins(outputs)
    except EventlogError:
        for made in outputs:
            made.sink.close()
        raise
    return outputs


def xds_of(config: Config) -> XdsFormat:
    """The XDS format with the publisher's settings."""
    from eventlog.xds.write import XdsFormat

    publisher = config.publisher
    return XdsFormat(
        batch_size=publisher.batch_size,
        time_syntax=publisher.time_syntax,
        enable_refs=publisher.enable_refs,
        schema_name=config.source.schema,
    )


def require_packages(output: OutputConfig) -> None:
    """ConfigError where a package is missing without which nothing can go to the output."""
    if isinstance(output, KafkaOutput):
        require('An output with sink = "kafka"', "confluent_kafka")
    if isinstance(output, FilesOutput) and (output.format, output.file_format) == ("change-tables", "parquet"):
        require('An output with file_format = "parquet"', "pyarrow")


def _output(output: OutputConfig, config: Config) -> Output:
    from eventlog.sinks.files import FileSink
    from eventlog.sinks.http.sink import HttpSink
    from eventlog.sinks.stdout import StdoutSink

    require_packages(output)
    form = _format(output, config)
    if isinstance(output, DatabaseOutput):
        return _into_tables(output, form)
    if isinstance(output, KafkaOutput):
        return _into_kafka(output, form)
    if isinstance(output, FilesOutput):
        folder = Path(output.path)
        with suppress(OSError):  # the sink says what is wrong with the folder
            make_folder(folder)
        if output.format == "change-tables":
            return _into_row_files(output, folder, form)
        return Output(format=form, sink=FileSink(folder, form.suffix), name=name_of(output))
    if isinstance(output, HttpOutput):
        return Output(format=form, sink=HttpSink(output), name=name_of(output), answers=True)
    return Output(format=form, sink=StdoutSink(), name=name_of(output))


def _into_tables(output: DatabaseOutput, form: Format) -> Output:
    from eventlog.sinks.database.sink import DatabaseSink

    return Output(format=form, sink=DatabaseSink(output), name=name_of(output))


def _into_kafka(output: KafkaOutput, form: Format) -> Output:
    from eventlog.sinks.kafka.sink import KafkaSink

    return Output(format=form, sink=KafkaSink(output), name=name_of(output))


def _into_row_files(output: FilesOutput, folder: Path, form: Format) -> Output:
    from eventlog.sinks.change_files.sink import ChangeTableFiles

    stop = output.on_refused == "stop"
    sink = ChangeTableFiles(folder, output.file_format, output.task, stop=stop)
    return Output(format=form, sink=sink, name=name_of(output))


def _format(output: OutputConfig, config: Config) -> Format:
    if output.format == "messages":
        from eventlog.qlik.messages.write import MessageFormat

        return MessageFormat(settings=output.messages, body=not isinstance(output, KafkaOutput))
    if output.format == "change-tables":
        from eventlog.qlik.change_tables.format import ChangeTableFormat

        return ChangeTableFormat(settings=output.change_tables)
    return xds_of(config)


def name_of(output: OutputConfig) -> str:
    """The name of an output: the same as long as it is the same place, and never too long for a mark."""
    place = _place(output)
    return place if len(place) <= LONGEST_NAME else f"{place[:100]} {sha256(place.encode()).hexdigest()}"


def _place(output: OutputConfig) -> str:
    if isinstance(output, FilesOutput):
        kind = "change tables" if output.format == "change-tables" else "files"
        return f"{kind} {Path(output.path).resolve()}"
    if isinstance(output, HttpOutput):
        return f"http {urlsplit(output.url)._replace(query='', fragment='').geturl()}"
    if isinstance(output, DatabaseOutput):
        from eventlog.sql.connect import read_url, shown_url

        return f"database {shown_url(read_url(output.url))} {output.schema or ''} {output.task}"
    if isinstance(output, KafkaOutput):
        return f"kafka {output.servers} {output.transactional_id}"
    return "stdout"


def _refuse_twins(outputs: Sequence[Output]) -> None:
    *others, last = outputs
    if any(other.name == last.name for other in others):
        raise ConfigError(f"Two outputs go to {last.name}; each needs a place of its own.")
