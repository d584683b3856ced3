"""The tasks that write a conversion's parts, or read all of its changes in their order: the same for every engine."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from eventlog.convert.plan import PartSpan, part_spans
from eventlog.convert.settings import Conversion
from eventlog.convert.stages import DecidedBucket, Write
from eventlog.convert.summaries import counted_changes, latest_before
from eventlog.core.schema import Table


class PartTasks(Struct, frozen=True, kw_only=True):
    """What they share: the decided changes, the tables of a stream by their numbers, and the folders."""

    conversion: Conversion
    decided: tuple[DecidedBucket, ...]
    tables: dict[int, Table] | None
    folder: str
    staged: str

    def each(self) -> Iterator[Write]:
        """The tasks that write all parts, each some whole ones."""
        spans = part_spans(counted_changes(self.decided), self.conversion.part_events)
        return (self._task(number, span) for number, span in enumerate(spans))

    def whole(self) -> Write:
        """All changes as one task."""
        changes = counted_changes(self.decided)
        return self._task(0, PartSpan(first=0, last=changes.total(), range=min(changes, default=0), skipped=0))

    def _task(self, number: int, span: PartSpan) -> Write:
        return Write(
            name=f"parts-{number:06d}",
            conversion=self.conversion,
            rendered=tuple(one.rendered for one in self.decided),
            first=span.first,
            last=span.last,
            range=span.range,
            skipped=span.skipped,
            stamp=latest_before(self.decided, span.range),
            tables=self.tables,
            folder=self.folder,
            staged=self.staged,
        )
