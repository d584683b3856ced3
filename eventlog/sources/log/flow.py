"""Whether a log flows: what its waiting rows wait for, who publishes it, and the one word that follows from that.

A row waits because its turn has not come yet; because somebody holds it, or a row of its object before it; because its
time has not come; because its table may not be read; or because a receiver did not take it and it is offered again.
Law: the word is decided here, by `state_of`, from facts; the terminal, the page, metrics and checks only say it.

Rows that nobody holds and whose time has come make up the lag. What waits because somebody wants it does not.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, Protocol, get_args

from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import Connection
from sqlalchemy.sql.elements import TextClause

from eventlog.core.plural import duration
from eventlog.core.rules.screen import Identities
from eventlog.core.rules.times import moment
from eventlog.sources.log.backlog import Pace, Rate, rate
from eventlog.sources.log.left_out import EVER, Ahead, LeftOut, Passed, Rows, held_ahead, read_held, read_retries
from eventlog.sources.log.lock import read_holder
from eventlog.sources.log.owed import Resumed, read_resumed
from eventlog.sources.log.reading import written_tables
from eventlog.sources.marks import (
    IN_HAND,
    PACE,
    PUBLISHER,
    RETRIED,
    Marks,
    Stretches,
    notes_of,
    read_runs,
    value_of,
)
from eventlog.sql.log import Log

LATE_SECONDS: Final = 300.0
"""Of lag from which on somebody should look, if nothing else is said of how often rows are published."""

PATIENCE_INTERVALS: Final = 10
"""Polling intervals after which a row that waits is one that nobody fetches."""

DAY_SECONDS: Final = 86_400.0

MOST_LOOKS: Final = 100
"""Ways to write objects that are passed over which one look learns at most."""

TOLD_KEYS: Final = 20
"""Of more objects that are passed over, rows are looked at here: MariaDB and MySQL compare each row with each object."""

PAGE_ROWS: Final = 20_000
"""So many rows are looked at here at once."""

FlowState = Literal[
    "flowing", "waiting", "held", "retrying", "lagging", "suspended", "stuck", "unpublished", "untracked"
]
"""How a log goes on, in one word."""

STATES: Final[tuple[FlowState, ...]] = get_args(FlowState)


class Polling(Protocol):
    """The settings of a publisher that say for what rows wait, and how long that is usual."""

    @property
    def polling_interval(self) -> int: ...
    @property
    def time_of_day(self) -> tuple[str, ...]: ...
    @property
    def handle_future_events(self) -> bool: ...
    @property
    def on_retry(self) -> Literal["stop", "object"]: ...


class WaitingParts(Struct, frozen=True, kw_only=True):
    """Rows that wait, each counted once, by what they wait for."""

    ready: int = 0
    """Could be published now."""
    held: int = 0
    """Somebody holds them, or a row of their object before them."""
    retrying: int = 0
    """Their receiver did not take them, or a row that they come after, and they are offered again."""
    suspended: int = 0
    """Their table may not be read, until somebody gives the right."""
    lagging: int = 0
    """All outputs have them but those that lag."""
    not_due: int = 0
    """Their time has not come."""

    @property
    def total(self) -> int:
        return self.ready + self.held + self.retrying + self.suspended + self.lagging + self.not_due

    @property
    def nobody_wants(self) -> int:
        """Rows that nobody asked to wait."""
        return self.ready + self.retrying + self.suspended + self.lagging

    def by_name(self) -> dict[str, int]:
        return asdict(self)


class OutputLag(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far an output is behind the others: the rows that it is owed, the first of them, and how old that is.

    `resumed` is how far it was behind when somebody resumed it, until it was inside its bound once.
    """

    rows: int = 0
    first: int | None = None
    seconds: float | None = None
    paused: bool = False
    resumed: Resumed | None = None


