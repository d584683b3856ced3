"""How the publisher is doing, counted while it works: what metrics and health checks are made from.

How fast rows are settled and how the outputs stand is entered in the log's marks, for a page or
`eventlog status` anywhere; what waits is counted now and then, for those who watch. Neither is in a
cycle's way. What was counted answers health checks too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from threading import RLock
from time import monotonic, time
from typing import Final, Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import SinkError, SourceError
from eventlog.core.model import Captured, Position, Status
from eventlog.core.proofs import LastProof
from eventlog.core.rules.times import moment
from eventlog.core.secrets import shown
from eventlog.delivery.output import OutputState, OutputStates, failing, newest, read_output_states
from eventlog.delivery.report import Report
from eventlog.publisher.flow import read_flow
from eventlog.sources.log.flow import Flow, Pace, Polling, quickened
from eventlog.sources.log.lock import LogLock
from eventlog.sources.marks import OUTPUTS, PACE, Marks, as_text, value_of
from eventlog.sql.log import Log

QUICK_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Bounds for what a publisher does itself."""

LONG_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0, 86_400.0)
"""Bounds for what may wait until a receiver comes back."""


class Histogram(Struct, frozen=True, kw_only=True):
    """How often something took how long, as Prometheus has it.

    `counts` has one number for each bound, of values that are no larger and above the bound before,
    and one for the rest.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...] = ()
    total: float = 0.0

    def with_value(self, value: float, times: int = 1) -> Self:
        """The same with a value that came so many times."""
        counts = [*self.counts] or [0] * (len(self.bounds) + 1)
        # A bound belongs to its bucket: Prometheus means less or equal.
        counts[bisect_left(self.bounds, value)] += times
        return replace(self, counts=tuple(counts), total=self.total + value * times)

    def buckets(self) -> Iterator[tuple[str, float]]:
        """Each bound, with the number of values that are no larger."""
        counts = self.counts or (0,) * (len(self.bounds) + 1)
        number = 0
        for bound, count in zip((*self.bounds, float("inf")), counts, strict=True):
            # A bucket of Prometheus counts what is in the smaller ones too.
            number += count
            yield "+Inf" if bound == float("inf") else str(bound), number


SILENCE_SECONDS: Final = 300.0
"""Seconds after which a loop that has not moved is taken for dead: longer than a request or a statement may take."""

State = Literal["starting", "standby", "publishing", "failing", "stopping"]

MOST_TABLES: Final = 50
"""So many tables are counted each by itself; whoever writes into a log names the tables."""

OTHER_TABLES: Final = "other"
"""Under this name all further ones are counted."""


class Standby(Struct, frozen=True, kw_only=True):
    """What a publisher that stands by knows of the one that has the lock, by the clock of the
    database in UTC.

    `waiting` rows could be published now, counted up to a limit; for so many seconds they have
    waited while nothing was settled.
    """

    host: str | None = None
    pid: int | None = None
    since: str | None = None
    lease_until: str | None = None
    waiting: int = 0
    stalled_seconds: float = 0.0


class OutputFigures(Struct, frozen=True, kw_only=True):
    """What was counted of one output: documents, shares of batches that failed, and how long it took."""

    documents: int = 0
    failures: int = 0
    shares: Histogram = Histogram(bounds=QUICK_SECONDS)
    """Seconds in which it took its share of a batch."""
    delays: Histogram = Histogram(bounds=LONG_SECONDS)
    """Seconds from the time of a row to when the output had it."""


class VitalsReading(Struct, frozen=True, kw_only=True):
    """The vitals at one moment. Times are seconds since 1970, `silent` is the seconds since the loop last moved."""

    state: State = "starting"
    error: str | None = None
    rows: Mapping[str, int] = {}
    changes: int = 0
    documents: int = 0
    cycles: int = 0
    active_cycles: int = 0
    heartbeats: int = 0
    seconds: float = 0.0
    failures: Mapping[str, int] = {}
    last_cycle: float | None = None
    last_document: float | None = None
    waiting: int | None = None
    lag: float | None = None
    flow: Flow | None = None
    silent: float = 0.0
    outputs: Mapping[str, OutputState] = {}
    figures: Mapping[str, OutputFigures] = {}
    tables: Mapping[str, int] = {}
    """Rows settled, by the table that they name."""
    batches: Histogram = Histogram(bounds=QUICK_SECONDS)
    """Seconds that a batch took from reading to settling."""
    standby: Standby | None = None
    triggers: Mapping[str, int] | None = None
    """How many triggers are in which state; None as long as nobody has looked."""
    failing_triggers: int | None = None
    """How many of them fail every write to their table."""
    proofs: Sequence[LastProof] = ()
    """The last proof of each table, as far as this publisher compares them."""


def seen_by_itself(flow: Flow, reading: VitalsReading) -> Flow:
    """A flow as the process that publishes knows it, which has the lock whatever the lock's mark
    said when it was read.

    The mark may have been read before this process took the lock, and on a busy machine it is
    renewed late.
    """
    if reading.state == "publishing":
        return replace(flow, publishing=True)
    return flow


class PublisherHealth:
    """Counts in the publisher's thread and is read from others; `watched` says that somebody does.

    `on_move` is called when the loop shows that it is alive.
    """

    def __init__(self, *, watched: bool = False, on_move: Callable[[], None] | None = None) -> None:
        self.watched = watched
        self._on_move = on_move
        self._lock = RLock()
        self._reading = VitalsReading()
        self._moved = monotonic()

    def reading(self) -> VitalsReading:
        with self._lock:
            return replace(self._reading, silent=monotonic() - self._moved)

    def moved(self) -> None:
        """The loop is alive."""
        with self._lock:
            self._moved = monotonic()
        if self._on_move is not None:
            self._on_move()

    def now(self, state: State) -> None:
        """What the publisher is about."""
        self._change(state=state, standby=self._reading.standby if state == "standby" else None)

    def stands_by(self, standby: Standby) -> None:
        """What it sees while it stands by."""
        self._change(standby=standby)

    def measured(self, flow: Flow) -> None:
        """What rows wait for, and for how many seconds the oldest does that nobody holds."""
        self._change(waiting=flow.parts.total, lag=flow.lag, flow=flow)

    def looked(self, triggers: Mapping[str, int], failing: int) -> None:
        """How the triggers stand to their tables."""
        self._change(triggers=triggers, failing_triggers=failing)

    def proved(self, proofs: Sequence[LastProof]) -> None:
        """What the last proofs found; told from a thread of its own, which says nothing of the loop."""
        with self._lock:
            self._reading = replace(self._reading, proofs=tuple(proofs))

    def failed(self, error: Exception) -> None:
        """A cycle did not get to its end."""
        kind = {SourceError: "source", SinkError: "sink"}
        blame = next((name for whose, name in kind.items() if isinstance(error, whose)), "other")
        failures = {**self._reading.failures, blame: self._reading.failures.get(blame, 0) + 1}
        self._change(state="failing", error=shown(str(error)), failures=failures)

    def delivered(self, name: str, share: OutputTurn) -> None:
        """An output has had its turn; it may say so from a thread of its own."""
        now = time()
        # Before the lock is taken, and only when somebody looks: this goes over every row.
        delays = list(delays_of(share.events, now)) if self.watched else []
        with self._lock:
            reading = self._reading
            outputs = reading.outputs
            new = stands(outputs.get(name, OutputState()), share, now)
            former = reading.figures.get(name, OutputFigures())
            figures = replace(
                former,
                documents=former.documents + share.documents,
                failures=former.failures + share.failed,
            )
            if share.documents or share.failed:
                figures = replace(figures, shares=former.shares.with_value(share.seconds))
            for seconds, count in delays:
                figures = replace(figures, delays=figures.delays.with_value(seconds, count))
            self._reading = replace(reading, outputs={**outputs, name: new}, figures={**reading.figures, name: figures})

    def serves(self, outputs: Collection[str]) -> None:
        """These are the outputs from now on."""
        former, figures = self._reading.outputs, self._reading.figures
        self._change(
            outputs={name: former[name] for name in former if name in outputs},
            figures={name: figures.get(name, OutputFigures()) for name in outputs},
        )

    def beat(self) -> None:
        self._change(heartbeats=self._reading.heartbeats + 1, last_document=time())

    def finished(self, report: Report, seconds: float) -> None:
        """A cycle came to its end."""
        former = self._reading
        rows, tables = Counter(former.rows), dict(former.tables)
        for status, count in report.statuses.items():
            # N is a row that will be offered again: it counts when it has ended.
            if status is not Status.NEW:
                rows[status.value] += count
        for table, count in report.tables.items():
            # Whoever writes into a log names the tables, and may name a million.
            name = table if table in tables or len(tables) < MOST_TABLES else OTHER_TABLES
            tables[name] = tables.get(name, 0) + count
        self._change(
            state="publishing",
            error=None,
            rows=rows,
            changes=former.changes + report.changes,
            documents=former.documents + report.documents,
            cycles=former.cycles + 1,
            active_cycles=former.active_cycles + bool(report.documents),
            seconds=former.seconds + seconds,
            batches=former.batches.with_value(seconds) if report.events else former.batches,
            tables=tables,
            last_cycle=time(),
            last_document=time() if report.documents else former.last_document,
        )

    def _change(self, **facts: object) -> None:
        with self._lock:
            self._reading = replace(self._reading, **facts)
        self.moved()


class OutputTurn(Struct, frozen=True, kw_only=True):
    """What one output did in a turn: documents, the last one with its last row, and the rows that
    it has now.

    `error` is what a receiver had against a row, or what broke the turn off that has `failed`.
    """

    documents: int = 0
    seconds: float = 0.0
    last: tuple[str, Position] | None = None
    events: Iterable[Captured] = ()
    error: str | None = None
    failed: bool = False


def stands(former: OutputState, share: OutputTurn, now: float) -> OutputState:
    """How an output stands after its turn, whether it ended well or not."""
    new = replace(former, documents=former.documents + share.documents)
    if share.last is not None:
        document, position = share.last
        new = replace(new, document=document, position=position, at=now)
    if share.error is None:
        return new
    return replace(new, error=shown(share.error), failed_at=now, failing_since=new.began_to_fail or now)


def delays_of(events: Iterable[Captured], now: float) -> Iterator[tuple[float, int]]:
    """The seconds from the time of each row that an output has just taken until now, and of how many rows; by two clocks."""
    for time_of_rows, count in Counter(event.time for event in events).items():
        at = None if time_of_rows is None else moment(time_of_rows)
        if at is not None:
            # Times of rows are in UTC and name no zone; the clock of the database may be ahead of
            # ours.
            yield max(0.0, now - at.replace(tzinfo=UTC).timestamp()), count


ENTRY_SECONDS: Final = 2.0
"""Seconds between two entries: a transaction of one or two statements that need not be on the disk."""


class Ledger:
    """Remembers what was entered, so that nothing is written when nothing has changed."""

    def __init__(self, lock: LogLock) -> None:
        self._lock = lock
        self._former: OutputStates | None = None
        self._seen: OutputStates = {}
        # Before every time, so that the first entry is due at once.
        self._entered = float("-inf")

    def enter(self, present: OutputStates, *, now: bool = False) -> None:
        """Enters how they stand, if that is news and it is time for that or must be `now`."""
        if present == self._seen or not (now or monotonic() - self._entered >= ENTRY_SECONDS):
            return
        log = self._lock.log
        with log.transaction() as connection:
            # Read once: nobody else enters this while this publisher has the lock.
            if self._former is None:
                former = read_output_states(Marks(log).get(connection, OUTPUTS))
                self._former = {name: mine for name, mine in former.items() if name in present}
            self._lock.mark(connection, OUTPUTS, as_text(newest(self._former, present)), soon=True)
        self._seen, self._entered = present, monotonic()


class Tempo:
    """Counts settled rows, and enters them when that is due."""

    def __init__(self, lock: LogLock) -> None:
        self._lock = lock
        self.rows = 0
        """Settled since the last entry."""
        self._pace: Pace | None = None
        self._entered = float("-inf")

    def enter(self, *, now: bool = False) -> None:
        """Enters what was counted, if there is something and it is time for that or must be `now`."""
        if not self.rows or not (now or monotonic() - self._entered >= ENTRY_SECONDS):
            return
        log = self._lock.log
        with log.transaction() as connection:
            if self._pace is None:
                self._pace = value_of(Marks(log).get(connection, PACE), Pace) or ()
            # By the database's clock, by which whoever reads it reckons too.
            pace = quickened(self._pace, self.rows, log.now(connection).replace(tzinfo=UTC).timestamp())
            self._lock.mark(connection, PACE, as_text(pace), soon=True)
        self._pace, self.rows, self._entered = pace, 0, monotonic()


MEASURE_SECONDS: Final = 15.0
"""Seconds between two measurements: counting reads the index of the rows that wait."""

PART: Final = 50
"""Measuring that takes long, because rows are held, is done seldom: it takes a fiftieth of the time at most."""


class Gauge:
    """Counts what waits when somebody watches, and not too often. Who stands by does it too: the
    one who publishes may hang.
    """

    def __init__(self, log: Log, settings: Polling) -> None:
        self._log = log
        self._settings = settings
        self._next = 0.0

    def measure(self, vitals: PublisherHealth) -> None:
        """Takes the figures if they are old."""
        if not vitals.watched or monotonic() < self._next:
            return
        began, known = monotonic(), vitals.reading()
        with self._log.moment() as connection:
            # From there who stands by learns whether the publisher fails, or only does nothing.
            noted = read_output_states(Marks(self._log).get(connection, OUTPUTS))
            is_failing = failing(newest(noted, known.outputs))
            found = read_flow(connection, self._log, self._settings, failing=is_failing)
        tracked = None if known.triggers is None else any(known.triggers.values())
        vitals.measured(replace(seen_by_itself(found, known), tracked=tracked))
        self._next = monotonic() + max(MEASURE_SECONDS, PART * (monotonic() - began))
