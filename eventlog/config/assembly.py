"""Puts together what a configuration names where changes come from a log: catalog, rules' options, the way of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from eventlog.config.settings import Config
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog
from eventlog.delivery.output import Output, Strictness
from eventlog.delivery.pipeline import Pipeline
from eventlog.sources.marks import TRACKED, Marks
from eventlog.sql.dialect import dialect_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.delivery.workers import Workers
    from eventlog.sources.log.lock import LogLock
    from eventlog.sources.log.source import LogSettings
    from eventlog.sql.names import LogNames
    from eventlog.sql.rows import Room


def catalog_of(engine: Engine, names: LogNames, config: Config) -> Catalog:
    """What the captured tables look like now: tracked classes with the children they were tracked with, wherever they
    stand, and every other class of the schema, for triggers that somebody else wrote; eventlog's own tables never.
    """
    from eventlog.sql.reflect import reflect
    from eventlog.sql.triggers import located, tracked

    source = config.source
    schema = source.schema if dialect_of(engine).schemas else None
    # Without a transaction: what is computed between two statements may take longer than one may be idle.
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        classes = tracked(connection, located(connection, names))
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
    former: Pipeline | None = None,
) -> Pipeline:
    """The way of a batch, with the tables as they look now; `lock` is whose loss must be noticed on it.

    What the `former` one has running goes on in this one where it can.
    """
    from eventlog.sources.log.source import LogSource
    from eventlog.sql.connect import reading_engine
    from eventlog.sql.rows import SqlRowReader

    publisher, source = config.publisher, config.source
    reading = reading_engine(engine, source.reader, source.statement_timeout, source.lock_timeout)
    tracked = tracked_of(engine, names)
    catalog = catalog_of(engine, names, config)
    options = options_of(config, engine)
    workers = workers_of(engine, catalog, config, outputs, options)
    return Pipeline(
        source=LogSource(engine, names, catalog, log_settings_of(config), lock, tracked),
        reader=SqlRowReader(reading, catalog, room_of(config)),
        catalog=catalog,
        outputs=outputs,
        options=options,
        workers=None if workers is None else workers.going_on(former.workers if former else None),
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


def workers_of(
    engine: Engine, catalog: Catalog, config: Config, outputs: Sequence[Output], options: Options
) -> Workers | None:
    """The processes that share the work; none where a receiver judges each document, or where time makes the order."""
    from eventlog.delivery.share import Job, Reading
    from eventlog.delivery.workers import Workers
    from eventlog.xds.write import XdsFormat

    source, formats = config.source, [output.format for output in outputs]
    piecewise = tuple([form for form in formats if isinstance(form, XdsFormat)])
    judged = any(output.answers for output in outputs)
    if config.publisher.workers == 1 or options.future or judged or len(piecewise) < len(formats):
        return None
    reading = Reading(
        url=source.reader or engine.url.render_as_string(hide_password=False),
        statement_timeout=source.statement_timeout,
        lock_timeout=source.lock_timeout,
        share=room_of(config).share // config.publisher.workers,
        value_limit=config.publisher.value_limit,
    )
    job = Job(catalog=catalog, options=options, formats=piecewise, reading=reading)
    return Workers(job, config.publisher.workers)


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
