"""Builds what a configuration names: the source with its rules, outputs with formats and sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eventlog.config.outputs import OutputConfig, default_output, own_table, plugin_of
from eventlog.config.settings import LOG, Config, SourceConfig
from eventlog.core.errors import ConfigError, EventlogError
from eventlog.core.packages import require
from eventlog.core.plugins import FormatOrder, SinkOrder, SourceOrder, StepNeeds
from eventlog.core.registry import format_named, source_named, steps_plugin, streams_plugin
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog
from eventlog.core.seams import Format, on_value_of
from eventlog.delivery.answers import Strictness
from eventlog.delivery.blame import BrokenOutput
from eventlog.delivery.output import Output
from eventlog.sources.marks import TRACKED, Marks
from eventlog.sql.dialect import dialect_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.publisher.decide import Decider, Looks
    from eventlog.publisher.turn_report import ConsumerSettings
    from eventlog.sources.log.reading import LogSettings
    from eventlog.sql.names import LogNames
    from eventlog.sql.rows import Room


def catalog_of(engine: Engine, names: LogNames, config: Config) -> Catalog:
    """Describe the captured tables as they are now: tracked classes with their tracked children, wherever
    they stand, and every other class of the schema, for triggers that somebody else wrote; eventlog's
    own tables never.
    """
    from eventlog.sql.findlog import with_schema
    from eventlog.sql.history import number_tables
    from eventlog.sql.reflect import reflect
    from eventlog.tracked.classes import list_tracked

    source = config.source
    # Without schemas this setting is only a name in associations.
    schema = source.schema if dialect_of(engine).schemas else None
    # Without a transaction: what is computed between two statements may take longer than one may be
    # idle.
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        log = with_schema(connection, names)
        classes = list_tracked(connection, log)
        # A database without a log answers read-backs too, and has no history.
        classes = number_tables(connection, log, classes) if classes else []
        catalog = reflect(connection, source.tables or None, schema, without=names.own)
    if source.tables:
        asked = {(table.schema, table.name) for table in catalog}
        classes = [table for table in classes if (table.schema, table.name) in asked]
    taken = {(table.schema, name) for table in classes for name in (table.name, *(c.name for c in table.children))}
    others = [table for table in catalog if (table.schema, table.name) not in taken and table.name not in names.own]
    return Catalog([*classes, *others], case_sensitive=catalog.case_sensitive)


def with_definitions(engine: Engine, names: LogNames, catalog: Catalog) -> Catalog:
    """Add the former definitions of tables from the history, if it can be read."""
    from sqlalchemy.exc import SQLAlchemyError

    from eventlog.core.rules.definitions import Definitions
    from eventlog.sql.findlog import with_schema
    from eventlog.sql.history import definitions_in

    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            log = with_schema(connection, names)
            former = Definitions(definitions_in(connection, log, catalog), catalog)
    except SQLAlchemyError:
        return catalog
    return Catalog(catalog.tables, case_sensitive=catalog.case_sensitive, former=former)


def decider_of(
    engine: Engine,
    names: LogNames,
    config: Config,
    looks: Looks | None = None,
) -> Decider:
    """Make the rules, with a log's tables as they look now; `looks` are those of the former decider."""
    from eventlog.core.rules import Round
    from eventlog.publisher.decide import Decider
    from eventlog.sql.connect import connect_for_read_back
    from eventlog.sql.history import history_stamp
    from eventlog.sql.rows import SqlRowReader, column_stamps

    source = config.source
    limits = (source.statement_timeout, source.lock_timeout, config.publisher.read_back_timeout)
    reading = connect_for_read_back(engine, source.reader, *limits)
    # Before the tables are read: what changes in between counts as new at the next look.
    tracked, stamp = read_track_stamp(engine, names), history_stamp(engine, names)
    catalog = with_definitions(engine, names, catalog_of(engine, names, config))
    asked = step_needs_of(config, catalog)
    round_ = Round(
        catalog=catalog,
        reader=SqlRowReader(reading, catalog, room_of(config), column_stamps(reading, catalog), may_wait=True),
        options=options_of(config, engine.url.username),
        needs=asked.needs,
        looks=asked.looks,
    )
    return Decider(round_, tracked, looks, stamp, asked.faults)


