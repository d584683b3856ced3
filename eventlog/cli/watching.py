"""Shows on standard error how far work is: a bar on a terminal, else a line every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final, Protocol

import click

LOOK_SECONDS: Final = 0.25
"""Seconds between two looks at the tally."""

LINE_SECONDS: Final = 10.0
"""Seconds between two lines."""


class Counting(Protocol):
    @property
    def rows(self) -> int: ...


class RowTally:
    rows = 0


class ProgressLines:
    """Tells how far a stage is in lines, where it has moved since the line before."""

    def __init__(self) -> None:
        self._stage = ""
        self._total: int | None = None
        self._began = self._shown_at = time.monotonic()
        self._rows = 0

    def begin(self, stage: str, rows: int | None) -> None:
        """Begin a stage."""
        self._stage, self._total = stage, rows
        self._began = time.monotonic()
        self._rows = 0

    def show(self, rows: int) -> None:
        """Says how many rows the stage has got through, if it is time for that."""
        now = time.monotonic()
        # Since the last line of any stage: short stages one after the other write none.
        if self._stage and rows != self._rows and now - self._shown_at >= LINE_SECONDS:
            self._shown_at, self._rows = now, rows
            click.echo(progress_line(self._stage, rows, self._total, now - self._began), err=True)


class Bar:
    """Draws how far a stage is."""

    def __init__(self, drawn: Any) -> None:
        self._drawn = drawn
        self._task: Any = None
        self._began = 0.0

    def begin(self, stage: str, rows: int | None) -> None:
        """Begin a stage; the one before is done."""
        if self._task is not None:
            # Only the stage that is under way has a bar.
            self._drawn.remove_task(self._task)
        self._began = time.monotonic()
        self._task = self._drawn.add_task(stage, total=rows, rate="")

    def show(self, rows: int) -> None:
        """Draws how many rows the stage has got through."""
        if self._task is not None:
            # At the first look no time may have passed.
            seconds = max(time.monotonic() - self._began, 0.001)
            self._drawn.update(self._task, completed=rows, rate=f"{rows / seconds:,.0f} rows/s")


class Watching:
    """Looks at a tally again and again while stages begin and end."""

    def __init__(self, shown: ProgressLines | Bar) -> None:
        self._shown = shown
        self._tally: Counting | None = None
        self._before = 0

    def begin(self, stage: str, rows: int | None, tally: Counting) -> None:
        """Begin a stage; the tally continues."""
        self._before, self._tally = tally.rows, tally
        self._shown.begin(stage, rows)

    def look(self) -> None:
        """Shows how far the tally is."""
        if self._tally is not None:
            self._shown.show(self._tally.rows - self._before)


class StandardError:
    """Standard error as it is when something is written: lines go above a bar that is drawn.

    Where there is none, they go nowhere.
    """

    def write(self, text: str) -> int:
        return len(text) if sys.stderr is None else sys.stderr.write(text)

    def flush(self) -> None:
        if sys.stderr is not None:
            sys.stderr.flush()

    def isatty(self) -> bool:
        return has_terminal()


@contextmanager
def watching() -> Iterator[Watching]:
    """Show progress during the block."""
    with _show_progress() as shown:
        watch, done = Watching(shown), Event()
        # By a thread: who works only counts, and is never kept by a slow terminal.
        looker = Thread(target=_look, args=(watch, done), daemon=True)
        looker.start()
        try:
            yield watch
        finally:
            done.set()
            looker.join()


def progress_line(stage: str, rows: int, total: int | None, seconds: float) -> str:
    """Describe a stage's progress in one line."""
    rate = rows / seconds if seconds > 0 else 0.0
    done = f"{rows:,}"
    if total:
        done += f" of {total:,}"
    unit = "row" if (total or rows) == 1 else "rows"
    line = f"{stage}: {done} {unit}, {rate:,.0f} rows/s"
    if total and rate:
        # The total may be an estimate, and less than there are.
        line += f", {max(0.0, (total - rows) / rate):,.0f} s left"
    return line


def _look(watch: Watching, done: Event) -> None:
    while not done.wait(LOOK_SECONDS):
        watch.look()


def has_terminal() -> bool:
    """Return True if there is a terminal for a progress bar."""
    # Python has none where its descriptor was closed from the beginning.
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def _show_progress() -> Iterator[ProgressLines | Bar]:
    if not has_terminal():
        yield ProgressLines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    # On standard error: the report goes to standard output, perhaps into a pipe.
    with Progress(*columns, console=Console(stderr=True), transient=True) as drawn:
        yield Bar(drawn)
