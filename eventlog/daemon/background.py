"""Work beside publishing: a thread for each, which runs while this publisher has the lock and never in a turn."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, wait
from functools import partial
from typing import Final

from structlog.stdlib import BoundLogger

from eventlog.core.plugins import BackgroundWork
from eventlog.core.secrets import make_readable
from eventlog.publisher.threads import beside

STOP_SECONDS: Final = 5.0
"""So long the end of work is waited for; what takes longer ends by itself and may keep nothing any more."""


class Background:
    """The work of one publisher; whoever takes the lock begins it, and whoever loses it or ends, ends it."""

    def __init__(self, journal: BoundLogger) -> None:
        self._journal = journal
        self._running: list[tuple[BackgroundWork, Future[None]]] | None = None

    @property
    def begun(self) -> bool:
        return self._running is not None

    def begin(self, works: Iterable[BackgroundWork]) -> None:
        self._running = [(work, beside("eventlog-background", partial(self._run, work))) for work in works]

    def end(self) -> None:
        running, self._running = self._running or [], None
        for work, _ in running:
            work.stop()
        wait([ending for _, ending in running], STOP_SECONDS)

    def _run(self, work: BackgroundWork) -> None:
        try:
            work.run()
        except Exception as error:  # noqa: BLE001  # work in the background ends no publisher
            self._journal.error("background_failed", error=make_readable(f"{type(error).__name__}: {error}"))
