"""Measures the backlog now and then, for those who watch."""

from __future__ import annotations

from time import monotonic
from typing import Final

from msgspec.structs import replace

from eventlog.daemon.vitals import PublisherHealth
from eventlog.delivery.output import failing
from eventlog.sources.log.flow import Polling, read_flow
from eventlog.sql.log import Log

MEASURE_SECONDS: Final = 15.0
"""Seconds between two measurements: counting reads the index of the rows that wait."""

PART: Final = 50
"""Measuring that takes long, because rows are held, is done seldom: it takes a fiftieth of the time at most."""


class Gauge:
    """Counts what waits when somebody watches, and not too often."""

    def __init__(self, log: Log, settings: Polling) -> None:
        self._log = log
        self._settings = settings
        self._next = 0.0

    def measure(self, vitals: PublisherHealth) -> None:
        """Takes the figures if they are old."""
        if not vitals.watched or monotonic() < self._next:
            return
        began, known = monotonic(), vitals.reading()
        with self._log.transaction() as connection:
            found, _ = read_flow(connection, self._log, self._settings, failing=failing(known.outputs))
        vitals.measured(replace(found, tracked=None if known.triggers is None else any(known.triggers.values())))
        self._next = monotonic() + max(MEASURE_SECONDS, PART * (monotonic() - began))
