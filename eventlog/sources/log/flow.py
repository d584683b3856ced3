"""Whether a log flows: what its rows wait for, who publishes it, and the word that follows.

A row waits for its turn; because somebody holds it, or a row of its object before it; for its time;
because its table cannot be read; or because a receiver did not take it and it is offered again.
Law: the word is decided here, by `Flow.state`, from facts; the terminal, the page, metrics and
checks only say it.

The lag is of rows that nobody holds and whose time has come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, Protocol, get_args

from msgspec import Struct

LATE_SECONDS: Final = 300.0
"""From this lag on somebody should look, where rows are published often."""

PATIENCE_INTERVALS: Final = 10
"""Polling intervals after which a row that waits is one that nobody fetches."""

DAY_SECONDS: Final = 86_400.0

FlowState = Literal[
    "flowing", "waiting", "held", "retrying", "lagging", "suspended", "stuck", "unpublished", "untracked"
]
"""How a log goes on, in one word."""

STATES: Final[tuple[FlowState, ...]] = get_args(FlowState)

WINDOW_SECONDS: Final = 60
"""Seconds in which rows count as settled of late."""

STEP_SECONDS: Final = 5
"""Seconds that are counted together."""

Pace = tuple[tuple[int, int], ...]
"""When steps began, in seconds since 1970 by the database's clock, and rows settled in each."""


def count_finished(pace: Pace, rows: int, now: float) -> Pace:
    """Add rows finished now to the counts; drop counts that are too old."""
    step = int(now) // STEP_SECONDS * STEP_SECONDS
    counts = dict(_recent(pace, now))
    counts[step] = counts.get(step, 0) + rows
    return tuple(sorted(counts.items()))


def count_recently_finished(pace: Pace, now: float) -> int:
    """Count the rows finished in the last minute."""
    return sum(rows for _, rows in _recent(pace, now))


def _recent(pace: Pace, now: float) -> Iterator[tuple[int, int]]:
    """Yield the counts of the window, without those ahead of a clock set back."""
    return ((begin, rows) for begin, rows in pace if now - WINDOW_SECONDS < begin <= now)


class Polling(Protocol):
    """The settings of a publisher that say for what rows wait, and how long that is usual."""

    @property
    def polling_interval(self) -> int: ...
    @property
    def time_of_day(self) -> tuple[str, ...]: ...
    @property
    def handle_future_events(self) -> bool: ...
    @property
    def max_paused_seconds(self) -> float: ...
    @property
    def max_paused_rows(self) -> int: ...


class WaitingParts(Struct, frozen=True, kw_only=True):
    """Rows that wait, each counted once, by what they wait for."""

    ready: int = 0
    """Could be published now."""
    held: int = 0
    """Somebody holds them, or a row of their object before them."""
    retrying: int = 0
    """Their receiver did not take them, or a row before them, and they are offered again."""
    suspended: int = 0
    """Their table cannot be read now: it is locked or damaged, or a right is missing."""
    lagging: int = 0
    """All outputs have them but those that lag."""
    not_due: int = 0
    """Their time has not come."""

    @property
    def total(self) -> int:
        return self.ready + self.held + self.retrying + self.suspended + self.lagging + self.not_due

    @property
    def nobody_wants(self) -> int:
        """Count waiting rows that no operator or setting holds."""
        return self.ready + self.retrying + self.suspended + self.lagging


class Resumed(Struct, frozen=True, array_like=True):
    """How far an output was behind when somebody resumed it: it may catch up from there."""

    rows: int = 0
    seconds: float = 0.0


class OutputLag(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far an output is behind the others: the rows that it lacks, the first, and its age.

    `resumed` is how far it was behind when somebody resumed it, until it was inside its bound once.
    `pause` says since when it is paused, by whom and why.
    """

    rows: int = 0
    first: int | None = None
    seconds: float | None = None
    paused: bool = False
    resumed: Resumed | None = None
    pause: str | None = None
    overdue: bool = False
    """It is paused for longer, or further behind, than the publisher's settings say."""


class Flow(Struct, frozen=True, kw_only=True):
    """The facts. `lag` is that of `oldest`, the first row that nobody holds and that is due.

    `ready_lag` is that of the oldest row that could be published now. A lag that nobody can tell
    is None.
    """

    parts: WaitingParts = WaitingParts()
    unread_tables: Mapping[str, int] = {}
    """How many tables cannot be read, by the reason."""
    oldest: int | None = None
    lag: float | None = 0.0
    ready_lag: float | None = 0.0
    first_held: int | None = None
    publishing: bool = False
    """Somebody has the lock, and the lease has not run out."""
    failing: bool = False
    """The batch in hand could not be delivered, and is tried again."""
    tracked: bool | None = None
    """Triggers of ours write the log; None where nobody has looked."""
    finished: int = 0
    """Rows that were settled in the last minute."""
    patience: float = LATE_SECONDS
    lags: Mapping[str, OutputLag] = {}
    """The outputs that lag behind the others, or that somebody has paused."""

    @property
    def state(self) -> FlowState:
        """Return the state of the log: the most urgent one."""
        parts = self.parts
        ready_late = parts.ready > 0 and _late(self.ready_lag, self.patience)
        if ready_late and self.publishing and self.failing:
            return "retrying"
        if ready_late or (self.is_late and not self.publishing):
            return "stuck"
        if parts.suspended:
            return "suspended"
        if parts.lagging:
            return "lagging"
        if parts.retrying:
            return "retrying"
        if parts.held:
            return "held"
        if not self.publishing:
            return "waiting" if parts.ready else "unpublished"
        if parts.ready:
            return "flowing"
        # Not `not`: None means that nobody has looked.
        if self.tracked is False and not self.finished:
            return "untracked"
        return "waiting" if parts.not_due else "flowing"

    @property
    def is_late(self) -> bool:
        """Return True if a row not held on purpose has waited too long."""
        return self.oldest is not None and _late(self.lag, self.patience)


def patience(settings: Polling) -> float:
    """Return seconds after which a waiting row is late."""
    # It publishes at these times only, and they may be a day apart.
    if settings.time_of_day:
        return DAY_SECONDS + LATE_SECONDS
    return max(LATE_SECONDS, float(PATIENCE_INTERVALS * settings.polling_interval))


def _late(lag: float | None, patience: float) -> bool:
    """Return True if the lag exceeds `patience`, or is unknown."""
    return lag is None or lag > patience
