"""Says whether a publisher could work here: configuration, database, log, triggers, outputs; changes nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from sqlalchemy import Engine

from eventlog.admin.check.log import log_points
from eventlog.admin.check.outputs import output_points
from eventlog.admin.check.plugins import plugin_points
from eventlog.admin.check.point import Point, PointLevel, failure, ok, points, warning
from eventlog.admin.check.server import local_time, server_points
from eventlog.admin.policies import policies_of
from eventlog.config.policies import checked_needs
from eventlog.config.settings import Config
from eventlog.config.weak_secrets import MEND, WEAK, known_secrets
from eventlog.core.errors import ConfigError, EventlogError
from eventlog.core.plural import counted
from eventlog.core.suggest import did_you_mean

__all__ = ["Point", "PointLevel", "check"]


def check(read: Callable[[], Config], clock: Callable[[], dt.datetime] | None = None) -> Iterator[Point]:
    """Every point in the order in which they build on each other; what needs a part that failed is left out.

    `clock` is this machine's time in UTC.
    """
    try:
        config = read()
        source = f"source.url of {config.source.kind}" if config.source.url else None
    except EventlogError as error:
        yield failure("configuration", error)
        return
    if source is None:
        yield failure(
            "configuration", ConfigError("No database is named.", hint="Use --database URL or --config FILE.")
        )
    else:
        yield ok("configuration", f"{counted(len(config.output) or 1, 'output')}, log {config.source.log}")
        for setting in known_secrets(config).weak:
            yield warning("configuration", f"{setting}: {WEAK}", MEND)
        yield from _database_points(config, clock or local_time)
    yield from output_points(config)
    yield from plugin_points(config)


def _database_points(config: Config, clock: Callable[[], dt.datetime]) -> Iterator[Point]:
    engine, found = _connected(config)
    yield found
    if engine is None:
        return
    try:
        yield from points("server", lambda: server_points(engine, clock))
        yield from points("schema", lambda: _schema(engine, config.source.schema))
        if config.source.kind == "compare":
            yield from points("tables", lambda: _compared(engine, config))
            return
        yield from points("log", lambda: log_points(engine, config.source.wanted_names, config))
        yield from points("policies", lambda: _policies(engine, config))
    finally:
        engine.dispose()


def _compared(engine: Engine, config: Config) -> Iterator[Point]:
    """Whether the tables that are compared can be read and have keys."""
    from eventlog.sources.compare.catalog import compared_catalog
    from eventlog.sql.dialect import dialect_of

    schema = config.source.schema if dialect_of(engine).schemas else None
    with engine.connect() as connection:
        found = compared_catalog(connection, config.source.tables, schema, config.source.own)
    loose = [table.whole for table in found if not table.key]
    if loose or not len(found):
        what = f"{loose[0]} has no key" if loose else "No table has a key"
        raise ConfigError(f"{what}, so its rows cannot be compared.", hint="Name others in source.tables.")
    yield ok("tables", f"{counted(len(found), 'table')} can be compared")


def _policies(engine: Engine, config: Config) -> Iterator[Point]:
    """Whether the tables and attributes are there that policies name; nothing where there is no policy."""
    from eventlog.config.build import catalog_of

    found = policies_of(config)
    if found and config.source.kind == "log":
        checked_needs(found, catalog_of(engine, config.source.wanted_names, config))
        yield ok("policies", f"all is there that the policies of {counted(len(found), 'output')} name")


def _schema(engine: Engine, schema: str | None) -> Iterator[Point]:
    """Whether the schema of the captured tables is there; nothing where none is named."""
    from sqlalchemy import inspect

    from eventlog.sql.dialect import dialect_of

    if schema is None or not dialect_of(engine).schemas:
        return
    known = inspect(engine).get_schema_names()
    if schema not in known:
        raise ConfigError(
            f"source.schema is {schema}, and the database has no such schema.", hint=did_you_mean(schema, known)
        )
    yield ok("schema", f"{schema} is there")


def _connected(config: Config) -> tuple[Engine | None, Point]:
    from sqlalchemy.exc import SQLAlchemyError

    from eventlog.sql.connect import connect, in_words, shown_url

    try:
        engine = connect(config.source.url)
    except EventlogError as error:
        return None, failure("connection", error)
    try:
        with engine.connect():
            return engine, ok("connection", shown_url(engine.url))
    except EventlogError as error:  # the driver lacks something for the login
        engine.dispose()
        return None, failure("connection", error)
    except SQLAlchemyError as error:
        engine.dispose()
        return None, failure("connection", in_words(error, "The database cannot be reached"))
