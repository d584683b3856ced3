"""What became of rows in one turn of an output, or of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf

from msgspec import Struct

from eventlog.core.model import Status, Unreadable


class Report(Struct, frozen=True, kw_only=True):
    """What was done. `events` and `changes` count what no output had taken before."""

    events: int = 0
    changes: int = 0
    documents: int = 0
    statuses: Mapping[Status, int] = {}
    """How many rows got which status."""
    tables: Mapping[str, int] = {}
    """Rows that got their status, by the table that they name."""
    later: float | None = None
    """In how many seconds rows come that wait for another attempt."""
    loopback: int = 0
    """Events that the publisher's own user made, which are not published."""
    unread: Mapping[str, Unreadable] = {}
    """Tables that cannot be read since this turn, each with the reason."""
    readable: Sequence[str] = ()
    """Tables that can be read again."""
    moved: bool = False
    """Something was done, so that there may be more to do."""
    took_all: bool = False
    """Nothing was left to be published when its rows were read."""
    ended: Status | None = None
    """Nothing more may be sent: a receiver has said so, or an error ends all."""
    seconds: float = 0.0
    """How long it took."""
    paused: bool = False
    """Somebody has paused the output."""

    @property
    def fatal(self) -> bool:
        return Status.FATAL in self.statuses or self.ended is Status.FATAL

    @property
    def errors(self) -> int:
        return self.statuses.get(Status.ERROR, 0)

    @property
    def finished(self) -> int:
        """Count events that will not come again."""
        return sum(self.statuses.values()) - self.statuses.get(Status.NEW, 0)

    def join(self, other: Report) -> Report:
        """Join it with the report of another turn."""
        later = min(inf if self.later is None else self.later, inf if other.later is None else other.later)
        return Report(
            events=self.events + other.events,
            changes=self.changes + other.changes,
            documents=self.documents + other.documents,
            statuses=Counter(self.statuses) + Counter(other.statuses),
            tables=Counter(self.tables) + Counter(other.tables),
            later=None if later == inf else later,
            loopback=self.loopback + other.loopback,
            unread={**self.unread, **other.unread},
            readable=[*self.readable, *other.readable],
            moved=self.moved or other.moved,
            ended=self.ended or other.ended,
            seconds=self.seconds + other.seconds,
        )
