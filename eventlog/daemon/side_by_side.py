"""Several outputs at the same time: each in a thread of its own, turn after turn, while it has something to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from threading import Event as Flag
from threading import Thread
from time import monotonic
from typing import Final

from msgspec import Struct

from eventlog.core.errors import MachineError
from eventlog.core.seams import Tenure
from eventlog.daemon.lines import Line
from eventlog.delivery.report import Report

LOOK_SECONDS: Final = 0.5
"""Seconds after which whoever waits for a turn shows that it is alive."""

COMPANY_SECONDS: Final = 0.05
"""Seconds for which one that is slower than the others is waited for, before somebody looks for new rows."""


class Finished(Struct, frozen=True, kw_only=True):
    """A turn that has ended: with a report, or with an error."""

    line: Line
    seconds: float
    report: Report | None = None
    error: MachineError | None = None

    @property
    def took_new(self) -> bool:
        """Whether it took rows that the others do not have yet."""
        return self.report is not None and self.report.events > 0


class SideBySide:
    """The threads. `stopped` ends all of them after the turns that have begun, and so does a report that `is_over`."""

    def __init__(self, stopped: Flag, is_over: Callable[[Report], bool]) -> None:
        self._stopped = stopped
        self._is_over = is_over
        self._ending = Flag()
        self._finished: SimpleQueue[tuple[Line, Finished | BaseException | None]] = SimpleQueue()
        self._threads: dict[str, Thread] = {}
        self._tenure: Tenure | None = None

    def has(self, line: Line) -> bool:
        """Whether a thread is at this line."""
        return line.name in self._threads

    @property
    def anything_finished(self) -> bool:
        """Whether a turn has ended of which nobody knows yet."""
        return not self._finished.empty()

    def begin(self, lines: Iterable[Line], tenure: Tenure) -> None:
        """Lets these go on; one that is at work already does not rest before it has looked once more."""
        self._tenure = tenure
        for line in lines:
            if line.name in self._threads:
                line.wanted.set()
                continue
            line.wanted.clear()
            # A daemon, for at its end Python waits for all other threads.
            thread = Thread(target=self._run, args=(line, tenure), name=f"eventlog-output-{line.name}", daemon=True)
            self._threads[line.name] = thread
            thread.start()

    def next(self, lines: Sequence[Line]) -> Finished | None:
        """The next turn that has ended. None where nobody is at work, or only such as the others need not wait for."""
        while self._threads:
            leaders = [line for line in lines if line.name in self._threads and not line.is_behind]
            try:
                line, found = self._finished.get(timeout=LOOK_SECONDS if leaders else COMPANY_SECONDS)
            except Empty:
                # Where one that is not behind has nothing to do, somebody must look for new rows.
                rests = any(line.name not in self._threads and not line.is_behind for line in lines)
                if leaders and not rests:
                    continue
                return None
            if found is None:
                # None is the last that a thread says, so that it has ended or does at once.
                self._threads.pop(line.name).join()
                if self._tenure is not None and line.wanted.is_set() and line.may_go():
                    # It was about to rest when somebody wanted it.
                    self.begin([line], self._tenure)
            elif isinstance(found, Finished):
                return found
            else:
                raise found
        return None

    def end(self) -> None:
        """Waits until each turn that has begun has ended."""
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
                # Before it looks: who wants it from now on may mean rows that this turn does not
                # see.
                line.wanted.clear()
                began = monotonic()
                try:
                    report = line.turn(tenure)
                except MachineError as error:
                    queue.put((line, Finished(line=line, seconds=monotonic() - began, error=error)))
                    return
                queue.put((line, Finished(line=line, seconds=monotonic() - began, report=report)))
                if self._is_over(report) or not (report.moved or line.wanted.is_set()):
                    return
        except BaseException as error:  # noqa: BLE001  # raised by the publisher's thread, which ends with it
            queue.put((line, error))
        finally:
            queue.put((line, None))