class Flow(Struct, frozen=True, kw_only=True):
    """The facts. `lag` is that of `oldest`, the row that has waited longest of those that nobody holds and that are due.

    `ready_lag` is that of the oldest row that could be published now; a lag is None where nobody can tell it.
    """

    parts: WaitingParts = WaitingParts()
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
    settled: int = 0
    """Rows that were settled in the last minute."""
    patience: float = LATE_SECONDS
    lags: Mapping[str, OutputLag] = {}
    """The outputs that lag behind the others, or that somebody has paused."""

    @property
    def state(self) -> FlowState:
        return state_of(self)

    @property
    def is_late(self) -> bool:
        """Whether a row has waited for longer than is usual, for whatever reason that nobody wants."""
        return self.oldest is not None and _late(self.lag, self.patience)


def state_of(flow: Flow) -> FlowState:
    """How the log goes on; of several words the one that most asks for somebody."""
    parts = flow.parts
    ready_late = parts.ready > 0 and _late(flow.ready_lag, flow.patience)
    if ready_late and flow.publishing and flow.failing:
        return "retrying"
    if ready_late or (flow.is_late and not flow.publishing):
        return "stuck"
    if parts.suspended:
        return "suspended"
    if parts.lagging:
        return "lagging"
    if parts.retrying:
        return "retrying"
    if parts.held:
        return "held"
    if not flow.publishing:
        return "waiting" if parts.ready else "unpublished"
    if parts.ready:
        return "flowing"
    if flow.tracked is False and not flow.settled:
        return "untracked"
    return "waiting" if parts.not_due else "flowing"


def said_of_state(flow: Flow) -> str:
    nobody = "" if flow.publishing else " No publisher works on this log."
    match state_of(flow):
        case "stuck":
            age = "longer than can be said" if flow.lag is None else duration(flow.lag)
            return f"The oldest row, {flow.oldest}, has waited for {age}.{nobody}"
        case "waiting":
            return f"Rows wait.{nobody}" if flow.parts.ready else "Rows wait for their time."
        case "held":
            return f"Somebody holds rows.{nobody}" if nobody else "Somebody holds rows; all others are published."
        case "retrying":
            return f"A receiver did not take rows; they are offered again.{nobody}"
        case "lagging":
            return f"An output lags behind the others, which go on.{nobody}"
        case "suspended":
            return f"Rows wait until their table may be read.{nobody}"
        case "unpublished":
            return "Nothing is ready to be published, and no publisher works on this log."
        case "untracked":
            return "No trigger of eventlog writes this log, and nothing has come in the last minute."
        case "flowing":
            return "Nothing is stuck."


def said_of_parts(flow: Flow) -> Iterator[str]:
    """A sentence for each reason why rows wait, but for their turn that has not come yet."""
    parts = flow.parts
    if parts.held:
        yield f"{_counted(parts.held)} held or behind held ones; row {flow.first_held} is the first."
    if parts.retrying:
        yield f"{_counted(parts.retrying)} offered again, because a receiver did not take a row."
    if parts.suspended:
        yield f"{_counted(parts.suspended)} kept until the publisher may read their table."
    for name, lag in flow.lags.items():
        paused = ", which somebody has paused" if lag.paused else ""
        yield f"{_counted(lag.rows) if lag.rows else 'Nothing is'} kept for {name}{paused}."
    if parts.not_due:
        yield f"{_counted(parts.not_due)} kept until their time comes."


def _counted(rows: int) -> str:
    return "1 row is" if rows == 1 else f"{rows:,} rows are"


