"""Points about the server: its version, whether it writes, its clock, and transactions that stay
open.

And about the times of an adopted log: whether its newest rows are of the clock that configuration
says.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from sqlalchemy import Engine

from eventlog.check.point import Point, ask_query, findings, ok, points, warning
from eventlog.core.times import moment
from eventlog.sql.access import fetch, transaction
from eventlog.sql.clocks import offset_name
from eventlog.sql.dialect import Dialect, dialect_of, statement
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.sql.pooler import is_pooled

SKEW_SECONDS: Final = 1.0
"""Seconds; more than a network makes of clocks that somebody sets."""
LONG_SECONDS: Final = 300
"""Seconds after which a transaction is one that somebody forgot."""


def local_time() -> dt.datetime:
    """Return the clock of this machine, in UTC as event_time is."""
    return dt.datetime.now(tz=dt.UTC).replace(tzinfo=None)


def server_points(
    engine: Engine,
    clock: Callable[[], dt.datetime],
    long: int = LONG_SECONDS,
) -> Iterator[Point]:
    yield from points("server", lambda: [_version(engine)])
    yield from points("pooler", lambda: _pooler(engine))
    yield from findings(engine, "writing", "server_states", "the server writes, and triggers fire")
    yield from findings(
        engine, "tracking", "making_triggers", "no setting of the server keeps triggers from being made"
    )
    yield from points("clock", lambda: [_clock(engine, clock)])
    yield from findings(engine, "durability", "durability", "the server keeps what it has acknowledged")
    nothing = f"no transaction has been open for more than {long} s"
    yield from findings(engine, "transactions", "long_transactions", nothing, {"seconds": long})


def _pooler(engine: Engine) -> Iterator[Point]:
    if is_pooled(engine):
        yield ok("pooler", "a pooler is between: each transaction has a session of its own, and NOTIFY wakes nobody")


def version_point(dialect: Dialect, version: tuple[int, ...], product: str) -> Point:
    """Check that this eventlog was tried on such a server version."""
    if version >= dialect.oldest_server:
        return ok("server", product)
    oldest = ".".join(map(str, dialect.oldest_server))
    return warning("server", f"{product} is older than {oldest}, the oldest that eventlog is tested on.", "Upgrade it.")


def _version(engine: Engine) -> Point:
    product = ask_query(engine, "server_version")[0][0]
    version = tuple(part for part in engine.dialect.server_version_info or () if isinstance(part, int))
    return version_point(dialect_of(engine), version, str(product))


def _clock(engine: Engine, clock: Callable[[], dt.datetime]) -> Point:
    before = clock()
    with transaction(engine, "The database's clock") as connection:
        theirs = moment(fetch(connection, statement(dialect_of(engine), "clock"))[0][0])
    # The question took time; the answer is most likely of the middle of it.
    ours = before + (clock() - before) / 2
    skew = 0.0 if theirs is None else (ours - theirs).total_seconds()
    if abs(skew) <= SKEW_SECONDS:
        return ok("clock", f"the database's clock and this machine's are {abs(skew):.1f} s apart")
    side = "behind" if skew > 0 else "ahead of"
    message = f"The database's clock is {abs(skew):.1f} s {side} this machine's."
    return warning("clock", message, "Let both follow a time server; times in the log are the database's.")


NEWEST_ROWS: Final = 20
"""Rows that are looked at: of those that were written while `check` was at work."""
NEAR_SECONDS: Final = 120.0
"""A row that is so near to the clock was written just now.

And so near must it be to another zone's time to be of that.
"""
STEP_SECONDS: Final = 900.0
"""Offsets of time zones are quarters of an hour."""
MOST_SECONDS: Final = 50_400.0
"""No zone is further from UTC than 14 hours."""


def time_points(engine: Engine, names: LogNames, beyond: int | None, *, future: bool) -> Iterator[Point]:
    """Check the clock of writers by rows written just now, `beyond` this number.

    The time of writing of older ones is unknown. `future` means that rows may be for later on purpose.
    """
    log = Log(engine, names)
    beyond = -(2**63) if beyond is None else beyond
    with log.transaction() as connection:
        now = log.now(connection)
        rows = log.rows(connection, log.query("times_beyond"), {"beyond": beyond, "limit": NEWEST_ROWS})
    times = [log.utc(time) for (time,) in rows]
    moments = [moment(time) for time in times if time is not None]
    known = [time for time in moments if time is not None]
    if not known:
        yield ok("times", "no row was written just now, which would show whose clock its time is by")
        return
    oddity = judge_clock([(time - now).total_seconds() for time in known], future=future)
    if oddity is None:
        yield ok(
            "times", f"the newest row is {_say_difference((known[0] - now).total_seconds())} by the clock {names.clock}"
        )
        return
    mend = 'Say whose time it is: source.clock = "database" or "Area/City"; with "utc" such rows are late or early.'
    yield warning("times", f"Of the newest rows {oddity}. source.clock is {names.clock}.", mend)


def judge_clock(seconds: Sequence[float], *, future: bool) -> str | None:
    """Explain rows too far ahead of the clock, newest first; None for a right clock."""
    if any(abs(ahead) <= NEAR_SECONDS for ahead in seconds):
        return None
    for ahead in seconds:
        step = round(ahead / STEP_SECONDS) * STEP_SECONDS
        if step and abs(ahead - step) <= NEAR_SECONDS:
            # The newest that lies a whole number of quarters of an hour away decides: older ones
            # are late anyway.
            if abs(step) <= MOST_SECONDS:
                offset = f"as if their offset from the clock that is meant were {offset_name(step)}"
                return f"one is {_say_difference(step)}, {offset}"
            break
    if seconds[0] > 0 and not future:
        return f"the last is {_say_difference(seconds[0])}"
    return None


def _say_difference(seconds: float) -> str:
    side = "ahead of" if seconds > 0 else "behind"
    return f"{dt.timedelta(seconds=round(abs(seconds)))} {side} the server's clock"
