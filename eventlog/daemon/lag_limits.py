"""How far an output may be behind the others, and what happens then: it is paused, or the others wait for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Final

from msgspec import Struct
from structlog.stdlib import BoundLogger

from eventlog.config.build import name_of
from eventlog.config.settings import Config
from eventlog.core.plural import count_words
from eventlog.daemon.log_session import Post
from eventlog.daemon.workers import Line
from eventlog.sources.log.flow import OutputLag, Resumed

LOOK_SECONDS: Final = 2.0
"""Seconds between two looks at how far outputs are behind."""


class MostBehind(Struct, frozen=True, kw_only=True):
    """How far an output may lag; 0 is no bound. Beyond it `pause` pauses it, else all others wait.

    An output that somebody has resumed may catch up. It is paused again when it passes its bound
    after it was inside, or when it gets further behind by as much again as when it was resumed.
    """

    rows: int = 0
    seconds: float = 0
    pause: bool = False

    def is_passed(self, lag: OutputLag, resumed: Resumed | None = None) -> bool:
        """Return True if an output is too far behind, counted from its lag when it was resumed."""
        since = resumed or Resumed()
        rows, seconds = lag.rows - since.rows, (lag.seconds or 0.0) - since.seconds
        return bool(self.rows and rows > self.rows) or bool(self.seconds and seconds > self.seconds)

    def is_paused_at(self, lag: OutputLag) -> bool:
        """Return True if an output with this lag is paused."""
        return self.pause and self.is_passed(lag, lag.resumed)


def most_behind_of(config: Config) -> dict[str, MostBehind]:
    """Map outputs to their greatest lag, where it is set."""
    return {
        name_of(output): MostBehind(
            rows=output.max_behind_rows, seconds=output.max_behind_seconds, pause=output.when_behind == "pause"
        )
        for output in config.output
        if output.max_behind_rows or output.max_behind_seconds
    }


class MostBehindWatch:
    """Looks now and then how far outputs are behind that have a bound."""

    def __init__(self, post: Post, most: Mapping[str, MostBehind], journal: BoundLogger) -> None:
        self._post = post
        self._most = most
        self._journal = journal
        self._next_look = 0.0
        self._waited_for: str | None = None

    def hold_up(self, lines: Sequence[Line]) -> None:
        """Let all others wait for an output that is too far behind, or pause that one if configured."""
        if not self._most:
            return
        if monotonic() >= self._next_look:
            self._next_look = monotonic() + LOOK_SECONDS
            self._waited_for = self._find_awaited_output()
        for line in lines:
            line.held_up = self._waited_for is not None and line.name != self._waited_for

    def _find_awaited_output(self) -> str | None:
        awaited = None
        for name, lag in self._post.lags().items():
            most = self._most.get(name, MostBehind())
            if lag.paused:
                continue
            if not most.is_passed(lag):
                # It was inside its bound, so from now on the bound counts as it is written.
                if lag.resumed is not None:
                    self._post.caught_up(name)
            elif most.is_paused_at(lag):
                self._post.pause(name, f"it was {count_words(lag.rows, 'row')} behind.")
                self._journal.error("output_paused", output=name, rows=lag.rows, seconds=lag.seconds)
            elif not most.pause:
                if self._waited_for != name:
                    self._journal.error("others_wait_for_output", output=name, rows=lag.rows, seconds=lag.seconds)
                awaited = name
        return awaited
