"""The point about owners: whose code could run with whose rights, because a database lets the owner of a table bring some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eventlog.admin.check.findings import findings
from eventlog.admin.check.point import Point
from eventlog.config.settings import Config
from eventlog.sql.connect import read_url
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames
from eventlog.sql.triggers.track import with_schema

if TYPE_CHECKING:
    from sqlalchemy import Engine


def owner_points(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    """What trust remains in owners of captured tables and of the log."""
    with engine.connect() as connection:
        log = with_schema(connection, names)
    reader = config.source.reader
    known = {
        "log": dialect_of(engine).qualified(log.schema, log.table),
        "log_name": log.whole,
        "reader": (read_url(reader).username or "") if reader else "",
    }
    nothing = "no owner of a captured table could have code run with more rights than theirs"
    yield from findings(engine, "owners", "owner_states", nothing, known)
