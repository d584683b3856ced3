"""The rows that were captured last, in memory: they are wanted soon, and to read them back costs as
much as to write them.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from eventlog.core.model import Event, Image
from eventlog.core.seams import Batch
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_FRESH_IMAGES: Final = 20_000
"""So many images are kept until they are published, of those that were captured last."""


class FreshRows:
    """Rows of a stream's log with consecutive numbers, and the images that they are."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._events: list[Event] = []
        self._weights: list[int] = []
        self._images: dict[int, tuple[Image, int]] = {}
        self._next = 0
        """Which of them nobody has asked for yet."""

    @property
    def is_full(self) -> bool:
        """Whether no more are to be kept."""
        return len(self._events) >= MOST_FRESH_IMAGES

    def add(self, event: Event, weight: int, image: Image, catalog: int) -> None:
        """Keeps one more row, whose value has so many characters."""
        self._events.append(event)
        self._weights.append(weight)
        self._images[event.position[0]] = image, catalog

    def image(self, number: int) -> tuple[Image, int] | None:
        """The image that a row is, and the number of its catalog; None where the row has to be read."""
        return self._images.get(number)

    def portion(self, connection: Connection, beyond: int, limit: int, room: int) -> Batch | None:
        """The rows that wait above a number: about `limit`, and none of the last one's transaction less.

        None where the database is to be asked.
        """
        events, start = self._events, self._next
        if start >= len(events):
            return None
        end = min(start + limit, len(events)) if limit > 0 else len(events)
        transaction = events[end - 1].transaction
        for event in islice(events, end, None):
            if event.transaction != transaction:
                break
            end += 1
        weight = sum(self._weights[start:end])
        if weight > room:
            return None
        first, last = events[start].position[0], events[end - 1].position[0]
        # Somebody may have taken rows away since, or set earlier ones back.
        if self._waiting(connection, beyond + 1, first - 1):
            return None
        if self._waiting(connection, first, last) < end - start:
            return None
        self._next = end
        return Batch(events=events[start:end], weight=weight)

    def _waiting(self, connection: Connection, first: int, last: int) -> int:
        """How many rows wait from one number to another."""
        counted = self._log.rows(connection, self._log.query("count_between"), {"first": first, "last": last})
        return int(counted[0][0])