def policies_of(config: Config) -> list[tuple[str, tuple[Any, ...]]]:
    """List the outputs with policies by name, and their steps."""
    outputs = [(name_of(output), _steps_of(output, config)) for output in config.output]
    return [(name, steps) for name, steps in outputs if steps]


def consumer_settings_of(config: Config) -> ConsumerSettings:
    """Choose how each output of a log is published."""
    from eventlog.publisher.turn_report import ConsumerSettings
    from eventlog.sql.log import ALL

    publisher = config.publisher
    return ConsumerSettings(
        limit=publisher.query_limit or ALL,
        strictness=Strictness(on_retry=publisher.on_retry, on_error=publisher.on_error),
        max_attempts=publisher.max_attempts,
    )


def read_track_stamp(engine: Engine, names: LogNames) -> str | None:
    """Read a text that changes each time that tables are tracked; to be read before they are looked at."""
    from eventlog.sql.log import Log

    log = Log(engine, names)
    with log.transaction() as connection:
        return Marks(log).get(connection, TRACKED)


def log_settings_of(config: Config) -> LogSettings:
    """Choose how the log is read and marked."""
    from eventlog.sources.log.reading import LogSettings

    publisher = config.publisher
    whole = any(output.transactions == "whole" for output in config.output)
    return LogSettings(
        handle_future_events=publisher.handle_future_events,
        delete_from_log=publisher.delete_from_log,
        backoff=publisher.backoff,
        transactions=whole or any(output.format != "xds" for output in config.output),
        who=reads_originators(config),
        ends=whole or any(format_named(target.format).counts(own_table(target)) for target in config.output),
        query_bytes=publisher.query_bytes,
        value_limit=publisher.value_limit,
    )


def reads_originators(config: Config) -> bool:
    """Return True if who is behind a row matters: to an output, or to what is published at all."""
    return bool(config.publisher.loopback_contexts) or any(output.who for output in config.output)


def room_of(config: Config) -> Room:
    """Limit the size of read-backs for a batch."""
    from eventlog.sql.rows import Room

    return Room(share=log_settings_of(config).share, value_limit=config.publisher.value_limit)


def log_catalog_of(engine: Engine, names: LogNames, config: Config) -> Catalog:
    """Describe the tables of a log's rows; those of a stream as it has described them last."""
    if config.source.kind == LOG:
        return with_definitions(engine, names, catalog_of(engine, names, config))
    catalog: Catalog = streams_plugin().catalog(engine, names)
    return catalog


def options_of(config: Config, connects_as: str | None = None) -> Options:
    """Make the rules' options; the publisher's own user is the connected one, unless one is named."""
    publisher = config.publisher
    return Options(
        user=config.source.user or connects_as,
        allow_loopback=publisher.allow_loopback,
        contexts=publisher.loopback_contexts,
        coalesce=publisher.coalesce,
        future=publisher.handle_future_events,
    )


def step_needs_of(config: Config, catalog: Catalog) -> StepNeeds:
    """List the needs of all outputs' steps beside changes."""
    policies = policies_of(config)
    return steps_plugin().needs(policies, catalog) if policies else StepNeeds()


NAME_CHARACTERS: Final = 170
"""Characters in the name of an output; the name of its mark has a prefix and takes 200."""


def outputs_of(config: Config) -> list[Output]:
    """Make the outputs; without any, documents go to standard output."""
    outputs: list[Output] = []
    refuse_twins(config.output)
    try:
        # From a generator, so that those that were made are in the list when one fails.
        outputs.extend(_output_or_broken(output, config) for output in config.output or (default_output(),))
    except EventlogError:
        for made in outputs:
            made.sink.close()
        raise
    return outputs


def require_packages(output: OutputConfig) -> None:
    """Raise ConfigError if a package the output needs is missing."""
    plugin = plugin_of(output)
    for need in plugin.needs(output) if plugin.needs is not None else ():
        require(need.what, need.module)


def format_of(output: OutputConfig, config: Config) -> Format:
    """Make the format of an output, behind its policies."""
    format_plugin = format_named(output.format)
    database, home = _find_home(config.source)
    ordered = FormatOrder(
        settings=own_table(output),
        output=output,
        sink=plugin_of(output),
        publisher=config.publisher,
        schema=config.source.schema,
        database=database,
        home=home,
    )
    form, steps = format_plugin.build(ordered), _steps_of(output, config)
    return steps_plugin().format(form, steps) if steps else form


