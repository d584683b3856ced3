"""Builds what a configuration names: the source and its pipeline, and outputs with their formats and sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from eventlog.config.outputs import DatabaseOutput, FilesOutput, HttpOutput, KafkaOutput, OutputConfig, StdoutOutput
from eventlog.config.settings import Config
from eventlog.core.durable_files import make_folder
from eventlog.core.errors import ConfigError, EventlogError
from eventlog.core.packages import require
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog, catalog_from_json
from eventlog.core.seams import Format, Stream
from eventlog.delivery.output import Output, Strictness
from eventlog.delivery.pipeline import Pipeline
from eventlog.sources.marks import TRACKED, FileMarks, Marks
from eventlog.sql.dialect import dialect_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.sources.log.lock import LogLock
    from eventlog.sources.log.source import LogSettings
    from eventlog.sql.names import LogNames
    from eventlog.sql.rows import Room
    from eventlog.xds.write import XdsFormat


def catalog_of(engine: Engine, names: LogNames, config: Config) -> Catalog:
    """What the captured tables look like now: tracked classes with the children they were tracked with, wherever they
    stand, and every other class of the schema, for triggers that somebody else wrote; eventlog's own tables never.
    """
    from eventlog.sql.history import counted
    from eventlog.sql.reflect import reflect
    from eventlog.sql.triggers import located, tracked

    source = config.source
    schema = source.schema if dialect_of(engine).schemas else None
    # Without a transaction: what is computed between two statements may take longer than one may be idle.
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        found = located(connection, names)
        classes = counted(connection, found, tracked(connection, found))
        catalog = reflect(connection, source.tables or None, schema)
    if source.tables:
        asked = {(table.schema, table.name) for table in catalog}
        classes = [table for table in classes if (table.schema, table.name) in asked]
    taken = {(table.schema, name) for table in classes for name in (table.name, *(c.name for c in table.children))}
    others = [table for table in catalog if (table.schema, table.name) not in taken and table.name not in names.own]
    return Catalog([*classes, *others], case_sensitive=catalog.case_sensitive)


def pipeline_of(
    engine: Engine,
    names: LogNames,
    config: Config,
    outputs: Sequence[Output],
    lock: LogLock | None = None,
    pulse: Callable[[], None] = lambda: None,
) -> Pipeline:
    """The way of a batch, with the tables as they look now; `lock` is whose loss must be noticed on it."""
    from eventlog.sources.log.source import LogSource
    from eventlog.sql.connect import reading_engine
    from eventlog.sql.rows import SqlRowReader, column_stamps

    publisher, source = config.publisher, config.source
    reading = reading_engine(engine, source.reader, source.statement_timeout, source.lock_timeout)
    tracked = tracked_of(engine, names)
    catalog = catalog_of(engine, names, config)
    return Pipeline(
        source=LogSource(engine, names, catalog, log_settings_of(config), lock, tracked),
        reader=SqlRowReader(reading, catalog, room_of(config), column_stamps(reading, catalog)),
        catalog=catalog,
        outputs=outputs,
        options=options_of(config, engine),
        limit=publisher.query_limit,
        strictness=Strictness(on_retry=publisher.on_retry, on_error=publisher.on_error),
        max_attempts=publisher.max_attempts,
        pulse=pulse,
    )


def tracked_of(engine: Engine, names: LogNames) -> str | None:
    """What changes each time that tables are tracked; to be asked for before they are looked at."""
    from eventlog.sql.log import Log

    log = Log(engine, names)
    with log.transaction() as connection:
        return Marks(log).get(connection, TRACKED)


def log_settings_of(config: Config) -> LogSettings:
    """How the log is read and marked."""
    from eventlog.sources.log.source import LogSettings

    publisher = config.publisher
    return LogSettings(
        handle_future_events=publisher.handle_future_events,
        delete_from_log=publisher.delete_from_log,
        backoff=publisher.backoff,
        on_retry=publisher.on_retry,
        transactions=any(output.format != "xds" for output in config.output),
        query_bytes=publisher.query_bytes,
        value_limit=publisher.value_limit,
    )


def room_of(config: Config) -> Room:
    """How much may be read back for a batch."""
    from eventlog.sql.rows import Room

    return Room(share=log_settings_of(config).share, value_limit=config.publisher.value_limit)


def options_of(config: Config, engine: Engine) -> Options:
    """The rules' options; the publisher's own user is the one it connects as, unless another is named."""
    publisher = config.publisher
    return Options(
        user=config.source.user or engine.url.username,
        allow_loopback=publisher.allow_loopback,
        coalesce=publisher.coalesce,
        future=publisher.handle_future_events,
    )


NAME_CHARACTERS: Final = 170
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
        on_value=publisher.on_value,
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
    form = xds_of(config)
    if isinstance(output, FilesOutput) and config.publisher.handle_future_events:
        return replace(form, rising=True)
    return form


def name_of(output: OutputConfig) -> str:
    """The name of an output: the same as long as it is the same place, and never too long for a mark."""
    place = _place(output)
    return place if len(place) <= NAME_CHARACTERS else f"{place[:100]} {sha256(place.encode()).hexdigest()}"


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


Report = Callable[[str], None]


def stream_of(config: Config, report: Report) -> Stream:
    """The stream, opened; `report` gets what is odd about it."""
    schema = _schema(config.source.schema_file)
    backoff = config.publisher.backoff
    if config.source.kind == "gbase":
        from eventlog.sources.gbase.source import gbase_source

        return gbase_source(config.source.gbase, schema, report=report, backoff=backoff)
    from eventlog.sources.linter.queue import open_session
    from eventlog.sources.linter.source import linter_source

    linter = config.source.linter
    marks = FileMarks(config.source.marks)
    session = open_session(config.source.url, linter)
    return linter_source(session, marks, schema, linter, report=report, backoff=backoff)


def stream_pipeline_of(
    stream: Stream, config: Config, outputs: Sequence[Output], pulse: Callable[[], None]
) -> Pipeline:
    """The way of a stream's batches: nothing is read back, for every image is whole."""
    publisher = config.publisher
    return Pipeline(
        source=stream,
        reader=None,
        catalog=None,
        outputs=outputs,
        options=Options(user=config.source.user, allow_loopback=publisher.allow_loopback),
        limit=publisher.query_limit,
        strictness=Strictness(on_retry=publisher.on_retry, on_error=publisher.on_error),
        max_attempts=publisher.max_attempts,
        pulse=pulse,
    )


def _schema(file: str) -> Catalog | None:
    """The tables that a schema file describes."""
    if not file:
        return None
    try:
        return catalog_from_json(Path(file).read_bytes(), origin=file)
    except OSError as error:
        problem = f"The schema file {file} cannot be read: {error.strerror}."
        raise ConfigError(problem, hint="source.schema_file names it.") from None
