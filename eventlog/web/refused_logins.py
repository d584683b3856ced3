"""Refused logins: counted each, and written a few times an hour, whoever tries however many tokens."""

from __future__ import annotations

from asyncio import TimerHandle, get_running_loop
from typing import Final

from structlog.stdlib import BoundLogger

LINE_SECONDS: Final = 600.0
"""Seconds between two lines of the journal about refused logins."""


class RefusedLogins:
    """Counts wrong tokens. The first is written at once; those of the next ten minutes are one line."""

    def __init__(self, journal: BoundLogger) -> None:
        self.total = 0
        self._journal = journal
        self._unwritten = 0
        self._peer = ""
        self._timer: TimerHandle | None = None

    def count(self, peer: str) -> None:
        """Count one; called in the event loop."""
        self.total += 1
        self._unwritten += 1
        self._peer = peer
        if self._timer is None:
            self._write_and_wait()

    def write(self) -> None:
        """Write how many there were since the last line, and where the last one came from."""
        if self._unwritten:
            self._journal.warning("login_refused", count=self._unwritten, peer=self._peer)
            self._unwritten = 0

    def _write_and_wait(self) -> None:
        self.write()
        self._timer = get_running_loop().call_later(LINE_SECONDS, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        if self._unwritten:
            self._write_and_wait()
