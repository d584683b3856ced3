"""Sends documents side by side: a thread for each of a sink's lanes, for one batch.

`Turns` says which documents may be on their way at the same time, `LaneThreads` carries them, and
`haste` sets the interpreter for it, which several publishers in one process share.

Law: threads only carry. Whose turn it is, what is held and what an answer means is decided by the
one who sends. Of documents that share an object one goes after the other was answered, in their
order. One that names no object goes alone, between those before it and those behind it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import Context, copy_context
from heapq import heapify, heappop, heappush
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Final, Self

from msgspec import Struct

from eventlog.core.errors import MachineError
from eventlog.core.model import Document, Outcome, RowId
from eventlog.core.seams import Lane


class LaneTask(Struct, frozen=True, kw_only=True):
    """A document to be carried, and its plan, in the sender's context."""

    number: int
    document: Document
    plan: str
    context: Context


class LaneAnswer(Struct, frozen=True, kw_only=True):
    """The answer to the document with this number, or what kept it from its receiver."""

    number: int
    outcomes: Sequence[Outcome] = ()
    failure: BaseException | None = None


class LaneThreads:
    """Threads that end with the block; an interruption breaks off what they carry."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self._tasks: SimpleQueue[LaneTask | None] = SimpleQueue()
        self._answers: SimpleQueue[LaneAnswer] = SimpleQueue()
        self._threads = [
            Thread(target=self._carry, args=(lane,), name=f"eventlog-lane-{number}")
            for number, lane in enumerate(lanes)
        ]
        self._hurrying = ExitStack()

    def __enter__(self) -> Self:
        # A thread whose receiver has answered should not wait for its turn.
        self._hurrying.enter_context(haste())
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        broken_off = kind is not None and not issubclass(kind, Exception)
        if broken_off:
            # Nobody begins anything, and what was begun ends soon.
            while True:
                try:
                    self._tasks.get_nowait()
                except Empty:
                    break
            for lane in self._lanes:
                lane.break_off()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
        if broken_off:
            for lane in self._lanes:
                # After the threads have ended, which use it until then.
                lane.close()
        self._hurrying.close()

    def deliver(
        self,
        documents: Sequence[Document],
        plans: Sequence[str],
        turns: Turns,
        holds: Callable[[int], bool],
        take: Callable[[int, Sequence[Outcome]], None],
    ) -> None:
        """Sends each document, under its plan, when its turn has come, unless it is held; `take` gets the answers.

        After a failure nothing more is sent, and what was on its way counts; then it is raised.
        """
        on_the_way = 0
        failures: list[BaseException] = []
        while True:
            while on_the_way < len(self._threads) and not failures:
                number = turns.next()
                if number is None:
                    break
                if holds(number):
                    turns.note_answer(number)
                    continue
                task = LaneTask(
                    number=number,
                    document=documents[number],
                    plan=plans[number],
                    # A copy each, for Python lets no two threads be in one context.
                    context=copy_context(),
                )
                self._tasks.put(task)
                on_the_way += 1
            if not on_the_way:
                break
            answer = self._answers.get()
            on_the_way -= 1
            if answer.failure is not None:
                failures.append(answer.failure)
            else:
                take(answer.number, answer.outcomes)
                turns.note_answer(answer.number)
        if failures:
            raise min(failures, key=_gravity)

    def _carry(self, lane: Lane) -> None:
        """Carry documents in one thread until none are left."""
        while (task := self._tasks.get()) is not None:
            try:
                outcomes = task.context.run(lane.commit, task.plan, [task.document])
            except BaseException as failure:  # noqa: BLE001  # raised by the one who waits for it
                self._answers.put(LaneAnswer(number=task.number, failure=failure))
            else:
                self._answers.put(LaneAnswer(number=task.number, outcomes=outcomes))


def _gravity(failure: BaseException) -> int:
    """Rank failures: unexpected ones first, then permanent ones."""
    if not isinstance(failure, MachineError):
        return 0
    if not failure.may_pass:
        return 1
    return 2


Objects = Collection[RowId] | Collection[str]
"""What a document speaks of; without any it speaks of everything."""


def predecessors(documents: Sequence[Objects]) -> list[tuple[int, ...]]:
    """List for each document those to be answered before it."""
    before: list[tuple[int, ...]] = []
    latest: dict[RowId | str, int] = {}
    # A document that speaks of everything waits for all before it, and all behind it wait for it.
    barrier: tuple[int, ...] = ()
    since_barrier: list[int] = []
    for number, objects in enumerate(documents):
        if objects:
            # Only the latest of each object: that one has waited for those before it.
            shared = {latest[name] for name in objects if name in latest}
            before.append(tuple(sorted(shared)) or barrier)
            latest.update(dict.fromkeys(objects, number))
            since_barrier.append(number)
        else:
            before.append(tuple(since_barrier))
            latest.clear()
            barrier, since_barrier = (number,), [number]
    return before


class Turns:
    """Whose turn it is among documents, by their numbers; the first that may go goes first."""

    def __init__(self, documents: Sequence[Objects]) -> None:
        before = predecessors(documents)
        self._missing = [len(numbers) for numbers in before]
        self._after: list[list[int]] = [[] for _ in before]
        for number, earlier in enumerate(before):
            for former in earlier:
                self._after[former].append(number)
        self._ready = [number for number, missing in enumerate(self._missing) if not missing]
        heapify(self._ready)

    def next(self) -> int | None:
        """Return the next document free to go; None while all others wait for answers."""
        if not self._ready:
            return None
        return heappop(self._ready)

    def note_answer(self, number: int) -> None:
        """Note a document's answer, which frees those behind it."""
        for later in self._after[number]:
            self._missing[later] -= 1
            if not self._missing[later]:
                heappush(self._ready, later)


TURN_SECONDS: Final = 0.0001
"""So long a thread that decides holds up one whose disk or database has answered."""

COLLECT_VALUES: Final = 500_000
"""New values, of a dozen batches, after which garbage is looked for."""


class InterpreterPace(Struct, frozen=True, kw_only=True):
    """How often threads take turns, and after how many new values garbage is looked for."""

    turn: float
    thresholds: tuple[int, int, int]

    @classmethod
    def now(cls) -> InterpreterPace:
        return cls(turn=sys.getswitchinterval(), thresholds=gc.get_threshold())

    def set(self) -> None:
        sys.setswitchinterval(self.turn)
        gc.set_threshold(*self.thresholds)

    def hasten(self) -> InterpreterPace:
        """Switch threads sooner after I/O, and collect garbage less often."""
        # What a batch is made of refers to nothing in circles, and looking for them after every 700
        # values takes a twentieth of the time. With 0 somebody has turned that off.
        young, middle, old = self.thresholds
        if young:
            young = max(COLLECT_VALUES, young)
        turn = min(TURN_SECONDS, self.turn)
        return InterpreterPace(turn=turn, thresholds=(young, middle, old))


_lock = Lock()
_before: list[InterpreterPace] = []
"""What each that hurries found. Only the first found how things were: it is kept to the end."""


@contextmanager
def haste() -> Iterator[None]:
    """Hurries until the block ends; the last to end leaves things as the first found them."""
    with _lock:
        _before.append(InterpreterPace.now())
        # From how things were before anybody hurried, so that haste does not add up.
        _before[0].hasten().set()
    try:
        yield
    finally:
        with _lock:
            first = _before[0]
            # Whose entry goes does not matter: only the first one counts, and it goes last.
            _before.pop()
            if not _before:
                first.set()
