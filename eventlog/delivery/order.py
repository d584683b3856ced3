"""Which documents may be on their way at the same time. Pure: the objects of each document in, whose turn it is out.

Law: of documents that share an object one goes after the other was answered, in their order. One that names no object
goes alone: after everything before it, and before everything after it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from eventlog.core.model import RowId

Last = TypeVar("Last")
Objects = Collection[RowId]
"""What a document speaks of; without any it speaks of everything."""


def predecessors(documents: Sequence[Objects]) -> list[tuple[int, ...]]:
    """For each document the numbers of those that must be answered before it; what they wait for is not said again."""
    found: list[tuple[int, ...]] = []
    latest: dict[RowId, int] = {}
    barrier: tuple[int, ...] = ()
    since: list[int] = []  # the barrier and what came after it
    for number, objects in enumerate(documents):
        if objects:
            shared = {latest[one] for one in objects if one in latest}
            found.append(tuple(sorted(shared)) or barrier)
            latest.update(dict.fromkeys(objects, number))
            since.append(number)
        else:
            found.append(tuple(since))
            latest.clear()
            barrier, since = (number,), [number]
    return found


class Turns:
    """Whose turn it is among documents, told by their numbers; the first that may go goes first."""

    def __init__(self, documents: Sequence[Objects]) -> None:
        before = predecessors(documents)
        self._missing = [len(numbers) for numbers in before]
        self._after: list[list[int]] = [[] for _ in before]
        for number, numbers in enumerate(before):
            for one in numbers:
                self._after[one].append(number)
        self._ready = [number for number, missing in enumerate(self._missing) if not missing]
        heapify(self._ready)

    def next(self) -> int | None:
        """The document that may go now and is not asked for again; None while all that are left wait for answers."""
        return heappop(self._ready) if self._ready else None

    def answered(self, number: int) -> None:
        """What became of a document is known, so those that waited for it may go."""
        for one in self._after[number]:
            self._missing[one] -= 1
            if not self._missing[one]:
                heappush(self._ready, one)


class Front(Generic[Last]):
    """How far documents are through without a gap, whose answers come in any order; `last` is what was said at its end."""

    def __init__(self, last: Last) -> None:
        self.last = last
        self._next = 0
        self._ahead: dict[int, Last | None] = {}

    def passed(self, number: int, last: Last | None) -> None:
        """A document is through, and this is to be said once everything before it is; None leaves what was said before."""
        self._ahead[number] = last
        while self._next in self._ahead:
            found = self._ahead.pop(self._next)
            self._next += 1
            if found is not None:
                self.last = found
