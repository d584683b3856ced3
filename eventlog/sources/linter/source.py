"""The LINTER source: the images of a queue's committed transactions, for the one source of streams.

The queue itself is the memory: a transaction is read when its end is there, from its first row on,
so that nothing is kept of those that are open. Places are addresses in the system log at which
transactions end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from eventlog.core.model import Captured, Image
from eventlog.core.schema import Catalog
from eventlog.sources.linter.images import ROW_BYTES, CommittedRows, Report
from eventlog.sources.linter.queue import Queue, QueueSession
from eventlog.sources.linter.rows import QueueRow
from eventlog.sources.linter.settings import LinterSettings
from eventlog.sources.stream.source import (
    StreamPiece,
)
from eventlog.sources.stream.spill import spill_to

ENDING_ROWS: Final = 256
"""Transactions that are read with one question, as long as they are small."""

LARGE_IMAGES: Final = 2_000
"""Images that one question should give at most.

After more of them fewer transactions are asked for at once.
"""

PIECE_IMAGES: Final = 4_096
"""Images of a large transaction that are made at once."""


class LinterReader:
    """Reads a queue. With `delete_handled` transactions are taken off it once the publisher's log has
    all of them.
    """

    def __init__(
        self,
        session: QueueSession,
        schema: Catalog | None = None,
        settings: LinterSettings | None = None,
        report: Report = lambda _: None,
    ) -> None:
        self.settings = settings or LinterSettings()
        self._queue = Queue(session, self.settings)
        self._committed = CommittedRows(schema, self.settings, report, spill_to(QueueRow))

    def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
        """Yield the transactions ended at that place or later, a few with each query."""
        committed = self._committed
        committed.close()
        committed.begin = begin
        most = ENDING_ROWS
        while True:
            endings = self._queue.endings(committed.begin - 1, most)
            if not endings:
                yield None
                continue
            count = 0
            transactions, reached = self._transactions(endings)
            for images in transactions:
                while made := list(islice(images, PIECE_IMAGES)):
                    count += len(made)
                    yield self._piece(made, made[-1].position[0], complete=made[-1].last)
            committed.begin = reached + 1
            # The last of them may have been without images.
            yield self._piece((), reached, complete=True)
            most = max(1, most // 2) if count > LARGE_IMAGES else min(ENDING_ROWS, most * 2)

    def acknowledge(self, images: Sequence[Captured], begin: int) -> None:
        """Takes off transactions of which everything was captured, also those that did nothing."""
        empty = {number: end for number, end in self._committed.empty.items() if end < begin}
        for number in empty:
            del self._committed.empty[number]
        if not self.settings.delete_handled:
            return
        whole: dict[int, int] = {}
        for image in images:
            end = image.position[0]
            if end < begin and isinstance(image, Image) and image.transaction is not None:
                whole[image.transaction.id] = max(end, whole.get(image.transaction.id, end))
        for transactions in (whole, empty):
            if transactions:
                self._queue.delete(transactions)

    def close(self) -> None:
        self._committed.close()
        self._queue.close()

    def _piece(self, images: Sequence[Image], end: int, *, complete: bool) -> StreamPiece:
        begin = end + 1 if complete else None
        return StreamPiece(images=images, catalog=self._committed.catalog, commit=end, begin=begin)

    def _transactions(self, endings: Sequence[QueueRow]) -> tuple[list[Iterator[Image]], int]:
        """Return the images of the first transactions ended there, and the place of the last end.

        As many as fit into memory; all their rows are fetched before the first image is made. Rows
        left over are queried again.
        """
        first, last = endings[0].syslog_addr, endings[-1].syslog_addr
        numbers = dict.fromkeys(row.transact_id for row in endings)  # they are used again and again
        passed = _Passed(self._queue.rows(numbers, last))
        transactions: list[Iterator[Image]] = []
        for images in self._committed.transactions(passed):
            transactions.append(images)
            if passed.weight > self.settings.spill_bytes and passed.at >= first:
                last = passed.at
                break
        self._committed.close()
        return transactions, last


class _Passed:
    """Rows on their way, what they weigh so far, and where the last one stands."""

    def __init__(self, rows: Iterator[QueueRow]) -> None:
        self.weight = 0
        self.at = 0
        self._rows = rows

    def __iter__(self) -> Iterator[QueueRow]:
        for row in self._rows:
            self.weight += len(row.data) + ROW_BYTES
            self.at = row.syslog_addr
            yield row
