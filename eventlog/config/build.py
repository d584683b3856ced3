"""Builds what a configuration names: the source and its pipeline, and outputs with their formats and sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from eventlog.config.outputs import DatabaseOutput, FilesOutput, HttpOutput, KafkaOutput, OutputConfig, StdoutOutput
from eventlog.config.policies import checked_needs, steps_of
from eventlog.config.settings import Config
from eventlog.core.errors import ConfigError, EventlogError
from eventlog.core.packages import require
from eventlog.core.policies.steps import Lookup, Route
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog, catalog_from_json
from eventlog.core.seams import Format, Sink, Source, Stream
from eventlog.delivery.output import Output, Strictness
from eventlog.delivery.pipeline import Pipeline
from eventlog.sources.marks import TRACKED, Marks
from eventlog.sources.stream.source import FileMarks
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
    lagging: str | None = None,
) -> Pipeline:
    """The way of a batch, with the tables as they look now; `lock` is whose loss must be noticed on it.

    `lagging` is the one output that gets what it is owed.
    """
    from eventlog.sources.log.lagging import LaggingSource
    from eventlog.sources.log.source import LogSource
    from eventlog.sql.connect import reading_engine
    from eventlog.sql.rows import SqlRowReader, column_stamps

    publisher, source = config.publisher, config.source
    reading = reading_engine(engine, source.reader, source.statement_timeout, source.lock_timeout)
    tracked = tracked_of(engine, names)
    catalog = catalog_of(engine, names, config)
    settings = log_settings_of(config)
    known_as = [output.name for output in outputs]
    log_source: Source = LogSource(engine, names, catalog, settings, lock, tracked, known_as)
    if lagging is not None and lock is not None:
        log_source = LaggingSource(engine, names, lagging, catalog, settings, lock, tracked)
    asked = checked_needs([(name_of(output), steps_of(output, config.policy)) for output in config.output], catalog)
    return Pipeline(
        source=log_source,
        reader=SqlRowReader(reading, catalog, room_of(config), column_stamps(reading, catalog)),
        catalog=catalog,
        outputs=outputs,
        options=options_of(config, engine.url.username),
        limit=publisher.query_limit,
        strictness=Strictness(on_retry=publisher.on_retry, on_error=publisher.on_error),
        max_attempts=publisher.max_attempts,
        pulse=pulse,
        needs=asked.needs,
        looks=asked.looks,
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
        ends=any(output.format == "messages" for output in config.output),
        query_bytes=publisher.query_bytes,
        value_limit=publisher.value_limit,
    )


def room_of(config: Config) -> Room:
    """How much may be read back for a batch."""
    from eventlog.sql.rows import Room

    return Room(share=log_settings_of(config).share, value_limit=config.publisher.value_limit)


def options_of(config: Config, connects_as: str | None = None) -> Options:
    """The rules' options; the publisher's own user is the one it connects as, unless another is named."""
    publisher = config.publisher
    return Options(
        user=config.source.user or connects_as,
        allow_loopback=publisher.allow_loopback,
        coalesce=publisher.coalesce,
        future=publisher.handle_future_events,
    )


NAME_CHARACTERS: Final = 170
"""Characters in the name of an output; the name of its mark has a prefix and takes 200."""


def outputs_of(config: Config) -> list[Output]:
    """The outputs; without any, documents go to standard output."""
    outputs: list[Output] = []
    refuse_twins(config.output)
    try:
        # From a generator, so that those that were made are in the list when one fails.
        outputs.extend(_output(output, config) for output in config.output or (StdoutOutput(),))
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
    require_packages(output)
    steps = steps_of(output, config.policy)
    form = _format(output, config)
    if steps:
        from eventlog.core.policies.bound import PolicyFormat

        form = PolicyFormat(form, steps)
    return Output(
        format=form,
        sink=_sink(output, form, routed=any(isinstance(step, Route) for step in steps)),
        name=name_of(output),
        former_names=former_names_of(output),
        answers=isinstance(output, HttpOutput),
    )


def _sink(output: OutputConfig, form: Format, *, routed: bool) -> Sink:
    from eventlog.sinks.files import FileSink
    from eventlog.sinks.http.sink import HttpSink
    from eventlog.sinks.stdout import StdoutSink

    if isinstance(output, DatabaseOutput):
        from eventlog.sinks.database.sink import DatabaseSink

        return DatabaseSink(output)
    if isinstance(output, KafkaOutput):
        from eventlog.sinks.kafka.sink import KafkaSink

        return KafkaSink(output)
    if isinstance(output, FilesOutput):
        folder = Path(output.path)
        if output.format == "change-tables":
            from eventlog.sinks.change_files.sink import ChangeTableFiles

            stop = output.on_refused == "stop"
            return ChangeTableFiles(folder, output.row_files.chosen(output.file_format), output.task, stop=stop)
        return FileSink(folder, form.suffix, routed=routed)
    if isinstance(output, HttpOutput):
        return HttpSink(output)
    return StdoutSink()


def _format(output: OutputConfig, config: Config) -> Format:
    if output.format == "messages":
        from eventlog.qlik.messages.write import MessageFormat

        return MessageFormat(settings=output.messages, body=not isinstance(output, KafkaOutput))
    if output.format == "change-tables":
        from eventlog.qlik.change_tables.format import ChangeTableFormat

        files = output.row_files.chosen(output.file_format) if isinstance(output, FilesOutput) else None
        loads = files is not None and files.full_load == "files"
        return ChangeTableFormat(settings=output.change_tables, loads=loads)
    form = xds_of(config)
    if isinstance(output, FilesOutput) and config.publisher.handle_future_events:
        return replace(form, rising=True)
    return form


def name_of(output: OutputConfig) -> str:
    """What an output is called: as the configuration says, else after its place."""
    return output.name or _name_of_place(output)


def former_names_of(output: OutputConfig) -> tuple[str, ...]:
    """What it was called before, as far as anybody knows: who has a name now was called after its place."""
    return (*output.former_names, _name_of_place(output)) if output.name else output.former_names


def _name_of_place(output: OutputConfig) -> str:
    """The same as long as it is the same place, and never too long for a mark."""
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


def refuse_twins(outputs: Sequence[OutputConfig]) -> None:
    """ConfigError where two outputs have one name, or go to one place."""
    names: set[str] = set()
    places: set[str] = set()
    for output in outputs:
        name, place = name_of(output), _name_of_place(output)
        if place in places:
            raise ConfigError(f"Two outputs go to {place}; each needs a place of its own.")
        if name in names:
            raise ConfigError(f"Two outputs are called {name}.", hint="Each needs a `name` of its own.")
        places.add(place)
        names.add(name)


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
    if any(isinstance(step, Lookup) for output in config.output for step in steps_of(output, config.policy)):
        said = "A step with `do = 'lookup'` reads rows of other tables, and a stream has no database to read them from."
        raise ConfigError(said, hint="Take the step out; or let the receiver look that up.")
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
