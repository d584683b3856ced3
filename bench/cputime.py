"""CPU seconds of a whole process tree: what work costs, however many others want the machine meanwhile."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event, Thread
from time import thread_time

LOOK_SECONDS = 0.5
TICKS = os.sysconf("SC_CLK_TCK")
PARENT, USER, SYSTEM, START = 1, 11, 12, 19
"""Where fields of /proc/PID/stat stand behind the name."""

Process = tuple[int, int]
"""A process by its number and its start: numbers come again."""


class TreeTime:
    """Counts what this process and all below it use from now on, without what it uses itself to look.

    It looks twice a second and remembers those that have ended: Spark ignores its workers when they end, so that the kernel
    adds their times to nobody's.
    """

    def __init__(self) -> None:
        self._root = os.getpid()
        self._done = Event()
        self._own = 0.0
        self._before = self._looked()
        self._seen = dict(self._before)
        self._looker = Thread(target=self._look, daemon=True)
        self._looker.start()

    def stop(self) -> float:
        """The seconds."""
        self._done.set()
        self._looker.join()
        self._seen |= self._looked()
        return sum(spent - self._before.get(process, 0.0) for process, spent in self._seen.items()) - self._own

    def _look(self) -> None:
        while not self._done.wait(LOOK_SECONDS):
            self._seen |= self._looked()
        self._own = thread_time()

    def _looked(self) -> dict[Process, float]:
        parents: dict[int, int] = {}
        spent: dict[Process, float] = {}
        for place in Path("/proc").glob("[0-9]*"):
            try:
                told = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            number = int(place.name)
            parents[number] = int(told[PARENT])
            spent[number, int(told[START])] = (int(told[USER]) + int(told[SYSTEM])) / TICKS
        return {process: seconds for process, seconds in spent.items() if _is_below(process[0], self._root, parents)}


def _is_below(process: int, root: int, parents: dict[int, int]) -> bool:
    while process and process != root:
        process = parents.get(process, 0)
    return process == root
