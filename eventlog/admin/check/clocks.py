"""The point about the times of an adopted log: whether its newest rows are of the clock that configuration says."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from eventlog.admin.check.point import Point, ok, warning
from eventlog.core.rules.times import moment
from eventlog.sql.clocks import offset_name
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import ColumnClause, Connection, Engine

    from eventlog.sql.names import LogNames

NEWEST_ROWS: Final = 20
"""Rows that are looked at."""
NEAR_SECONDS: Final = 120.0
"""A row that is so near to the clock was written just now; and so near must it be to another zone's time to be of that."""
STEP_SECONDS: Final = 900.0
"""Offsets of time zones are quarters of an hour."""
MOST_SECONDS: Final = 50_400.0
"""No zone is further from UTC than 14 hours."""


def time_points(engine: Engine, names: LogNames, *, future: bool) -> Iterator[Point]:
    """What the newest rows say of the clock of their writers; `future` says that rows may be for later on purpose."""
    log = Log(engine, names)
    with log.transaction() as connection:
        now = log.now(connection)
        times = [log.utc(time) for time in newest_times(connection, names)]
    known = [found for time in times if time is not None and (found := moment(time)) is not None]
    if not known:
        yield ok("times", "no row says by which clock its writers go")
        return
    said = judged([(time - now).total_seconds() for time in known], future=future)
    if said is None:
        yield ok("times", f"the newest row is {_spoken((known[0] - now).total_seconds())} by the clock {names.clock}")
        return
    mend = 'Say whose time it is: source.clock = "database" or "Area/City"; with "utc" such rows are late or early.'
    yield warning("times", f"Of the newest rows {said}. source.clock is {names.clock}.", mend)


def newest_times(connection: Connection, names: LogNames) -> list[dt.datetime | str | None]:
    """The times of the rows that were written last."""
    from sqlalchemy import column, select, table

    number: ColumnClause[int] = column(names.column("record_id"))
    time: ColumnClause[dt.datetime | str | None] = column(names.column("event_time"))
    log = table(names.table, number, time, schema=names.schema)
    return list(connection.execute(select(time).select_from(log).order_by(number.desc()).limit(NEWEST_ROWS)).scalars())


def judged(seconds: Sequence[float], *, future: bool) -> str | None:
    """What is odd about rows that are so far ahead of the clock, the newest first; None where nothing is."""
    if any(abs(one) <= NEAR_SECONDS for one in seconds):
        return None
    steps = [round(one / STEP_SECONDS) * STEP_SECONDS for one in seconds]
    near = [step for one, step in zip(seconds, steps, strict=True) if step and abs(one - step) <= NEAR_SECONDS]
    if near and abs(near[0]) <= MOST_SECONDS:
        other = f"{_spoken(near[0])}, as if their offset from the clock that is meant were {offset_name(near[0])}"
        return f"one is {other}"
    if seconds[0] > 0 and not future:
        return f"the last is {_spoken(seconds[0])}"
    return None


def _spoken(seconds: float) -> str:
    side = "ahead of the server's clock" if seconds > 0 else "behind the server's clock"
    return f"{dt.timedelta(seconds=round(abs(seconds)))} {side}"
