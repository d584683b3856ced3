"""The point about the log's numbers: they are the order of an object's changes, unless sessions keep some in hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eventlog.admin.check.findings import findings
from eventlog.admin.check.point import Point, ok
from eventlog.config.settings import Config
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames

if TYPE_CHECKING:
    from sqlalchemy import Engine


def number_points(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    """Whether a later change of an object may get a lower number; where times order the log, nobody asks."""
    if config.publisher.handle_future_events:
        yield ok("numbers", "changes are ordered by their times")
        return
    known = {
        "log": dialect_of(engine).qualified(names.schema, names.table),
        "log_schema": names.schema,
        "log_table": names.table,
        "record_id": names.column("record_id"),
        "log_sequence": config.source.sequence,
    }
    nothing = "no cache of numbers is known that would give a later change of an object a lower one"
    yield from findings(engine, "numbers", "numbers", nothing, known)
