"""Several outputs at the same time: each in a thread of its own, turn after turn, while it has something to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from threading import Event as Flag
from threading import Thread
from typing import Final

from eventlog.core.errors import MachineError
from eventlog.core.seams import Tenure
from eventlog.daemon.workers import Line
from eventlog.delivery.report import Report

LOOK_SECONDS: Final = 0.5
"""Seconds after which whoever waits for a turn shows that it is alive."""

COMPANY_SECONDS: Final = 0.05
"""Seconds for which one that is slower than the others is waited for, before somebody looks for new rows."""


TurnEnd = Report | MachineError
"""How a turn ended."""


class SideBySide:
    """The threads. `stopped` ends all of them after the turns that have begun, and so does a report that `is_over`."""

    def __init__(self, stopped: Flag, is_over: Callable[[Report], bool]) -> None:
        self._stopped = stopped
        self._is_over = is_over
        self._ending = Flag()
        self._finished: SimpleQueue[tuple[Line, Report | BaseException | None]] = SimpleQueue()
        self._threads: dict[str, Thread] = {}

    def has(self, line: Line) -> bool:
        """Return True if a thread is at this line."""
        return line.name in self._threads

    @property
    def anything_finished(self) -> bool:
        """Return True if the end of a turn is still to be fetched."""
        return not self._finished.empty()

    def begin(self, lines: Iterable[Line], tenure: Tenure) -> None:
        """Start lines free to run; a running one looks once more before it rests."""
        for line in lines:
            if not line.may_go():
                continue
            if line.name in self._threads:
                line.wanted.set()
                continue
            line.wanted.clear()
            # A daemon, for at its end Python waits for all other threads.
            thread = Thread(target=self._run, args=(line, tenure), name=f"eventlog-output-{line.name}", daemon=True)
            self._threads[line.name] = thread
            thread.start()

    def next(self, lines: Sequence[Line], tenure: Tenure) -> tuple[Line, TurnEnd] | None:
        """Return the next turn that has ended; None if none runs, or only lines nobody waits for."""
        while self._threads:
            leaders = [line for line in lines if line.name in self._threads and not line.is_behind]
            try:
                patience = LOOK_SECONDS if leaders else COMPANY_SECONDS
                line, outcome = self._finished.get(timeout=patience)
            except Empty:
                # Where one that is not behind has nothing to do, somebody must look for new rows.
                rests = any(line.name not in self._threads and not line.is_behind for line in lines)
                if leaders and not rests:
                    continue
                return None
            if isinstance(outcome, TurnEnd):
                return line, outcome
            if outcome is not None:
                raise outcome
            # None is the last that a thread says, so that it has ended or does at once.
            self._threads.pop(line.name).join()
            if line.wanted.is_set():
                # It was about to rest when somebody wanted it.
                self.begin([line], tenure)
        return None

    def end(self) -> None:
        """Wait until each turn in progress has ended."""
        self._ending.set()
        for thread in self._threads.values():
            thread.join()
        self._threads = {}
        self._finished = SimpleQueue()
        self._ending.clear()

    def _run(self, line: Line, tenure: Tenure) -> None:
        """Turn after turn, until there is nothing to do or one fails."""
        queue = self._finished
        try:
            while not (self._stopped.is_set() or self._ending.is_set() or line.held_up):
                # Before it looks: who wants it from now on may mean later rows.
                line.wanted.clear()
                report = line.turn(tenure)
                queue.put((line, report))
                if self._is_over(report) or not (report.moved or line.wanted.is_set()):
                    return
        except BaseException as error:  # noqa: BLE001  # raised by the publisher's thread, which ends with it
            queue.put((line, error))
        finally:
            queue.put((line, None))