def _output(output: OutputConfig, config: Config) -> Output:
    require_packages(output)
    plugin, format_plugin = plugin_of(output), format_named(output.format)
    form = format_of(output, config)
    build = format_plugin.folder if output.sink == "files" and format_plugin.folder is not None else plugin.build
    return Output(
        format=form,
        sink=build(SinkOrder(output=output, format=form)),
        name=name_of(output),
        former_names=former_names_of(output),
        answers=plugin.answers,
        whole=output.transactions == "whole",
        refuses_objects=on_value_of(form) == "refuse-object",
    )


def _find_home(source: SourceConfig) -> tuple[str, str]:
    """Find the kind and the name of the database in which a log's tables stand; nothing for a stream's."""
    from eventlog.sql.connect import read_url

    if source.kind != LOG or not source.url or source.schema_file:
        return "", ""
    url = read_url(source.url)
    return dialect_of(url).name, url.database or ""


def _output_or_broken(output: OutputConfig, config: Config) -> Output:
    """Make an output; where its code fails, and there are others, one that says so in its first turn."""
    try:
        return _output(output, config)
    except EventlogError:
        raise
    except Exception as error:
        if len(config.output) < 2:
            raise
        broken: Any = BrokenOutput(error)
        return Output(format=broken, sink=broken, name=name_of(output), former_names=former_names_of(output))


def _steps_of(output: OutputConfig, config: Config) -> tuple[Any, ...]:
    """Return the steps of an output; nearly always there are none."""
    if not output.steps and not output.policies and output.unmapped == "send":
        return ()
    return steps_plugin().of_output(output, config.policy)


def name_of(output: OutputConfig) -> str:
    """Name an output: as the configuration does, else after its place."""
    return output.name or _name_of_place(output)


def former_names_of(output: OutputConfig) -> tuple[str, ...]:
    """List its former names: an output with a name was called after its place once."""
    return (*output.former_names, _name_of_place(output)) if output.name else output.former_names


def _name_of_place(output: OutputConfig) -> str:
    """Name an output after its place: the same for the same place, and never too long for a mark."""
    place = plugin_of(output).place(output)
    return place if len(place) <= NAME_CHARACTERS else f"{place[:100]} {sha256(place.encode()).hexdigest()}"


def refuse_twins(outputs: Sequence[OutputConfig]) -> None:
    """Raise ConfigError if two outputs share a name or a place."""
    names: set[str] = set()
    places: set[str] = set()
    for output in outputs:
        name, place = name_of(output), _name_of_place(output)
        if place in places:
            raise ConfigError(f"Two outputs go to {place}; each needs a place of its own.")
        if name in names:
            raise ConfigError(
                f"Two outputs are called {name}.",
                hint="Each needs a `name` of its own.",
            )
        places.add(place)
        names.add(name)


def source_order(config: Config, marks: Any, report: Callable[[str], None]) -> SourceOrder:
    """Make the order for the source's plug-in; `report` gets oddities."""
    source = config.source
    return SourceOrder(
        settings=source.own,
        url=source.url,
        tables=_schema(source.schema_file),
        marks=marks,
        report=report,
        reader=source.reader,
        captured=source.tables,
        schema=source.schema,
    )


def stream_log_of(source: SourceConfig) -> tuple[str, LogNames]:
    """Return the database and the names of the log that a stream is captured into."""
    from sqlalchemy import URL

    from eventlog.sql.dialect import dialects
    from eventlog.sql.names import ORIGIN, TRANSACTION, LogNames

    marks = source.marks
    if "://" in marks:
        return marks, LogNames(table=f"{source_named(source.kind).prefix}_log", transaction=TRANSACTION, origin=ORIGIN)
    embedded = next(dialect.name for dialect in dialects() if dialect.embedded)
    url = URL.create(embedded, database=f"{marks}.db").render_as_string()
    return url, LogNames(transaction=TRANSACTION, origin=ORIGIN)


def _schema(file: str) -> Catalog | None:
    """Read the tables of a schema file."""
    if not file:
        return None
    from eventlog.core.schema_file import catalog_from_json

    try:
        return catalog_from_json(Path(file).read_bytes(), origin=file)
    except OSError as error:
        problem = f"The schema file {file} cannot be read: {error.strerror}."
        raise ConfigError(problem, hint="source.schema_file names it.") from None
