"""Says whether a publisher could work here: configuration, database, log, triggers, outputs; changes nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from sqlalchemy import Engine

from eventlog.admin.check.log import log_points
from eventlog.admin.check.outputs import output_points
from eventlog.admin.check.point import Point, PointLevel, failure, ok, points, warning
from eventlog.admin.check.server import local_time, server_points
from eventlog.admin.policies import policies_of
from eventlog.config.policies import checked_needs
from eventlog.config.settings import Config
from eventlog.config.weak_secrets import MEND, WEAK, known_secrets
from eventlog.core.errors import ConfigError, EventlogError, MachineError
from eventlog.core.plural import counted
from eventlog.core.suggest import did_you_mean

__all__ = ["Point", "PointLevel", "check"]
REFUSED = "Waiting will not help: see to user, password and database in the URL, and to who may connect."
SILENT = "See that the server runs and takes connections there."


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


def _database_points(config: Config, clock: Callable[[], dt.datetime]) -> Iterator[Point]:
    engine, found = _connected(config)
    yield found
    if engine is None:
        return
    try:
        yield from points("server", lambda: server_points(engine, clock))
        yield from points("schema", lambda: _schema(engine, config.source.schema))
        yield from points("log", lambda: log_points(engine, config.source.wanted_names, config))
        yield from points("policies", lambda: _policies(engine, config))
        yield from points("notes", lambda: _notes(engine, config))
    finally:
        engine.dispose()


def _policies(engine: Engine, config: Config) -> Iterator[Point]:
    """Whether the tables and attributes are there that policies name; nothing where there is no policy."""
    from eventlog.config.build import catalog_of

    found = policies_of(config)
    if found and config.source.kind == "log":
        checked_needs(found, catalog_of(engine, config.source.wanted_names, config))
        yield ok("policies", f"all is there that the policies of {counted(len(found), 'output')} name")


def _notes(engine: Engine, config: Config) -> Iterator[Point]:
    """Whether the batch in hand has notes of outputs that there are no more; nothing where all is known."""
    from sqlalchemy.exc import SQLAlchemyError

    from eventlog.config.build import former_names_of, name_of
    from eventlog.sources.marks import Marks, notes_of
    from eventlog.sql.log import Log

    log = Log(engine, config.source.wanted_names)
    try:
        with log.transaction() as connection:
            notes = notes_of(Marks(log).all(connection))
    except (EventlogError, SQLAlchemyError):  # the points about the log say what is wrong with it
        return
    known = {name for output in config.output for name in (name_of(output), *former_names_of(output))}
    gone = sorted(notes.keys() - known - {"decided"})
    if gone and config.output:
        said = f"A batch is on its way to {gone[0]}, and no output is called so. Another one gets all of it again."
        mend = f'If one was renamed, give it former_names = ["{gone[0]}"], and it goes on where that was.'
        yield warning("notes", said, mend)


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
        told = in_words(error, "The database cannot be reached")
        told.hint = REFUSED if isinstance(told, MachineError) and not told.may_pass else SILENT
        return None, failure("connection", told)
