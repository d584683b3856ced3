"""Builds what a configuration names where changes come from a stream: its source, and the way of its batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from eventlog.config.settings import Config
from eventlog.core.errors import ConfigError
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog, catalog_from_json
from eventlog.core.seams import Stream
from eventlog.delivery.output import Output, Strictness
from eventlog.delivery.pipeline import Pipeline
from eventlog.sources.marks import FileMarks

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
