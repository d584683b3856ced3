"""Builds what a configuration names: the catalog, the source, the formats and the sinks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eventlog.config import Config, FilesOutput, HttpOutput, OutputConfig, StdoutOutput
from eventlog.pipeline import Output, Pipeline
from eventlog.rules import Options
from eventlog.schema import Catalog
from eventlog.sql.dialect import dialect_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.sql.names import LogNames
    from eventlog.xds.write import XdsFormat


def catalog_of(engine: Engine, names: LogNames, config: Config) -> Catalog:
    """What the captured tables look like now; eventlog's own tables are not among them."""
    from eventlog.sql.reflect import reflect

    source = config.source
    schema = source.schema if dialect_of(engine).schemas else None
    catalog = reflect(engine, source.tables or None, schema)
    own = {names.table, names.outcomes, names.marks, names.version}
    return Catalog([table for table in catalog if table.name not in own], case_sensitive=catalog.case_sensitive)


def pipeline_of(engine: Engine, names: LogNames, config: Config, outputs: Sequence[Output]) -> Pipeline:
    """The way of a batch, with the tables as they look now."""
    from eventlog.sources.table import LogSettings, LogSource
    from eventlog.sql.rows import SqlRowReader

    publisher = config.publisher
    catalog = catalog_of(engine, names, config)
    settings = LogSettings(
        handle_future_events=publisher.handle_future_events, delete_from_log=publisher.delete_from_log
    )
    return Pipeline(
        source=LogSource(engine, names, catalog, settings),
        reader=SqlRowReader(engine, catalog),
        catalog=catalog,
        outputs=outputs,
        options=options_of(config, engine),
        limit=publisher.query_limit,
    )


def options_of(config: Config, engine: Engine) -> Options:
    """The rules' options; the publisher's own user is the one it connects as, unless another is named."""
    publisher = config.publisher
    return Options(
        user=config.source.user or engine.url.username,
        allow_loopback=publisher.allow_loopback,
        coalesce=publisher.coalesce,
        future=publisher.handle_future_events,
    )


def outputs_of(config: Config) -> list[Output]:
    """The outputs; without any, documents go to standard output."""
    return [_output(output, config) for output in config.output or (StdoutOutput(),)]


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


def _output(output: OutputConfig, config: Config) -> Output:
    from eventlog.sinks.files import FileSink
    from eventlog.sinks.http import HttpSink
    from eventlog.sinks.stdout import StdoutSink

    xds = xds_of(config)
    if isinstance(output, FilesOutput):
        return Output(format=xds, sink=FileSink(Path(output.path), xds.suffix))
    if isinstance(output, HttpOutput):
        return Output(format=xds, sink=HttpSink(output))
    return Output(format=xds, sink=StdoutSink())
