"""Sends documents side by side: a thread for each of a sink's lanes, as long as one batch is on its way.

Law: threads only carry. Whose turn it is, what is held and what an answer means is decided by the one who sends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Self

from msgspec import Struct

from eventlog.core.errors import MachineError
from eventlog.core.model import Document, Outcome
from eventlog.core.seams import Lane
from eventlog.delivery.interpreter_tuning import haste
from eventlog.delivery.order import Turns


class Errand(Struct, frozen=True, kw_only=True):
    """A document that somebody is to carry, its number, and the plan that it goes out under."""

    number: int
    document: Document
    plan: str


class Answer(Struct, frozen=True, kw_only=True):
    """What was said of the document with this number, or what kept it from its receiver."""

    number: int
    outcomes: Sequence[Outcome] = ()
    failure: BaseException | None = None


class Crew:
    """Threads that end with the block; who leaves it by an interruption breaks off what they carry."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self._errands: SimpleQueue[Errand | None] = SimpleQueue()
        self._answers: SimpleQueue[Answer] = SimpleQueue()
        self._threads = [
            Thread(target=self._carry, args=(lane,), name=f"eventlog-lane-{number}")
            for number, lane in enumerate(lanes)
        ]
        self._hurrying = ExitStack()

    def __enter__(self) -> Self:
        self._hurrying.enter_context(haste())  # a thread whose receiver has answered should not wait for its turn
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        broken_off = kind is not None and not issubclass(kind, Exception)
        if broken_off:
            self._break_off()
        for _ in self._threads:
            self._errands.put(None)
        for thread in self._threads:
            thread.join()
        if broken_off:
            for lane in self._lanes:
                lane.close()
        self._hurrying.close()

    def deliver(
        self,
        documents: Sequence[Document],
        plan: str,
        turns: Turns,
        holds: Callable[[int], bool],
        take: Callable[[int, Sequence[Outcome]], None],
    ) -> None:
        """Sends each document when its turn has come, unless it is held; `take` is told what was said of which.

        After a failure nothing more is sent, and what was on its way still counts; then the failure is raised.
        """
        on_the_way = 0
        failures: list[BaseException] = []
        while True:
            while on_the_way < len(self._threads) and not failures and (number := turns.next()) is not None:
                if holds(number):
                    turns.answered(number)
                else:
                    self._errands.put(Errand(number=number, document=documents[number], plan=plan))
                    on_the_way += 1
            if not on_the_way:
                break
            answer = self._answers.get()
            on_the_way -= 1
            if answer.failure is not None:
                failures.append(answer.failure)
            else:
                take(answer.number, answer.outcomes)
                turns.answered(answer.number)
        if failures:
            raise min(failures, key=_gravity)

    def _carry(self, lane: Lane) -> None:
        """One thread: carries documents until there is nothing more to carry."""
        while (errand := self._errands.get()) is not None:
            try:
                outcomes = lane.write([errand.document], errand.plan)
            except BaseException as failure:  # noqa: BLE001  # whatever it is, it is raised by the one who waits for it
                self._answers.put(Answer(number=errand.number, failure=failure))
            else:
                self._answers.put(Answer(number=errand.number, outcomes=outcomes))

    def _break_off(self) -> None:
        """Nobody begins anything, and what was begun ends soon."""
        while True:
            try:
                self._errands.get_nowait()
            except Empty:
                break
        for lane in self._lanes:
            lane.break_off()


def _gravity(failure: BaseException) -> int:
    """What nobody expected comes first, then what waiting does not mend."""
    if not isinstance(failure, MachineError):
        return 0
    return 2 if failure.may_pass else 1
