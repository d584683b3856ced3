"""Holds what transactions did until they commit: interleaved, cut at savepoints, dropped on
rollback; does no I/O.

What is held past a limit goes to a spill that is handed in, the largest transaction first, and
comes back in chunks when the transaction commits. A chunk is never changed: a savepoint only notes
what counts of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from eventlog.core.plural import count_words

T = TypeVar("T")
Numbered = tuple[int, T]
"""An item and the sequence number of its record."""


class Spill(Protocol[T]):
    """Where a transaction's items lie that are too many for memory."""

    def write(self, items: Sequence[Numbered[T]]) -> int:
        """Puts a chunk there and gives its number."""

    def read(self, chunk: int) -> Iterable[Numbered[T]]:
        """Yield the items of a chunk in order."""

    def close(self) -> None:
        """Forgets all chunks."""


SpillFactory = Callable[[], Spill[T]]
"""Makes the spill of one transaction, when it needs one."""


class _Chunk:
    """A written chunk; `end` is the sequence number from which on a savepoint took items back."""

    __slots__ = ("end", "first", "number")

    def __init__(self, number: int, first: int) -> None:
        self.number = number
        self.first = first
        self.end: int | None = None


class _Open(Generic[T]):
    """A transaction that has not ended: where it began, what it holds in memory and what it has
    spilled.
    """

    __slots__ = ("begin", "chunks", "items", "odd", "spill", "weight")

    def __init__(self, begin: int, *, odd: bool = False) -> None:
        self.begin = begin
        self.odd = odd
        """Its number may be a wrong one: its beginning was not seen, or an end of a transaction
        that did not begin.
        """
        self.items: list[Numbered[T]] = []
        self.weight = 0
        self.spill: Spill[T] | None = None
        self.chunks: list[_Chunk] = []

    def discard(self, seq: int) -> None:
        self.items = [numbered for numbered in self.items if numbered[0] < seq]
        self.chunks = [chunk for chunk in self.chunks if chunk.first < seq]
        for chunk in self.chunks:
            chunk.end = seq if chunk.end is None else min(chunk.end, seq)

    def hand_out(self) -> Iterator[T]:
        """Yield the items in order; spilled chunks are read one at a time and deleted at the end."""
        try:
            for chunk in self.chunks:
                assert self.spill is not None
                for seq, item in self.spill.read(chunk.number):
                    if chunk.end is None or seq < chunk.end:
                        yield item
            for _, item in self.items:
                yield item
        finally:
            self.close()

    def close(self) -> None:
        if self.spill is not None:
            self.spill.close()
            self.spill = None


