"""Where a session must begin that goes on behind a captured stream. Does no I/O."""

from __future__ import annotations

from struct import Struct as Binary

from msgspec import Struct

from eventlog.core.plural import counted
from eventlog.sources.gbase.records import COMMON_BYTES, ROWS, CdcRecord, RecordFrame, place_of
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.stream.transactions import Transactions

_transaction = Binary(">QI").unpack_from


class RestartPoint(Struct, frozen=True, kw_only=True):
    """What a session is activated with so that nothing is lost; what was committed up to `done` comes once more."""

    begin: int
    done: int | None
    open: int

    @property
    def text(self) -> str:
        """The sentence that is printed."""
        told = f"A restart begins at {place_of(self.begin)} ({self.begin}), "
        if not self.open:
            return f"{told}the last commit: no transaction is open."
        told += f"where the earliest of {counted(self.open, 'open transaction')} began"
        return f"{told}; what was committed up to {place_of(self.done)} is done." if self.done else f"{told}."


class Restart:
    """Follows the transactions of a stream by the rules of its reader."""

    def __init__(self, settings: GBaseSettings) -> None:
        self._orphans = settings.orphans == "open"
        self._open: Transactions[None] = Transactions(None, 0)
        self._done: int | None = None

    def take(self, frame: RecordFrame) -> None:
        """Takes the next record."""
        number = frame.number
        known = number in ROWS or number in (CdcRecord.BEGINTX, CdcRecord.COMMTX, CdcRecord.RBTX, CdcRecord.TRUNCATE)
        if not known:
            return
        seq, tx = _transaction(frame.data, COMMON_BYTES)
        if number == CdcRecord.BEGINTX:
            self._open.begin(tx, seq)
        elif number == CdcRecord.COMMTX:
            self._open.commit(tx, seq)
            self._done = seq
        elif number == CdcRecord.RBTX:
            self._open.rollback(tx)
        elif self._orphans and tx not in self._open:
            self._open.begin(tx, seq)

    @property
    def point(self) -> RestartPoint | None:
        """Where a restart begins; None when the stream has neither an open transaction nor a commit."""
        begin = self._open.open or self._done
        return RestartPoint(begin=begin, done=self._done, open=len(self._open)) if begin is not None else None
