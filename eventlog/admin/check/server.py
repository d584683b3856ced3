"""Points about the server: its version, whether it writes, its clock, and transactions that stay open."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from eventlog.admin.check.findings import asked, findings
from eventlog.admin.check.point import Point, ok, points, warning
from eventlog.core.rules.times import moment
from eventlog.sql.access import fetched, transaction
from eventlog.sql.dialect import Dialect, dialect_of
from eventlog.sql.queries import statement

if TYPE_CHECKING:
    from sqlalchemy import Engine

SKEW_SECONDS: Final = 1.0
"""Seconds; more than a network makes of clocks that somebody sets."""
LONG_SECONDS: Final = 300
"""Seconds after which a transaction is one that somebody forgot."""


def local_time() -> dt.datetime:
    """The clock of this machine, in UTC as event_time is."""
    return dt.datetime.now(tz=dt.UTC).replace(tzinfo=None)


def server_points(engine: Engine, clock: Callable[[], dt.datetime], long: int = LONG_SECONDS) -> Iterator[Point]:
    """The points of one server."""
    yield from points("server", lambda: [_version(engine)])
    yield from findings(engine, "writing", "server_states", "the server writes, and triggers fire")
    yield from findings(
        engine, "tracking", "making_triggers", "no setting of the server keeps triggers from being made"
    )
    yield from points("clock", lambda: [_clock(engine, clock)])
    nothing = f"no transaction has been open for more than {long} s"
    yield from findings(engine, "transactions", "long_transactions", nothing, {"seconds": long})


def version_point(dialect: Dialect, version: tuple[int, ...], said: str) -> Point:
    """Whether the server is one that this version of eventlog was tried on."""
    if version >= dialect.oldest_server:
        return ok("server", said)
    oldest = ".".join(map(str, dialect.oldest_server))
    return warning("server", f"{said} is older than {oldest}, the oldest that eventlog is tested on.", "Upgrade it.")


def _version(engine: Engine) -> Point:
    said = asked(engine, "server_version")[0][0]
    version = tuple(part for part in engine.dialect.server_version_info or () if isinstance(part, int))
    return version_point(dialect_of(engine), version, str(said))


def _clock(engine: Engine, clock: Callable[[], dt.datetime]) -> Point:
    before = clock()
    with transaction(engine, "The database's clock") as connection:
        theirs = moment(fetched(connection, statement(dialect_of(engine), "clock"))[0][0])
    ours = before + (clock() - before) / 2
    skew = 0.0 if theirs is None else (ours - theirs).total_seconds()
    if abs(skew) <= SKEW_SECONDS:
        return ok("clock", f"the database's clock and this machine's are {abs(skew):.1f} s apart")
    side = "behind" if skew > 0 else "ahead of"
    said = f"The database's clock is {abs(skew):.1f} s {side} this machine's."
    return warning("clock", said, "Let both follow a time server; times in the log are the database's.")
