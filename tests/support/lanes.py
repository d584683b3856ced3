"""A sink with several lanes that lives in memory: what is on its way at the same time, and what was answered, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Condition

from eventlog.core.model import Document, Outcome, Status
from eventlog.core.seams import SinkCapabilities
from tests.support.memory import UnaskedSink, answer

Fate = Callable[[str], Status | BaseException | None]
"""What becomes of the document with this id; None is success."""


def success(_identity: str) -> None:
    """Takes everything."""


class LanedSink(UnaskedSink):
    """Documents meet here: each waits until so many are on their way, or until no other comes any more.

    `came` and `answered` are ids in their order, `together` what was on its way when one came; `plans` whose they were.
    """

    @property
    def capabilities(self) -> SinkCapabilities:
        return SinkCapabilities(lanes=self.lanes)

    def __init__(self, lanes: int, fate: Fate = success, meet: int = 1) -> None:
        self.lanes = [LanedSink.Lane(self) for _ in range(lanes)]
        self.fate = fate
        self.meet = meet
        self.came: list[str] = []
        self.answered: list[str] = []
        self.plans: list[str] = []
        self.together: list[frozenset[str]] = []
        self.closed = 0
        self._here: set[str] = set()
        self._moved = Condition()

    def last(self) -> str:
        return max(self.answered, default="")

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        return self.lanes[0].commit(plan, documents)

    def close(self) -> None:
        for lane in self.lanes:
            lane.close()

    def take(self, document: Document, broken: Callable[[], bool]) -> Sequence[Outcome]:
        """Take a document; raise RuntimeError if interrupted, or if the others do not come."""
        with self._moved:
            self.came.append(document.id)
            self._here.add(document.id)
            self.together.append(frozenset(self._here))
            self._moved.notify_all()
            met = self._moved.wait_for(lambda: broken() or len(self.came) >= self.meet, timeout=60)
        try:
            if broken() or not met:
                raise RuntimeError("it was broken off." if broken() else "nobody else came.")
            found = self.fate(document.id)
            if isinstance(found, BaseException):
                raise found
            self.answered.append(document.id)
        finally:
            with self._moved:
                self._here.discard(document.id)
        positions = [position for covered in document.covers.values() for position in covered]
        return [] if found is None else [answer(position, found) for position in positions]

    def wake(self) -> None:
        with self._moved:
            self._moved.notify_all()

    class Lane:
        """One way; it must never be used by two threads at a time."""

        def __init__(self, sink: LanedSink) -> None:
            self._sink = sink
            self._busy = False
            self.broken = False

        def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
            assert not self._busy, "two threads use one lane"
            self._busy = True
            self._sink.plans += [plan for _ in documents]
            try:
                return [said for document in documents for said in self._sink.take(document, lambda: self.broken)]
            finally:
                self._busy = False

        def break_off(self) -> None:
            self.broken = True
            self._sink.wake()

        def close(self) -> None:
            self.broken = False
            self._sink.closed += 1
