"""Lines of work of a publisher: each output fails, waits and goes on whatever others do.

Several take their turns at the same time, each in a thread of its own, while it has something to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from threading import Event as Flag
from threading import Thread
from time import monotonic
from typing import Final

from msgspec.structs import replace

from eventlog.core.errors import ChangedError, MachineError, SourceError
from eventlog.core.seams import Tenure
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.scheduling import Failures
from eventlog.delivery.report import Report
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider

MOST_LOOKS: Final = 3
"""How often it looks at the tables again when it cannot read: they may go on changing meanwhile."""

LOOK_SECONDS: Final = 0.5
"""Seconds after which whoever waits for a turn shows that it is alive."""

COMPANY_SECONDS: Final = 0.05
"""Seconds for which one that is slower than the others is waited for, before somebody looks for new rows."""

TurnEnd = Report | MachineError
"""How a turn ended."""


class Line:
    """One line of work: the turns of one output, as the publisher's thread sees them."""

    def __init__(
        self,
        consumer: Consumer,
        vitals: PublisherHealth,
        look_again: Callable[[Decider], Decider],
    ) -> None:
        self.name = consumer.name
        self.consumer = consumer
        self._vitals = vitals
        self._look_again = look_again
        self.failures = Failures()
        self.again_at = 0.0
        """When it is tried again that has failed, by the monotonic clock."""
        self.trouble: MachineError | None = None
        """What was wrong the last time; None once it goes on."""
        self.is_behind = False
        """The others go on without it, and that was logged."""
        self.rests = False
        """It had nothing to do in its last turn."""
        self.has_worked = False
        """It has had a turn that ended well."""
        self.is_paused = False
        """Somebody had paused it by its last turn."""
        self.held_up = False
        """It waits for another output that is too far behind."""
        self.wanted = Flag()
        """Somebody has found that there may be something to do, while it was at work."""
        self.later_at: float | None = None
        """When rows come again that wait for another attempt, by the monotonic clock."""

    def may_go(self) -> bool:
        """Return True if it may have a turn now."""
        return not self.held_up and (self.trouble is None or monotonic() >= self.again_at)

    def turn(self, tenure: Tenure) -> Report:
        """Run one turn. Look at the tables again before unreadable rows are given up."""
        began, looks = monotonic(), MOST_LOOKS
        while True:
            decider = self.consumer.decider
            try:
                turn = self.consumer.turn(tenure)
            except SourceError as error:
                # A lost connection is waited out: to look at the tables would not mend it.
                if looks <= 0 or (error.may_pass and not isinstance(error, ChangedError)):
                    raise
            except MachineError as error:
                # What an output took before it failed counts in the figures.
                done = self.consumer.so_far()
                done = replace(done, complaint=str(error), seconds=monotonic() - began)
                self._vitals.note_turn(self.name, done, failed=True)
                raise
            else:
                if turn.stale is None:
                    break
                if looks <= 0:
                    # Whoever writes the marks of tables could keep it looking without an end.
                    message = f"The tables changed during each of {MOST_LOOKS + 1} looks; it is tried again later."
                    raise ChangedError(message)
                decider.looks.note(turn.stale)
            looks -= 1
            self.consumer.decider = self._look_again(decider)
        turn = replace(turn, seconds=monotonic() - began)
        if turn.documents or turn.complaint is not None:
            self._vitals.note_turn(self.name, turn)
        self.rests, self.is_paused = not turn.moved, turn.paused
        self.later_at = None if turn.later is None else monotonic() + turn.later
        # Whoever keeps the report does not keep the rows.
        return replace(turn, delivered=())


class SideBySide:
    """The threads. `stopped` ends all of them after the turns that have begun; `goes_on` says who has another."""

    def __init__(self, stopped: Flag, goes_on: Callable[[Line, Report], bool]) -> None:
        self._stopped = stopped
        self._goes_on = goes_on
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
                if not self._goes_on(line, report):
                    return
        except BaseException as error:  # noqa: BLE001  # raised by the publisher's thread, which ends with it
            queue.put((line, error))
        finally:
            queue.put((line, None))
