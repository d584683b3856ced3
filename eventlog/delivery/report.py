"""What became of rows in one turn of an output, or of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

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
    for report in reports:
        statuses.update(report.statuses)
        tables.update(report.tables)
    times = [report.later for report in reports if report.later is not None]
    return Report(
        events=sum(report.events for report in reports),
        changes=sum(report.changes for report in reports),
        documents=sum(report.documents for report in reports),
        statuses=statuses,
        tables=tables,
        later=min(times, default=None),
        loopback=sum(report.loopback for report in reports),
        unread={table: why for report in reports for table, why in report.unread.items()},
        readable=[table for report in reports for table in report.readable],
        moved=any(report.moved for report in reports),
        ended=next((report.ended for report in reports if report.ended is not None), None),
        seconds=sum(report.seconds for report in reports),
    )
