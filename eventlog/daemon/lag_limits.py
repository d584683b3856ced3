"""How far an output may be behind the others, and what happens then: it is paused, or the others wait for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Final

from structlog.stdlib import BoundLogger

from eventlog.config.build import name_of
from eventlog.core.outputs import OutputKeys
from eventlog.core.plural import count_words
from eventlog.daemon.log_session import Post
from eventlog.daemon.workers import Line
from eventlog.sources.log.flow import OutputLag, Resumed

LOOK_SECONDS: Final = 2.0
"""Seconds between two looks at how far outputs are behind."""


def is_too_far_behind(output: OutputKeys, lag: OutputLag, resumed: Resumed | None = None) -> bool:
    """Return True if an output is too far behind, counted from its lag when it was resumed."""
    since = resumed or Resumed()
    rows, seconds = lag.rows - since.rows, (lag.seconds or 0.0) - since.seconds
    most_rows, most_seconds = output.max_behind_rows, output.max_behind_seconds
    return bool(most_rows and rows > most_rows) or bool(most_seconds and seconds > most_seconds)


def pauses_at(output: OutputKeys, lag: OutputLag) -> bool:
    """Return True if an output with this lag is paused.

    One that somebody has resumed may catch up. It is paused again when it passes its bound after it
    was inside, or when it gets further behind by as much again as when it was resumed.
    """
    return output.when_behind == "pause" and is_too_far_behind(output, lag, lag.resumed)


class MostBehindWatch:
    """Looks now and then how far outputs are behind that have a bound."""

    def __init__(self, post: Post, outputs: Iterable[OutputKeys], journal: BoundLogger) -> None:
        self._post = post
        self._bounded = {
            name_of(output): output for output in outputs if output.max_behind_rows or output.max_behind_seconds
        }
        self._journal = journal
        self._next_look = 0.0
        self._waited_for: str | None = None

    def hold_up(self, lines: Sequence[Line]) -> None:
        """Let all others wait for an output that is too far behind, or pause that one if configured."""
        if not self._bounded:
            return
        if monotonic() >= self._next_look:
            self._next_look = monotonic() + LOOK_SECONDS
            self._waited_for = self._find_awaited_output()
        for line in lines:
            line.held_up = self._waited_for is not None and line.name != self._waited_for

    def _find_awaited_output(self) -> str | None:
        awaited = None
        for name, lag in self._post.lags().items():
            output = self._bounded.get(name)
            if lag.paused:
                continue
            if output is None or not is_too_far_behind(output, lag):
                # It was inside its bound, so from now on the bound counts as it is written.
                if lag.resumed is not None:
                    self._post.caught_up(name)
            elif pauses_at(output, lag):
                self._post.pause(name, f"it was {count_words(lag.rows, 'row')} behind.")
                self._journal.error("output_paused", output=name, rows=lag.rows, seconds=lag.seconds)
            elif output.when_behind != "pause":
                if self._waited_for != name:
                    self._journal.error("others_wait_for_output", output=name, rows=lag.rows, seconds=lag.seconds)
                awaited = name
        return awaited
