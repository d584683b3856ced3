"""Several ranges of a load at once, each in a thread and a session of its own: drivers wait without holding others up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread
from typing import Final

from eventlog.admin.refresh.ranges import Stand
from eventlog.admin.refresh.stretches import Refresh
from eventlog.core.errors import MachineError

GO_ON: Final = "What was written stands, and the same command goes on from there."


def work_on(load: Refresh, stands: Sequence[Stand], jobs: int, tell: Callable[[int], None]) -> None:
    """Goes through all ranges, so many at once, and tells after each stretch how many rows the load has written.

    What goes wrong in one range, or whoever interrupts, ends the others after the stretch in hand; it is raised then.
    """
    crew = RefreshJobs(load, stands, tell)
    ends = [crew.start() for _ in range(jobs)]
    try:
        _await(ends)
    except BaseException:
        load.gate.close()
        _await(ends)
        raise
    if crew.failures:
        raise _with_the_way_out(crew.failures[0])
    load.end(stands)


class RefreshJobs:
    """The ranges that are left, and who takes them."""

    def __init__(self, load: Refresh, stands: Sequence[Stand], tell: Callable[[int], None]) -> None:
        self._load = load
        self._left = deque(stand for stand in stands if not stand.done)
        self._rows = {stand.place: stand.rows for stand in stands}
        self._tell = tell
        self._telling = Lock()
        self.failures: list[BaseException] = []

    def start(self) -> Event:
        """Has a thread work; what is set when it ends, because Python may take one for ended whose join is interrupted."""
        end = Event()
        Thread(target=self._work, args=(end,), daemon=True).start()
        return end

    def _work(self, end: Event) -> None:
        """Takes one range after the other until none is left, or something goes wrong anywhere."""
        try:
            while (stand := self._taken()) is not None:
                for step in self._load.stretches(stand):
                    self._count(step)
        except BaseException as failure:  # noqa: BLE001  # the thread that waits for this one raises it
            self.failures.append(failure)
            self._load.gate.close()
        finally:
            end.set()

    def _taken(self) -> Stand | None:
        with self._telling:
            return self._left.popleft() if self._left else None

    def _count(self, stand: Stand) -> None:
        with self._telling:
            self._rows[stand.place] = stand.rows
            self._tell(sum(self._rows.values()))


def _await(ends: Sequence[Event]) -> None:
    for end in ends:
        end.wait()


def _with_the_way_out(failure: BaseException) -> BaseException:
    """What went wrong; where trying again makes sense, that it goes on where it was."""
    if isinstance(failure, MachineError):
        failure.hint = f"{failure.hint} {GO_ON}" if failure.hint else GO_ON
    return failure
