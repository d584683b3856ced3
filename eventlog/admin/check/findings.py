"""Points that a query finds by itself: its rows are level, what was found, and what mends it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from eventlog.admin.check.point import Point, PointLevel, ok, points
from eventlog.core.errors import EX_CONFIG, EX_UNAVAILABLE
from eventlog.sql.access import fetched, transaction
from eventlog.sql.dialect import dialect_of
from eventlog.sql.queries import offers, statement

if TYPE_CHECKING:
    from sqlalchemy import Engine


def findings(
    engine: Engine, name: str, query: str, nothing: str, parameters: Mapping[str, Any] | None = None
) -> Iterator[Point]:
    """What a query of check.sql tells of, a line each; a database that has no such query has no such point."""
    if not offers(dialect_of(engine), query):
        return

    def found() -> Iterator[Point]:
        rows = asked(engine, query, parameters)
        for level, said, mend in rows:
            yield _point(name, PointLevel(level), str(said), str(mend))
        if not rows:
            yield ok(name, nothing)

    yield from points(name, found)


def _point(name: str, level: PointLevel, said: str, mend: str) -> Point:
    code = {PointLevel.FAILURE: EX_UNAVAILABLE if name == "writing" else EX_CONFIG}.get(level, 0)
    return Point(name=name, level=level, said=said, mend=mend, exit_code=code)


def asked(engine: Engine, query: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """What a query of check.sql finds."""
    from sqlalchemy import text

    with transaction(engine, "The server") as connection:
        return fetched(connection, text(statement(dialect_of(engine), query)), parameters)
