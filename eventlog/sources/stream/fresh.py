"""The rows that were captured last, in memory: they are wanted soon, and to read them back costs as
much as to write them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from eventlog.core.model import Event
from eventlog.core.schema import Catalog
from eventlog.sources.log.reading import LogSettings, Portion, Request, WaitingRows
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sources.stream.captured import StreamLog

MOST_FRESH_IMAGES: Final = 20_000
"""So many images are kept until they are published, of those that were captured last."""


MOST_FRESH_CHARACTERS: Final = 32_000_000
"""No more are kept once their texts have so many together."""


class FreshRows:
    """Rows of a stream's log with consecutive numbers."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._events: list[Event] = []
        self._weights: list[int] = []
        self._weight = 0

    @property
    def is_full(self) -> bool:
        """Return True if no more rows are kept."""
        return len(self._events) >= MOST_FRESH_IMAGES or self._weight >= MOST_FRESH_CHARACTERS

    def add(self, event: Event, weight: int) -> None:
        """Keeps one more row, whose values have so many characters."""
        self._events.append(event)
        self._weights.append(weight)
        self._weight += weight

    def portion(self, connection: Connection, beyond: int, limit: int, room: int) -> Portion | None:
        """Return about `limit` kept rows above a number, the last transaction whole.

        None if the database is to be asked.
        """
        if not self._events:
            return None
        # Somebody may have set an earlier row back, or has taken these already.
        run = {"first": beyond + 1, "last": self._events[-1].position[0], "limit": 1}
        numbers = self._log.rows(connection, self._log.query("unsealed_numbers"), run)
        if not numbers:
            return None
        first = int(numbers[0][0])
        start = first - self._events[0].position[0]
        if not 0 <= start < len(self._events):
            return None
        events = self._events[start : self._end(start, limit)]
        weight = sum(self._weights[start : start + len(events)])
        if weight > room:
            return None
        # Or has taken one of these away.
        run = {"first": first, "last": events[-1].position[0]}
        [(waiting,)] = self._log.rows(connection, self._log.query("count_between"), run)
        return Portion(rows=events, weight=weight, more=False, first=first) if waiting == len(events) else None

    def _end(self, start: int, limit: int) -> int:
        events = self._events
        if limit <= 0 or start + limit >= len(events):
            return len(events)
        end = start + limit
        transaction = events[end - 1].transaction
        while end < len(events) and events[end].transaction == transaction:
            end += 1
        return end


class CapturedRows(WaitingRows):
    """Reads the rows of a stream's log. Those that were captured just now are at hand."""

    def __init__(self, captured: StreamLog, catalog: Catalog | None, settings: LogSettings) -> None:
        super().__init__(captured.log, catalog, settings)
        self._captured = captured

    def next(self, connection: Connection, request: Request) -> Portion:
        if request.among in (None, "among_beyond"):
            beyond = int(str(request.bounds.get("beyond", 0)))
            fresh = self._captured.fresh.portion(connection, beyond, request.limit, request.room)
            if fresh is not None:
                return fresh
        return super().next(connection, request)