def read_flow(connection: Connection, log: Log, settings: Polling, *, failing: bool = False) -> tuple[Flow, Rate]:
    """The facts of a log as they are now, but for its triggers, and how fast it is.

    `failing` says that an output did not take the last that it was given. Rows are looked at one by one only where some
    of them are passed over; else this reads nothing but the index.
    """
    marks = Marks(log).all(connection)
    now = moment(log.rows(connection, log.query("clock_now"))[0][0])
    seconds = 0.0 if now is None else now.replace(tzinfo=dt.UTC).timestamp()
    settled = rate(value_of(marks.get(PACE), Pace) or (), seconds)
    look = FlowLook(connection, log, settings, marks, now)
    parts = look.parts()
    oldest, lag = look.oldest(look.free) if parts.nobody_wants else (None, 0.0)
    if parts.ready in (0, parts.nobody_wants):
        ready_lag = lag if parts.ready else 0.0
    else:
        _, ready_lag = look.oldest(look.ready, look.beyond_owed)
    return Flow(
        parts=parts,
        oldest=oldest,
        lag=lag,
        ready_lag=ready_lag,
        first_held=look.first_held,
        publishing=_published(marks.get(PUBLISHER), now),
        failing=failing and IN_HAND in marks,
        settled=settled.rows,
        patience=patience(settings),
        lags=look.lags(),
    ), settled


def read_lags(connection: Connection, log: Log, settings: Polling) -> dict[str, OutputLag]:
    """How far outputs are behind the others, and which are paused."""
    now = moment(log.rows(connection, log.query("clock_now"))[0][0])
    return FlowLook(connection, log, settings, Marks(log).all(connection), now).lags()


def patience(settings: Polling) -> float:
    """Seconds after which a row that waits is late."""
    if settings.time_of_day:
        return DAY_SECONDS + LATE_SECONDS
    return max(LATE_SECONDS, float(PATIENCE_INTERVALS * settings.polling_interval))


class _Kind(Struct, frozen=True, kw_only=True):
    """Rows that are left when others are left out: those of objects that are passed over, of tables, and by their record."""

    passed: Passed
    kept: str
    unread: str = ""


