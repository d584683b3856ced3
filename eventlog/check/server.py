"""Points about the server: its version, whether it writes, its clock, and transactions that stay open."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from eventlog.check.point import Level, Point, ok, points, warning
from eventlog.errors import EX_CONFIG, EX_UNAVAILABLE
from eventlog.rules.times import moment
from eventlog.sql.access import fetched, transaction
from eventlog.sql.dialect import Dialect, dialect_of
from eventlog.sql.queries import statement

if TYPE_CHECKING:
    from sqlalchemy import Engine

MOST_SKEW: Final = 1.0
"""Seconds; more than a network makes of clocks that somebody sets."""
LONG: Final = 300
"""Seconds after which a transaction is one that somebody forgot."""


def local_time() -> dt.datetime:
    """The clock of this machine, in UTC as event_time is."""
    return dt.datetime.now(tz=dt.UTC).replace(tzinfo=None)


def server_points(engine: Engine, clock: Callable[[], dt.datetime], long: int = LONG) -> Iterator[Point]:
    """The points of one server."""
    yield from points("server", lambda: [_version(engine)])
    yield from _told(engine, "writing", "server_states", "the server writes, and triggers fire")
    yield from points("clock", lambda: [_clock(engine, clock)])
    nothing = f"no transaction has been open for more than {long} s"
    yield from _told(engine, "transactions", "long_transactions", nothing, {"seconds": long})


def version_point(dialect: Dialect, version: tuple[int, ...], said: str) -> Point:
    """Whether the server is one that this version of eventlog was tried on."""
    if version >= dialect.oldest_server:
        return ok("server", said)
    oldest = ".".join(map(str, dialect.oldest_server))
    return warning("server", f"{said} is older than {oldest}, the oldest that eventlog is tested on.", "Upgrade it.")


def _version(engine: Engine) -> Point:
    said = _ask(engine, "server_version")[0][0]
    version = tuple(part for part in engine.dialect.server_version_info or () if isinstance(part, int))
    return version_point(dialect_of(engine), version, str(said))


def _clock(engine: Engine, clock: Callable[[], dt.datetime]) -> Point:
    before = clock()
    with transaction(engine, "The database's clock") as connection:
        theirs = moment(fetched(connection, statement(dialect_of(engine), "clock"))[0][0])
    ours = before + (clock() - before) / 2
    skew = 0.0 if theirs is None else (ours - theirs).total_seconds()
    if abs(skew) <= MOST_SKEW:
        return ok("clock", f"the database's clock and this machine's are {abs(skew):.1f} s apart")
    side = "behind" if skew > 0 else "ahead of"
    said = f"The database's clock is {abs(skew):.1f} s {side} this machine's."
    return warning("clock", said, "Let both follow a time server; times in the log are the database's.")


def _told(
    engine: Engine, name: str, query: str, nothing: str, parameters: Mapping[str, Any] | None = None
) -> Iterator[Point]:
    """What a query tells of, a line each; a database that has no such query has no such point."""
    if not statement(dialect_of(engine), query):
        return

    def found() -> Iterator[Point]:
        rows = _ask(engine, query, parameters)
        for level, said, mend in rows:
            yield _point(name, Level(level), str(said), str(mend))
        if not rows:
            yield ok(name, nothing)

    yield from points(name, found)


def _point(name: str, level: Level, said: str, mend: str) -> Point:
    code = {Level.FAILURE: EX_UNAVAILABLE if name == "writing" else EX_CONFIG}.get(level, 0)
    return Point(name=name, level=level, said=said, mend=mend, exit_code=code)


def _ask(engine: Engine, query: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """What a query of check.sql finds."""
    from sqlalchemy import text

    with transaction(engine, "The server") as connection:
        return fetched(connection, text(statement(dialect_of(engine), query)), parameters)
