"""Records become committed transactions: each row waits, as its bytes, until its transaction
commits. Does no I/O.

What the server says in between, also its errors, is put in words.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from struct import Struct as Binary
from typing import Final

from msgspec import Struct

from eventlog.core.errors import DamageError, DataError, SourceError, shorten
from eventlog.sources.gbase.codes import in_words
from eventlog.sources.gbase.layout import CapturedLayout, read_layout
from eventlog.sources.gbase.records import ROWS, CdcRecord, RecordFrame
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.stream.transactions import SpillFactory, Transactions

Item = tuple[int, int, int, RecordFrame]
"""A held record: how many layouts were known when it came, its sequence number, its label, and
itself.
"""
# What these records have behind their common header (gbase-cdc.md 2), as far as it is read.
_row = Binary(">QIi").unpack_from
_begin = Binary(">QIqI").unpack_from
_commit = Binary(">QIq").unpack_from
_end = Binary(">QI").unpack_from
_error = Binary(">Ii").unpack_from
OVERHEAD_BYTES: Final = 250
"""Bytes that a held record takes beside its own."""


class CommittedRecords(Struct, frozen=True, kw_only=True):
    """A committed transaction: where its commit stands, when it was, who did it, and what it did.

    `open` is where the earliest transaction began that was still open then, `since` the earliest
    with this one.
    """

    seq: int
    time: dt.datetime | None
    user: int | None
    open: int | None
    since: int | None
    items: Iterator[Item]


class RecordReader:
    """Takes the records of one stream in their order and gives its transactions in the order of
    their commits.

    Layouts are never forgotten, since a row may be read long after its table was described anew;
    `layouts` holds them in the order in which they came, and in the place of one that could not be
    read, why. `lose` hears of records that are left out although they may have said something, and
    of how many.
    """

    def __init__(
        self,
        settings: GBaseSettings,
        report: Callable[[str], None] = lambda _: None,
        spill: SpillFactory[Item] | None = None,
        lose: Callable[[int], None] = lambda _: None,
        *,
        live: bool = False,
    ) -> None:
        self.layouts: list[CapturedLayout | str] = []
        self.labels: list[int] = []
        """The label of each layout."""
        self.met: Counter[int] = Counter()
        """How many records of each number came, but for rows."""
        self.transactions = Transactions(
            spill, settings.memory << 20, report=report, lose=lose, orphans=settings.orphans == "open"
        )
        self._settings = settings
        self._report = report
        self._lose = lose
        self._users: dict[int, int] = {}
        self._latest: dict[int, bytes] = {}
        self._live = live
        self._error: DamageError | None = None
        """What the server said in the last record, if that is an error."""

    def read(self, frames: Iterable[RecordFrame]) -> Iterator[CommittedRecords]:
        """Yield the transactions committed by the records.

        SourceError if the server ended the session, DamageError in a stored stream.
        """
        # In local names, and without a call for each row: all rows of a stream come by here.
        row, rows = _row, ROWS
        # How many layouts there are when a row comes; it is read by one of those, however late that
        # is.
        generation = len(self.layouts)
        held: list[tuple[int, Item]] = []
        met, weight = 0, 0
        for frame in frames:
            number = frame.number
            if number in rows:
                data = frame.data
                seq, tx, label = row(data, 16)
                # Rows come in runs of one transaction, and are handed on in such runs.
                if tx != met and held:
                    self.transactions.extend(met, held, weight)
                    held, weight = [], 0
                met = tx
                weight += len(data) + OVERHEAD_BYTES
                held.append((seq, (generation, seq, label, frame)))
                continue
            if held:
                self.transactions.extend(met, held, weight)
                held, weight = [], 0
            if number == CdcRecord.COMMTX:
                yield self._read_commit(frame)
            else:
                self._other(frame)
                generation = len(self.layouts)
            self._error = self._error if number == CdcRecord.ERROR else None
        if held:
            self.transactions.extend(met, held, weight)
            self._error = None

    def refuse_error_at_end(self) -> None:
        """Raise DamageError where a stream that was kept ends with an error of the server."""
        if self._error is not None:
            raise self._error

    def _read_commit(self, frame: RecordFrame) -> CommittedRecords:
        seq, tx, seconds = _commit(frame.data, 16)
        # Before the commit, which ends this one too.
        since = self.transactions.open
        items = self.transactions.commit(tx, seq)
        user = self._users.pop(tx, None)
        left = self.transactions.open
        return CommittedRecords(
            seq=seq,
            time=_moment(seconds),
            user=user,
            open=left,
            since=since,
            items=items,
        )

    def _other(self, frame: RecordFrame) -> None:
        self.met[frame.number] += 1
        match frame.number:
            case CdcRecord.BEGINTX:
                seq, tx, _, user = _begin(frame.data, 16)
                self.transactions.begin(tx, seq)
                self._users[tx] = user
            case CdcRecord.RBTX:
                _, tx = _end(frame.data, 16)
                self.transactions.rollback(tx)
                self._users.pop(tx, None)
            # The transaction goes on without what it did from here, as after a savepoint (gbase-
            # cdc.md 2).
            case CdcRecord.DISCARD:
                seq, tx = _end(frame.data, 16)
                self.transactions.discard(tx, seq)
            case CdcRecord.TRUNCATE:
                seq, tx, label = _row(frame.data, 16)
                # It waits for its transaction's end as rows do, among which it has its place.
                item = (len(self.layouts), seq, label, frame)
                self.transactions.add(tx, seq, item, OVERHEAD_BYTES)
            case CdcRecord.TABSCHEM:
                self._read_description(frame)
            case CdcRecord.TIMEOUT:
                pass  # that it came is all that it says
            case CdcRecord.ERROR:
                self._read_error(frame)
            case _:
                self._unknown(frame)

    def _read_description(self, frame: RecordFrame) -> None:
        """Read a table's description; it applies to the rows from here on."""
        label = int.from_bytes(frame.data[16:20], "big", signed=True)
        if self._latest.get(label) == frame.data:
            return  # a session that began anew
        self._latest[label] = frame.data
        try:
            self.layouts.append(read_layout(frame.data, frame.header_size))
        except DataError as error:
            if self._settings.unknown_rows == "fail":
                raise DamageError(str(error).rstrip("."), offset=frame.offset) from None
            self._report(f"Byte {frame.offset}: {error}")
            # The reason stands in the layout's place, so that numbers of layouts stay right.
            self.layouts.append(str(error))
        self.labels.append(label)

    def _unknown(self, frame: RecordFrame) -> None:
        if self._settings.unknown_rows == "fail":
            raise DamageError(f"record number {frame.number} is not known", offset=frame.offset)
        unknown = f"record number {frame.number} is not known"
        self._report(f"Byte {frame.offset}: {unknown} and is left out.")
        self._lose(1)

    def _read_error(self, frame: RecordFrame) -> None:
        flags, code = _error(frame.data, 16)
        said = f"the server says {in_words(code)}"
        if frame.payload:
            text = frame.payload.rstrip(b"\0").decode("utf-8", "replace")
            said += f" It adds: {shorten(text)!r}."
        # Flag 1: the session is no longer valid (gbase-cdc.md 2).
        is_over = bool(flags & 1)
        if is_over and self._live:
            raise SourceError(f"Byte {frame.offset}: {said} It has ended the session.")
        end = "It has ended the session" if is_over else "The stream ends with that"
        self._error = DamageError(f"{said} {end}", offset=frame.offset)
        if is_over:
            raise self._error
        self._report(f"Byte {frame.offset}: {said}")


def _moment(seconds: int) -> dt.datetime | None:
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC).replace(tzinfo=None)
    # A damaged time is no reason to lose the rows of its transaction.
    except (ValueError, OverflowError, OSError):
        return None
