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


def join_reports(reports: Sequence[Report]) -> Report:
    """Join the reports of several turns."""
    if len(reports) == 1:
        return reports[0]
    statuses, tables = Counter[Status](), Counter[str]()
    events = changes = documents = loopback = 0
    unread: dict[str, Unreadable] = {}
    readable: list[str] = []
    moved, ended, later, seconds = False, None, inf, 0.0
    for report in reports:
        events += report.events
        changes += report.changes
        documents += report.documents
        loopback += report.loopback
        statuses.update(report.statuses)
        tables.update(report.tables)
        unread.update(report.unread)
        readable.extend(report.readable)
        moved, ended = moved or report.moved, ended or report.ended
        later = min(later, inf if report.later is None else report.later)
        seconds += report.seconds
    return Report(
        events=events,
        changes=changes,
        documents=documents,
        statuses=statuses,
        tables=tables,
        later=None if later == inf else later,
        loopback=loopback,
        unread=unread,
        readable=readable,
        moved=moved,
        ended=ended,
        seconds=seconds,
    )