class FlowLook:
    """One look at what waits. Each kind leaves out what the one before it leaves out, so that a row is counted once."""

    def __init__(
        self, connection: Connection, log: Log, settings: Polling, marks: Mapping[str, str], now: dt.datetime | None
    ) -> None:
        self._connection = connection
        self._log = log
        self._now = now
        self._identities = Identities(None)
        self._among = "among_due" if settings.handle_future_events else "among_all"
        self._marks = marks
        left_out = LeftOut(log)
        left_out.learn(marks)
        self._lags, self._paused, self._owed = left_out.owed, left_out.paused, left_out.any_owed
        held = read_held(connection, log, left_out.held)
        retries = read_retries(connection, log, read_runs(marks.get(RETRIED, ""))).rows
        self.first_held = min((number for number, _, _ in held), default=None)
        self._stopped = bool(retries) and settings.on_retry == "stop"
        ahead = held_ahead(held, notes_of(marks))
        tried = [(EVER, retry.table, retry.key) for retry in retries]
        unread = written_tables(left_out.unread.notes)
        kept = "kept_free" if held else "kept_any"
        self._due = _Kind(passed=Passed(), kept="kept_any")
        self.free = _Kind(passed=self._learnt(ahead), kept=kept)
        self._readable = _Kind(passed=self.free.passed, kept=kept, unread=unread)
        self.ready = _Kind(passed=self._learnt([*ahead, *tried]), kept="kept_ready" if retries else kept, unread=unread)

    def parts(self) -> WaitingParts:
        """What the rows wait for. Kinds that leave out no more than the one before are not counted anew."""
        waiting = int(self._ask(self._log.query("count_waiting"), {})[0][0])
        due = self._count(self._due) if waiting and self._among == "among_due" else waiting
        free = self._count(self.free) if due and self.free != self._due else due
        readable = self._count(self._readable) if free and self._readable.unread else free
        ready = 0 if self._stopped else readable
        if ready and self.ready.kept != self._readable.kept:
            ready = self._count(self.ready)
        retrying = max(0, readable - ready)
        lagging = min(len(self._owed), ready)
        return WaitingParts(
            ready=ready - lagging,
            lagging=lagging,
            retrying=retrying,
            suspended=max(0, free - readable),
            held=max(0, due - free),
            not_due=max(0, waiting - due),
        )

    @property
    def beyond_owed(self) -> int:
        """The last number that a lagging output is owed: what those who do not lag get comes behind it, but for late rows."""
        return self._owed.parts[-1][1] if self._owed else EVER

    def lags(self) -> dict[str, OutputLag]:
        """How far outputs are behind, and which are paused."""
        return {name: self._lag(name) for name in sorted({*self._lags, *self._paused})}

    def _lag(self, name: str) -> OutputLag:
        owed, paused = self._lags.get(name, Stretches()), name in self._paused
        if not owed:
            return OutputLag(paused=paused)
        first = owed.parts[0][0]
        found = self._oldest(self._due, 1, first - 1)
        seconds = self._aged(found[0])[1] if found and int(found[0][0]) in owed else None
        resumed = read_resumed(self._marks, name)
        return OutputLag(rows=len(owed), first=first, seconds=seconds, paused=paused, resumed=resumed)

    def oldest(self, kind: _Kind, beyond: int = EVER) -> tuple[int | None, float | None]:
        """The row of a kind that has waited longest, and for how many seconds; of those with numbers beyond that one."""
        if len(kind.passed) > TOLD_KEYS:
            pages = (row for page in self._pages(kind) for row in page)
            return next((self._aged(row) for row in pages if int(row[0]) > beyond), (None, 0.0))
        for _ in range(MOST_LOOKS):
            found = self._oldest(kind, 1, beyond)
            _, news = kind.passed.free(found, self._identities)
            if not news:
                return self._aged(found[0]) if found else (None, 0.0)
        return None, 0.0

    def _count(self, kind: _Kind) -> int:
        if len(kind.passed) > TOLD_KEYS:
            return sum(map(len, self._pages(kind)))
        if kind.passed:
            self.oldest(kind)  # which learns how rows write objects that are passed over
        return int(self._ask(*self._asked("count_part", kind))[0][0])

    def _pages(self, kind: _Kind) -> Iterator[Rows]:
        """The rows of a kind, page by page, chosen here and not by the database."""
        beyond, every = EVER, replace(kind, passed=Passed())
        while rows := self._oldest(every, PAGE_ROWS, beyond):
            beyond = int(rows[-1][0])
            yield kind.passed.free(rows, self._identities)[0]

    def _oldest(self, kind: _Kind, limit: int, beyond: int = EVER) -> Rows:
        """The rows of a kind that have waited longest: number, time and object."""
        query, parameters = self._asked("oldest_waiting", kind)
        return self._ask(query, {**parameters, "beyond": beyond, "limit": limit})

    def _aged(self, row: tuple[Any, ...]) -> tuple[int, float | None]:
        return int(row[0]), self._age(self._log.utc(row[1]))

    def _learnt(self, ahead: Iterable[Ahead]) -> Passed:
        passed = Passed()
        passed.learn(ahead, self._identities)
        return passed

    def _age(self, time: str | None) -> float | None:
        since = moment(time) if time else None
        return None if since is None or self._now is None else max(0.0, (self._now - since).total_seconds())

    def _asked(self, query: str, kind: _Kind) -> tuple[TextClause, dict[str, Any]]:
        parameters: dict[str, Any] = {"passed": kind.passed.told()} if kind.passed else {}
        if kind.unread:
            parameters["unread"] = kind.unread
        holes = {"except": "except_passed" if kind.passed else "except_none"}
        unread = "unread_tables" if kind.unread else "unread_none"
        return self._log.query(query, among=self._among, unread=unread, kept=kind.kept, **holes), parameters

    def _ask(self, query: TextClause, parameters: Mapping[str, Any]) -> Rows:
        return self._log.rows(self._connection, query, parameters)


def _published(mark: str | None, now: dt.datetime | None) -> bool:
    return mark is not None and now is not None and not read_holder(mark).is_over(now)


def _late(lag: float | None, patience: float) -> bool:
    """A lag that nobody can tell is late: somebody must look at that row."""
    return lag is None or lag > patience
