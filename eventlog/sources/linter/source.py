"""The LINTER source: images of a queue's committed transactions, handed out in batches.

The queue itself is the memory: a transaction is read when its end is there, from its first row on, so that nothing is
kept of those that are open. Marks keep what was handled, and a batch is noted before it is handed out: after a crash
it is read again from the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from time import monotonic
from typing import Final

from msgspec.structs import replace

from eventlog.core.backoff import Backoff
from eventlog.core.model import Image, Outcome, Position, Reason, Status, exceptional
from eventlog.core.schema import Catalog
from eventlog.core.seams import Batch, SourceCapabilities
from eventlog.sources.linter.hand import Hand, InHand, Settled
from eventlog.sources.linter.images import BEHIND, ROW_WEIGHT, Committed, Report
from eventlog.sources.linter.queue import Queue, Session
from eventlog.sources.linter.rows import QueueRow
from eventlog.sources.linter.settings import LinterSettings
from eventlog.sources.marks import FileMarks
from eventlog.sources.stream.spill import spill_to

MOST_ENDINGS: Final = 256
"""Transactions that are read with one question, as long as they are small."""

LARGE: Final = 2_000
"""Images that one question should give at most; after more of them fewer transactions are asked for at once."""

_STAY: Final = frozenset({Reason.RETRY, Reason.HELD})
_KEPT: Final = frozenset({Status.ERROR, Status.FATAL})


class LinterSource:
    """Reads and settles a queue. `report` gets what is odd about it; `clock` counts seconds, for the back-off."""

    capabilities = SourceCapabilities()

    def __init__(
        self,
        session: Session,
        marks: FileMarks,
        schema: Catalog | None = None,
        settings: LinterSettings | None = None,
        report: Report = lambda _: None,
        clock: Callable[[], float] = monotonic,
        backoff: Backoff | None = None,
    ) -> None:
        self.settings = settings or LinterSettings()
        self._schema = schema
        self._report = report
        self._clock = clock
        self._queue = Queue(session, self.settings)
        self._hand = Hand(marks)
        self._backoff = backoff or Backoff()
        self._due = float("-inf")
        self._committed = self._reader(self._hand.settled.at)
        self._flow: Iterator[Image] | None = None
        self._batch: Batch | None = None

    @property
    def catalog(self) -> Catalog:
        """What the tables look like of which images were handed out so far."""
        return self._committed.catalog

    def read(self, limit: int) -> Batch:
        """The batch in hand if there is one, else the next images, noted before they are handed out."""
        if (later := self._due - self._clock()) > 0:
            return Batch(events=(), later=later)
        held = self._hand.batch
        if held is not None and (again := self._again(held)) is not None:
            return again
        images = list(self._next(limit))
        if images:
            self._hand.take(InHand.of(images))
            self._batch = Batch(events=images, catalog=self._committed.catalog)
            return self._batch
        if self._committed.after > self._hand.settled.at:
            settled = Settled(at=self._committed.after)  # transactions without images are behind us
            self._hand.move(settled)
            self._delete_empty(settled)
        return Batch(events=())

    def note(self, notes: Mapping[str, str]) -> None:
        """Keeps notes with the batch in hand, durable when it returns."""
        self._hand.note(notes)

    def settle(
        self,
        batch: Batch,
        outcomes: Sequence[Outcome],
        notes: Mapping[str, str] | None = None,
        following: Batch | None = None,
    ) -> None:
        """Moves on behind the batch, but for images that stay; with `delete_handled` takes whole transactions off."""
        held = self._hand.batch
        if not batch.events or held is None:
            return
        others = list(exceptional(outcomes))
        staying = [one.position for one in others if one.status is Status.NEW and one.reason in _STAY]
        spared = self._hand.settled.spared
        settled = self._settled(held, others)
        left = None
        if staying:
            left = replace(held, only=tuple(sorted(staying)), attempts=held.attempts + 1)
            self._due = self._clock() + self._backoff.delay(left.attempts, 0.5)
        self._hand.settle(settled, left, notes or {} if staying else {})
        self._batch = None
        if self.settings.delete_handled and not staying:
            self._delete(batch, others, spared, settled)

    def close(self) -> None:
        """Gives back what it holds."""
        self._committed.close()
        self._queue.close()

    def _settled(self, held: InHand, others: Sequence[Outcome]) -> Settled:
        """Behind the batch. The transaction that goes on after it is spared when something of it failed."""
        before = self._hand.settled
        failed = {one.position[0] for one in others if one.status in _KEPT}
        end = held.last[0]
        spared = end if end in failed or before.spared == end else None
        return Settled(at=max(before.at, held.last), spared=spared)

    def _delete(self, batch: Batch, others: Sequence[Outcome], spared: int | None, settled: Settled) -> None:
        """Takes the rows off of transactions of which everything was handled and nothing failed."""
        failed = {one.position[0] for one in others if one.status in _KEPT | {Status.NEW}} | {spared}
        whole: dict[int, int] = {}
        for event in batch.events:
            assert isinstance(event, Image)
            end = event.position[0]
            if event.last and event.transaction is not None and end not in failed:
                whole[event.transaction.id] = max(end, whole.get(event.transaction.id, end))
        if whole:
            self._queue.delete(whole)
        self._delete_empty(settled)

    def _delete_empty(self, settled: Settled) -> None:
        """Takes off what was rolled back, or had nothing in it."""
        empty = {number: end for number, end in self._committed.empty.items() if end <= settled.at[0]}
        if empty and self.settings.delete_handled:
            self._queue.delete(empty)
        for number in empty:
            del self._committed.empty[number]

    def _again(self, held: InHand) -> Batch | None:
        """The batch in hand: as it was handed out, or read again after a crash."""
        if self._batch is None:
            images = [image for image in self._those_of(held.ends) if held.of_it(image)]
            if not images:  # somebody took the rows away
                self._hand.settle(self._settled(held, ()), None, {})
                return None
            attempts: dict[Position, int] = {}
            if held.only is not None:
                attempts = {image.position: held.attempts for image in images}
            self._batch = Batch(events=images, catalog=self._committed.catalog, attempts=attempts)
            self._committed.after = max(self._committed.after, held.last)
        self._batch = replace(self._batch, repeated=True, notes=self._hand.notes)
        return self._batch

    def _next(self, limit: int) -> Iterator[Image]:
        """The next images; what is left of a question's answer comes with the next batch."""
        if self._flow is None:
            self._flow = self._flowing()
        count = 0
        for image in islice(self._flow, limit or None):
            count += 1
            yield image
        if not limit or count < limit:
            self._flow = None

    def _flowing(self) -> Iterator[Image]:
        """Images of the transactions that have ended since, a few transactions at a time."""
        most = MOST_ENDINGS
        after = self._committed.after
        reached = after[0] - (after[1] != BEHIND) if after else -1  # a transaction may be handled in part
        while endings := self._queue.endings(reached, most):
            count = 0
            found, reached = self._transactions(self._committed, endings)
            for images in found:
                for image in images:
                    count += 1
                    self._committed.after = image.position
                    yield image
            self._committed.after = (reached, BEHIND)
            most = max(1, most // 2) if count > LARGE else min(MOST_ENDINGS, most * 2)

    def _transactions(self, committed: Committed, endings: Sequence[QueueRow]) -> tuple[list[Iterator[Image]], int]:
        """The images of the first transactions that end there, as many as memory is meant for, and where the last ends.

        All of their rows are fetched before the first image is made. Rows that are left are asked for once more.
        """
        first, last = endings[0].syslog_addr, endings[-1].syslog_addr
        numbers = dict.fromkeys(row.transact_id for row in endings)  # they are used again and again
        passed = _Passed(self._queue.rows(numbers, last))
        found: list[Iterator[Image]] = []
        for images in committed.transactions(passed):
            found.append(images)
            if passed.weight > self.settings.spill_bytes and passed.at >= first:
                last = passed.at
                break
        committed.close()
        return found, last

    def _those_of(self, ends: Sequence[int]) -> Iterator[Image]:
        """The images of the transactions that ended at these places."""
        committed = self._reader((min(ends) - 1, BEHIND))
        wanted = set(ends)
        endings = [row for row in self._endings(min(ends), max(ends)) if row.syslog_addr in wanted]
        while endings:
            found, reached = self._transactions(committed, endings[:MOST_ENDINGS])
            for images in found:
                yield from images
            committed.after = (reached, BEHIND)
            endings = [row for row in endings if row.syslog_addr > reached]

    def _endings(self, first: int, last: int) -> Iterator[QueueRow]:
        reached = first - 1
        while reached < last and (found := self._queue.endings(reached, MOST_ENDINGS)):
            yield from found
            reached = found[-1].syslog_addr

    def _reader(self, after: Position) -> Committed:
        return Committed(self._schema, self.settings, self._report, spill_to(QueueRow), after)


class _Passed:
    """Rows on their way, what they weigh so far, and where the last one stands."""

    def __init__(self, rows: Iterator[QueueRow]) -> None:
        self.weight = 0
        self.at = 0
        self._rows = rows

    def __iter__(self) -> Iterator[QueueRow]:
        for row in self._rows:
            self.weight += len(row.data) + ROW_WEIGHT
            self.at = row.syslog_addr
            yield row