class Transactions(Generic[T]):
    """The open transactions of one stream, by their numbers, which are used again after a
    transaction ended.

    `limit` is how much they may hold in memory together, in units of the weights that items come
    with. What does not fit the stream's rules goes to `report` and is taken as well as it can be,
    and what is left out although it may have been committed goes to `lose`. With `orphans` an
    item of a transaction whose beginning nobody saw opens it, without it is dropped. In a stream
    where beginnings are not `announced` the first item of a transaction is its beginning.
    """

    def __init__(
        self,
        spill: SpillFactory[T] | None,
        limit: int,
        *,
        report: Callable[[str], None] = lambda _: None,
        lose: Callable[[int], None] = lambda _: None,
        orphans: bool = True,
        announced: bool = True,
    ) -> None:
        self._spill = spill
        self._limit = limit
        self._report = report
        self._lose = lose
        self._orphans = orphans
        self._announced = announced
        self._open: dict[int, _Open[T]] = {}
        self.held = 0
        """What is in memory, in units of weight."""

    def __contains__(self, tx: int) -> bool:
        return tx in self._open

    def __len__(self) -> int:
        return len(self._open)

    @property
    def open(self) -> int | None:
        """Return the lowest sequence number at the beginning of an open transaction; None without
        one.
        """
        return min([transaction.begin for transaction in self._open.values()], default=None)

    def end(self) -> None:
        """End the stream: leave out open transactions; count those as lost whose number may be
        wrong.
        """
        if self._open:
            self._report(f"The stream ends with {count_words(len(self._open), 'open transaction')}: left out.")
        odd = sum(
            len(transaction.items) + len(transaction.chunks) for transaction in self._open.values() if transaction.odd
        )
        if odd:
            self._lose(odd)

    def begin(self, tx: int, seq: int) -> None:
        """Opens a transaction; one of the same number that never ended is dropped."""
        former = self._open.get(tx)
        if former is not None:
            self._report(f"Transaction {tx} begins at {seq} and had begun at {former.begin}: the former is dropped.")
            self._lose(len(former.items) + len(former.chunks))
            self._drop(tx)
        self._open[tx] = _Open(seq)

    def add(self, tx: int, seq: int, item: T, weight: int = 1) -> None:
        transaction = self._open.get(tx)
        if transaction is None:
            if not self._meet(tx, seq):
                return
            transaction = self._open[tx]
        transaction.items.append((seq, item))
        transaction.weight += weight
        self.held += weight
        if self.held > self._limit and self._spill is not None:
            self._relieve(self._spill)

    def extend(self, tx: int, numbered: list[Numbered[T]], weight: int) -> None:
        """Holds several items of the transaction, which weigh so much together."""
        transaction = self._open.get(tx)
        if transaction is None:  # each is reported, so taken by itself
            for seq, item in numbered:
                self.add(tx, seq, item, weight // len(numbered))
            return
        transaction.items += numbered
        transaction.weight += weight
        self.held += weight
        if self.held > self._limit and self._spill is not None:
            self._relieve(self._spill)

    def discard(self, tx: int, seq: int) -> None:
        """Takes back what the transaction did from that sequence number on."""
        transaction = self._open.get(tx)
        if transaction is None:
            self._report(f"Transaction {tx} takes back what it did since {seq}, and is not known.")
            return
        held = len(transaction.items)
        transaction.discard(seq)
        # What each item weighs is not known, only what all of them do.
        kept = transaction.weight * len(transaction.items) // held if held else transaction.weight
        self.held -= transaction.weight - kept
        transaction.weight = kept

    def rollback(self, tx: int) -> None:
        if tx not in self._open:
            self._report(f"Transaction {tx} is rolled back, and is not known.")
            self._doubt()
            return
        self._drop(tx)

    def commit(self, tx: int, seq: int) -> Iterator[T]:
        """Ends the transaction; its items in their order.

        They are to be read to their end, or closed.
        """
        transaction = self._open.pop(tx, None)
        if transaction is None:
            self._report(f"Transaction {tx} is committed at {seq}, and is not known.")
            self._doubt()
            return iter(())
        self.held -= transaction.weight
        return (
            transaction.hand_out() if transaction.spill is not None else iter([item for _, item in transaction.items])
        )

    def close(self) -> None:
        """Forgets all open transactions, as a stream that is read anew from another place must."""
        # A list, because each is taken out of the dict meanwhile.
        for tx in list(self._open):
            self._drop(tx)

    def _meet(self, tx: int, seq: int) -> bool:
        """Meet a transaction of unknown beginning; return True if it counts."""
        if self._announced:
            done = "it is taken from here on" if self._orphans else "the record is left out"
            self._report(f"Transaction {tx} does something at {seq} and its beginning is not known: {done}.")
        if self._orphans:
            self._open[tx] = _Open(seq, odd=self._announced)
        return self._orphans

    def _doubt(self) -> None:
        """Mark all open transactions as doubtful: an end came with an unknown number."""
        for transaction in self._open.values():
            transaction.odd = True

    def _drop(self, tx: int) -> None:
        transaction = self._open.pop(tx)
        self.held -= transaction.weight
        transaction.close()

    def _relieve(self, factory: SpillFactory[T]) -> None:
        """Spills the largest transactions until half of the limit is free: seldom, and in large
        chunks.
        """
        while self.held > self._limit // 2:
            largest = max(self._open.values(), key=lambda transaction: transaction.weight)
            if largest.spill is None:
                largest.spill = factory()
            lowest = min(seq for seq, _ in largest.items)
            largest.chunks.append(_Chunk(largest.spill.write(largest.items), lowest))
            largest.items = []
            self.held -= largest.weight
            largest.weight = 0
