"""Enters in the log's marks how the outputs stand, for a page or `eventlog status` anywhere; never in a cycle's way."""

from __future__ import annotations

from time import monotonic
from typing import Final

from eventlog.delivery.output import OutputStates, newest, read_output_states, write_output_states
from eventlog.sources.log.lock import LogLock
from eventlog.sources.marks import OUTPUTS, Marks

ENTRY_SECONDS: Final = 2.0
"""Seconds between two entries: a transaction of one statement that need not be on the disk."""


class Ledger:
    """Remembers what was entered, so that nothing is written when nothing has changed."""

    def __init__(self, lock: LogLock) -> None:
        self._lock = lock
        self._former: OutputStates | None = None
        self._seen: OutputStates = {}
        self._entered = float("-inf")

    def enter(self, present: OutputStates, *, now: bool = False) -> None:
        """Enters how they stand, if that is news and it is time for that or must be `now`."""
        if present == self._seen or not (now or monotonic() - self._entered >= ENTRY_SECONDS):
            return
        log = self._lock.log
        with log.transaction() as connection:
            if self._former is None:
                former = read_output_states(Marks(log).get(connection, OUTPUTS))
                self._former = {name: mine for name, mine in former.items() if name in present}
            self._lock.mark(connection, OUTPUTS, write_output_states(newest(self._former, present)), soon=True)
        self._seen, self._entered = present, monotonic()
