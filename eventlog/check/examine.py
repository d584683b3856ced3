"""All points of a check, in the order in which they build on each other."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from sqlalchemy import Engine

from eventlog.check.log import log_points
from eventlog.check.mappings import mapping_points
from eventlog.check.outputs import finding_points, output_points
from eventlog.check.plugins import plugin_points
from eventlog.check.point import Point, failure, ok, points, warning
from eventlog.check.server import local_time, server_points
from eventlog.config.build import policies_of, source_order, step_needs_of
from eventlog.config.settings import LOG, Config
from eventlog.config.weak_secrets import MEND, WEAK, find_secrets
from eventlog.core.errors import ConfigError, EventlogError
from eventlog.core.plural import count_words
from eventlog.core.registry import source_named


def check(
    read: Callable[[], Config],
    clock: Callable[[], dt.datetime] | None = None,
) -> Iterator[Point]:
    """Yield every point in the order they build on each other; points needing a failed part are
    left out.

    `clock` is this machine's time in UTC.
    """
    try:
        config = read()
    except EventlogError as error:
        yield failure("configuration", error)
        return
    source = config.source
    if source.kind == LOG and not source.url:
        missing = ConfigError("No database is named.", hint="Use --database URL or --config FILE.")
        yield failure("configuration", missing)
    else:
        what = f"log {source.log}" if source.kind == LOG else f"source {source.kind}"
        # Without an output there is one: standard output.
        yield ok("configuration", f"{count_words(len(config.output) or 1, 'output')}, {what}")
        for setting in find_secrets(config).weak:
            yield warning("configuration", f"{setting}: {WEAK}", MEND)
        if source.kind == LOG:
            yield from _database_points(config, clock or local_time)
        else:
            yield from points("source", lambda: _source(config))
    yield from output_points(config)
    yield from plugin_points(config)


def _source(config: Config) -> Iterator[Point]:
    """Yield the findings of the source's plug-in."""
    kind = config.source.kind
    check_it = source_named(kind).check
    if check_it is None:
        yield ok("source", f"the source {kind} has nothing to try")
    else:
        yield from finding_points("source", check_it(source_order(config, None, lambda _odd: None)))


def _database_points(config: Config, clock: Callable[[], dt.datetime]) -> Iterator[Point]:
    from sqlalchemy.exc import SQLAlchemyError

    from eventlog.sql.access import in_words
    from eventlog.sql.connect import connect, make_readable_url

    try:
        engine = connect(config.source.url)
    except EventlogError as error:
        yield failure("connection", error)
        return
    try:
        # An engine connects to nothing until it is asked to.
        engine.connect().close()
    except EventlogError as error:  # the driver lacks something for the login
        engine.dispose()
        yield failure("connection", error)
        return
    except SQLAlchemyError as error:
        engine.dispose()
        yield failure("connection", in_words(error, "The database cannot be reached"))
        return
    yield ok("connection", make_readable_url(engine.url))
    try:
        yield from points("server", lambda: server_points(engine, clock))
        yield from points("schema", lambda: _schema(engine, config.source.schema))
        yield from points("log", lambda: log_points(engine, config.source.wanted_names, config))
        yield from points("policies", lambda: _policies(engine, config))
        yield from points("mapping", lambda: mapping_points(engine, config))
    finally:
        engine.dispose()


def _policies(engine: Engine, config: Config) -> Iterator[Point]:
    """Check that tables and attributes in policies exist; no point without policies."""
    from eventlog.config.build import catalog_of

    policies = policies_of(config)
    if policies and config.source.kind == "log":
        step_needs_of(config, catalog_of(engine, config.source.wanted_names, config)).check()
        yield ok("policies", f"all is there that the policies of {count_words(len(policies), 'output')} name")


def _schema(engine: Engine, schema: str | None) -> Iterator[Point]:
    """Check that the schema of captured tables exists; no point if none is named."""
    from eventlog.sql.reflect import refuse_unknown_schema

    if schema is not None and refuse_unknown_schema(engine, schema):
        yield ok("schema", f"{schema} is there")
