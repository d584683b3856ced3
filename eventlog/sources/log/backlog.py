"""What a log holds: how many rows carry each letter.

How fast rows were settled of late: counts of a few seconds each, in a mark that is written now and
then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from eventlog.core.model import Status
from eventlog.sql.log import Log

_letters = {status.value: status for status in Status}


class Backlog(Struct, frozen=True, kw_only=True):
    """Rows by status; `other` are letters that the publisher neither reads nor writes, such as 'n'
    or 'X'.
    """

    by_status: Mapping[Status, int]
    other: Mapping[str, int]

    @property
    def waiting(self) -> int:
        return self.by_status[Status.NEW]


def backlog(log: Log) -> Backlog:
    """Counts the log as it is now; reads every row, so it is for people and not for every cycle."""
    with log.transaction() as connection:
        counts = log.rows(connection, log.query("count_by_status"))
    by_status = dict.fromkeys(Status, 0)
    other: dict[str, int] = {}
    for letter, count in counts:
        if letter in _letters:
            by_status[_letters[letter]] = count
        else:
            other["NULL" if letter is None else str(letter)] = count
    return Backlog(by_status=by_status, other=other)


WINDOW_SECONDS: Final = 60
"""Seconds of which the rate speaks."""

STEP_SECONDS: Final = 5
"""Seconds that are counted together."""

Pace = tuple[tuple[int, int], ...]
"""When a stretch of time began, in seconds since 1970 by the database's clock, and the rows settled
in it.
"""


class Rate(Struct, frozen=True, kw_only=True):
    """Rows that were settled in the last seconds."""

    rows: int
    seconds: int
    per_second: float


def quickened(pace: Pace, rows: int, now: float) -> Pace:
    """The counts with rows that were settled now, and without those that are too old to be spoken
    of.
    """
    step = int(now) // STEP_SECONDS * STEP_SECONDS
    counts = dict(_recent(pace, now))
    counts[step] = counts.get(step, 0) + rows
    return tuple(sorted(counts.items()))


def rate(pace: Pace, now: float) -> Rate:
    """How many rows the counts have for the time until now."""
    settled = sum(rows for _, rows in _recent(pace, now))
    return Rate(rows=settled, seconds=WINDOW_SECONDS, per_second=settled / WINDOW_SECONDS)


def _recent(pace: Pace, now: float) -> Iterator[tuple[int, int]]:
    """The counts of the window; a clock that was set back has counts ahead of it, which count for
    nothing.
    """
    return ((begin, rows) for begin, rows in pace if now - WINDOW_SECONDS < begin <= now)
