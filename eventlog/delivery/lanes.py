"""Sends documents side by side: a thread for each of a sink's lanes, for one batch.

`Turns` says which documents may be on their way at the same time, `deliver` carries them, and
`haste` sets the interpreter for it, which several publishers in one process share.

Law: threads only carry. Whose turn it is, what is held and what an answer means is decided by the
one who sends. Of documents that share an object one goes after the other was answered, in their
order. One that names no object goes alone, between those before it and those behind it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Final

from eventlog.core.errors import MachineError
from eventlog.core.model import Document, Outcome, RowId
from eventlog.core.seams import Lane

Tasks = SimpleQueue[tuple[Context, int, str, Document] | None]
"""Documents to be carried, each with its number and plan in the sender's context; None ends a thread."""

Answers = SimpleQueue[tuple[int, Sequence[Outcome] | BaseException]]
"""The answer to each document, or what kept it from its receiver."""


def deliver(
    lanes: Sequence[Lane],
    documents: Sequence[Document],
    plans: Sequence[str],
    turns: Turns,
    holds: Callable[[int], bool],
    take: Callable[[int, Sequence[Outcome]], None],
) -> None:
    """Send each document, under its plan, when its turn has come, unless it is held; `take` gets the answers.

    After a failure nothing more is sent, and what was on its way counts; then it is raised.
    """
    on_the_way = 0
    failures: list[BaseException] = []
    # A thread whose receiver has answered should not wait for its turn.
    with haste(), _run_threads(lanes) as (tasks, answers):
        while True:
            while on_the_way < len(lanes) and not failures and (number := turns.next()) is not None:
                if holds(number):
                    turns.note_answer(number)
                    continue
                # A copy each, for Python lets no two threads be in one context.
                tasks.put((copy_context(), number, plans[number], documents[number]))
                on_the_way += 1
            if not on_the_way:
                break
            number, answer = answers.get()
            on_the_way -= 1
            if isinstance(answer, BaseException):
                failures.append(answer)
            else:
                take(number, answer)
                turns.note_answer(number)
    if failures:
        raise min(failures, key=_gravity)


@contextmanager
def _run_threads(lanes: Sequence[Lane]) -> Iterator[tuple[Tasks, Answers]]:
    """Run a thread for each lane while the block runs; an interruption breaks off what they carry."""
    tasks, answers = Tasks(), Answers()
    threads = [
        Thread(target=_carry, args=(lane, tasks, answers), name=f"eventlog-lane-{number}")
        for number, lane in enumerate(lanes)
    ]
    broken_off: Sequence[Lane] = ()
    for thread in threads:
        thread.start()
    try:
        yield tasks, answers
    except BaseException as error:
        if not isinstance(error, Exception):
            # Nobody begins anything, and what was begun ends soon.
            with suppress(Empty):
                while True:
                    tasks.get_nowait()
            broken_off = lanes
            for lane in broken_off:
                lane.break_off()
        raise
    finally:
        for _ in threads:
            tasks.put(None)
        for thread in threads:
            thread.join()
        # After the threads have ended, which use them until then.
        for lane in broken_off:
            lane.close()


def _carry(lane: Lane, tasks: Tasks, answers: Answers) -> None:
    """Carry documents in one thread until none are left."""
    while (task := tasks.get()) is not None:
        context, number, plan, document = task
        try:
            answers.put((number, context.run(lane.commit, plan, [document])))
        except BaseException as failure:  # noqa: BLE001  # raised by the one who waits for it
            answers.put((number, failure))


def _gravity(failure: BaseException) -> int:
    """Rank failures: unexpected ones first, then permanent ones."""
    if not isinstance(failure, MachineError):
        return 0
    return 2 if failure.may_pass else 1


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
        self._order = TopologicalSorter(dict(enumerate(predecessors(documents))))
        self._order.prepare()
        self._ready: list[int] = []

    def next(self) -> int | None:
        """Return the next document free to go; None while all others wait for answers."""
        for number in self._order.get_ready():
            heappush(self._ready, number)
        return heappop(self._ready) if self._ready else None

    def note_answer(self, number: int) -> None:
        """Note a document's answer, which frees those behind it."""
        self._order.done(number)


TURN_SECONDS: Final = 0.0001
"""So long a thread that decides holds up one whose disk or database has answered."""

COLLECT_VALUES: Final = 500_000
"""New values, of a dozen batches, after which garbage is looked for."""

Pace = tuple[float, tuple[int, int, int]]
"""How often threads take turns, and after how many new values garbage is looked for."""

_lock = Lock()
_hurrying: list[Pace] = []
"""One for each that hurries, all of them the pace before the first."""


def read_pace() -> Pace:
    """Return the interpreter's pace now."""
    return sys.getswitchinterval(), gc.get_threshold()


def hasten(pace: Pace) -> Pace:
    """Return a pace that switches threads sooner after I/O and collects garbage less often."""
    turn, (young, middle, old) = pace
    # What a batch is made of refers to nothing in circles, and looking for them after every 700
    # values takes a twentieth of the time. With 0 somebody has turned that off.
    if young:
        young = max(COLLECT_VALUES, young)
    return min(TURN_SECONDS, turn), (young, middle, old)


@contextmanager
def haste() -> Iterator[None]:
    """Hurry until the block ends; the last to end leaves things as the first found them."""
    with _lock:
        _hurrying.append(_hurrying[0] if _hurrying else read_pace())
        _set_pace(hasten(_hurrying[0]))
    try:
        yield
    finally:
        with _lock:
            before = _hurrying.pop()
            if not _hurrying:
                _set_pace(before)


def _set_pace(pace: Pace) -> None:
    turn, thresholds = pace
    sys.setswitchinterval(turn)
    gc.set_threshold(*thresholds)
