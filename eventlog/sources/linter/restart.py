"""Where reading begins that goes on behind exported queue rows. Does no I/O."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from eventlog.core.plural import counted
from eventlog.sources.linter.operations import Action
from eventlog.sources.linter.rows import QueueRow, address

ENDS: Final = frozenset({Action.COMMIT, Action.ROLLBACK, Action.END})


class QueueRestart(Struct, frozen=True, kw_only=True):
    """Transactions that end at `begin` or later come; the rows of those that are open stand from `first` on."""

    begin: int
    open: int
    first: int | None

    @property
    def text(self) -> str:
        """The sentence that is printed."""
        told = f"A restart begins behind {address(self.begin - 1)} ({self.begin - 1}), where the last transaction ended"
        if self.begin == 0:
            told = "A restart begins at the beginning: no transaction has ended"
        if self.first is None:
            return f"{told}; none is open."
        return f"{told}; {counted(self.open, 'open transaction')} may go on, so the rows from {address(self.first)} ({self.first}) on are needed."


class FollowedQueue:
    """Follows the transactions of a queue by the rules of its reader."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], int] = {}
        self._begin = 0

    def take(self, row: QueueRow, action: Action | None) -> None:
        """Takes the next row; one whose action nobody knows says nothing."""
        tx = row.dbnode, row.transact_id
        if action in ENDS:
            self._open.pop(tx, None)
            self._begin = max(self._begin, row.syslog_addr + 1)
        elif action is not None:
            self._open[tx] = min(row.syslog_addr, self._open.get(tx, row.syslog_addr))

    @property
    def point(self) -> QueueRestart | None:
        """Where a restart begins; None when there were no rows that say it."""
        if not self._begin and not self._open:
            return None
        return QueueRestart(begin=self._begin, open=len(self._open), first=min(self._open.values(), default=None))
