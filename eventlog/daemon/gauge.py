"""Measures the backlog now and then, for those who watch."""

from __future__ import annotations

import datetime as dt
from time import monotonic
from typing import Final

from eventlog.core.rules.times import moment
from eventlog.daemon.vitals import PublisherHealth
from eventlog.sql.log import Log

MEASURE_SECONDS: Final = 15.0
"""Seconds between two measurements: counting reads the index of the rows that wait."""


class Gauge:
    """Counts what waits when somebody watches, and not too often."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._next = 0.0

    def measure(self, vitals: PublisherHealth) -> None:
        """Takes the figures if they are old."""
        if not vitals.watched or monotonic() < self._next:
            return
        self._next = monotonic() + MEASURE_SECONDS
        with self._log.transaction() as connection:
            waiting = self._log.rows(connection, self._log.query("count_waiting"))[0][0]
            oldest = self._log.rows(connection, self._log.query("oldest_waiting"))
            now = self._log.rows(connection, self._log.query("clock_now"))[0][0]
        vitals.measured(int(waiting), _age(self._log.utc(oldest[0][1]), now) if oldest else 0.0)


def _age(time: str | None, now: dt.datetime | str) -> float | None:
    since, until = moment(time) if time else None, moment(now)
    return None if since is None or until is None else max(0.0, (until - since).total_seconds())
