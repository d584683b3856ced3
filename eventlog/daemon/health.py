"""How the publisher is doing, counted while it works: what metrics and health checks are made from.

How fast rows are settled and how the outputs stand is entered in the log's marks, for a page or
`eventlog status` anywhere. What waits is counted now and then, for those who watch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from math import inf, nextafter
from threading import RLock
from time import monotonic, time
from typing import TYPE_CHECKING, Final, Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import SinkError, SourceError
from eventlog.core.model import Captured, Status
from eventlog.core.secrets import make_readable
from eventlog.core.times import moment
from eventlog.delivery.output import OutputState, OutputStates, failing, read_output_states
from eventlog.delivery.report import Report
from eventlog.publisher.reader import JournalReader
from eventlog.publisher.turn_report import Turn
from eventlog.sources.log.flow import Flow, Pace, Polling, count_finished
from eventlog.sources.log.lock import LogLock
from eventlog.sources.marks import OUTPUTS, PACE, Marks, as_text, value_of
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.core.proofs import LastProof

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
        """Copy it with a value added so many times."""
        counts = [*self.counts] or [0] * (len(self.bounds) + 1)
        # A bound belongs to its bucket: Prometheus means less or equal.
        counts[bisect_left(self.bounds, value)] += times
        return replace(self, counts=tuple(counts), total=self.total + value * times)


SILENCE_SECONDS: Final = 300.0
"""Seconds after which a loop that has not moved is taken for dead: longer than a request or a statement may take."""

State = Literal["starting", "standby", "publishing", "failing", "stopping"]

MOST_TABLES: Final = 50
"""So many tables are counted each by itself; whoever writes into a log names the tables."""

OTHER_TABLES: Final = "other"
"""Under this name all further ones are counted."""


class Standby(Struct, frozen=True, kw_only=True):
    """What a standby sees: `waiting` rows could be published now, counted up to a limit.

    They have waited for `stalled_seconds` while nothing was settled.
    """

    waiting: int = 0
    stalled_seconds: float = 0.0


class OutputFigures(Struct, frozen=True, kw_only=True):
    """What was counted of one output: shares of batches that failed, and how long it took."""

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


def adjust_own_flow(flow: Flow, reading: VitalsReading) -> Flow:
    """Adjust a flow to the knowledge of the publishing process: it has the lock, whatever the mark says.

    The mark may have been read before it took the lock, and on a busy machine it is renewed late.
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

    def is_alive(self) -> bool:
        """Return True if the loop has moved not long ago; asked in any thread."""
        with self._lock:
            return monotonic() - self._moved < SILENCE_SECONDS

    def note_alive(self) -> None:
        """Note that the loop is alive."""
        with self._lock:
            self._moved = monotonic()
        if self._on_move is not None:
            self._on_move()

    def now(self, state: State) -> None:
        """Note the publisher's state."""
        self._change(state=state, standby=self._reading.standby if state == "standby" else None)

    def enter_standby(self, standby: Standby) -> None:
        """Note its view while it stands by."""
        self._change(standby=standby)

    def note_flow(self, flow: Flow) -> None:
        """Note the waiting rows by cause, and for how long they wait."""
        self._change(flow=flow)

    def note_triggers(self, triggers: Mapping[str, int], failing: int) -> None:
        """Note the triggers by their state."""
        self._change(triggers=triggers, failing_triggers=failing)

    def note_proofs(self, proofs: Sequence[LastProof]) -> None:
        """Note the last proofs; called from another thread, so it is no sign of the loop's life."""
        with self._lock:
            self._reading = replace(self._reading, proofs=tuple(proofs))

    def note_failure(self, error: Exception) -> None:
        """Note an unfinished cycle."""
        blame = "other"
        if isinstance(error, SourceError):
            blame = "source"
        elif isinstance(error, SinkError):
            blame = "sink"
        failures = {**self._reading.failures, blame: self._reading.failures.get(blame, 0) + 1}
        self._change(state="failing", error=make_readable(str(error)), failures=failures)

    def note_turn(self, name: str, turn: Turn, *, failed: bool = False) -> None:
        """Note an output's turn, perhaps `failed`; called from a thread of its own."""
        now = time()
        # Before the lock is taken, and only when somebody looks: this goes over every row.
        delays = list(delays_of(turn.delivered, now)) if self.watched else []
        with self._lock:
            reading = self._reading
            outputs = reading.outputs
            new = stands(outputs.get(name, OutputState()), turn, now, failed=failed)
            former = reading.figures.get(name, OutputFigures())
            figures = replace(former, failures=former.failures + failed)
            if turn.documents or failed:
                figures = replace(figures, shares=former.shares.with_value(turn.seconds))
            for seconds, count in delays:
                figures = replace(figures, delays=figures.delays.with_value(seconds, count))
            self._reading = replace(reading, outputs={**outputs, name: new}, figures={**reading.figures, name: figures})

    def serves(self, outputs: Collection[str]) -> None:
        """Note the outputs from now on."""
        former, figures = self._reading.outputs, self._reading.figures
        self._change(
            outputs={name: former[name] for name in former if name in outputs},
            figures={name: figures.get(name, OutputFigures()) for name in outputs},
        )

    def restore(self, noted: OutputStates) -> None:
        """Go on from the noted states of the outputs, where they are newer than what is known here."""
        known = dict(self._reading.outputs)
        for name, state in noted.items():
            own = known.get(name, OutputState())
            if name in self._reading.figures and state.latest > own.latest:
                known[name] = replace(state, documents=own.documents)
        self._change(outputs=known)

    def beat(self) -> None:
        self._change(heartbeats=self._reading.heartbeats + 1, last_document=time())

    def note_cycle(self, report: Report) -> None:
        """Note the end of a cycle."""
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
            seconds=former.seconds + report.seconds,
            batches=former.batches.with_value(report.seconds) if report.events else former.batches,
            tables=tables,
            last_cycle=time(),
            last_document=time() if report.documents else former.last_document,
        )

    def _change(self, **facts: object) -> None:
        with self._lock:
            self._reading = replace(self._reading, **facts)
        self.note_alive()


def stands(former: OutputState, turn: Turn, now: float, *, failed: bool = False) -> OutputState:
    """Update an output's state after its turn, perhaps `failed` behind its last document."""
    new = replace(former, documents=former.documents + turn.documents)
    if turn.last is not None:
        document, position = turn.last
        new = replace(new, document=document, position=position, at=now)
    if turn.complaint is None:
        return new
    # Whatever the target took in this turn, it took before that.
    failed_at = nextafter(now, inf) if failed else now
    since = new.began_to_fail or failed_at
    return replace(new, error=make_readable(turn.complaint), failed_at=failed_at, failing_since=since)


def delays_of(events: Iterable[Captured], now: float) -> Iterator[tuple[float, int]]:
    """Yield the ages of rows an output has just taken, by two clocks, with their number."""
    for time_of_rows, count in Counter(event.time for event in events).items():
        at = None if time_of_rows is None else moment(time_of_rows)
        if at is not None:
            # Times of rows are in UTC and name no zone; the database's clock may be ahead of ours.
            yield max(0.0, now - at.replace(tzinfo=UTC).timestamp()), count


ENTRY_SECONDS: Final = 2.0
"""Seconds between two entries: a transaction of a few statements that need not be on the disk."""


class Ledger:
    """Enters in the log's marks how the outputs stand and how many rows were settled."""

    def __init__(self, lock: LogLock, vitals: PublisherHealth, journal: JournalReader) -> None:
        self._lock = lock
        self._vitals = vitals
        self._journal = journal
        self.finished = 0
        """Rows since the last entry."""
        self._seen: OutputStates = {}
        self._pace: Pace = ()
        # Before every time, so that the first entry is due at once.
        self._entered = float("-inf")

    def begin(self, connection: Connection) -> None:
        """Go on from the former entries; nobody else makes any while this publisher has the lock."""
        marks = Marks(self._lock.log)
        self._vitals.restore(read_output_states(marks.get(connection, OUTPUTS)))
        self._seen = self._vitals.reading().outputs
        self._pace = value_of(marks.get(connection, PACE), Pace) or ()

    def enter(self, *, now: bool = False) -> None:
        """Enter news, if it is due or must be `now`."""
        if not now and monotonic() - self._entered < ENTRY_SECONDS:
            return
        states = self._vitals.reading().outputs
        if states == self._seen and not self.finished:
            return
        pace = self._pace
        if self.finished:
            # By the database's clock, by which whoever reads it reckons too.
            pace = count_finished(pace, self.finished, self._journal.now() / 1000)
        with self._lock.log.transaction() as connection:
            if states != self._seen:
                self._lock.mark(connection, OUTPUTS, as_text(states), soon=True)
            if pace != self._pace:
                self._lock.mark(connection, PACE, as_text(pace), soon=True)
        self._seen, self._pace = states, pace
        self.finished, self._entered = 0, monotonic()


PART: Final = 50
"""What takes long is done seldom: it takes a fiftieth of the time at most."""


def due_after(began: float, least: float = 0.0) -> float:
    """Return when work begun then and ended now is due again, after at least so many seconds."""
    now = monotonic()
    return now + max(least, PART * (now - began))


MEASURE_SECONDS: Final = 15.0
"""Seconds between two measurements: counting reads the index of the rows that wait."""


class Gauge:
    """Counts what waits, now and then, where somebody watches. A standby does: others may hang."""

    def __init__(self, log: Log, settings: Polling) -> None:
        self._log = log
        self._settings = settings
        self._next = 0.0

    def measure(self, vitals: PublisherHealth) -> None:
        """Takes the figures if they are old."""
        if not vitals.watched or monotonic() < self._next:
            return
        from eventlog.publisher.flow import read_flow  # for those alone whom somebody watches

        began, known = monotonic(), vitals.reading()
        with self._log.moment() as connection:
            # From there who stands by learns whether the publisher fails, or only does nothing.
            noted = read_output_states(Marks(self._log).get(connection, OUTPUTS))
            is_failing = failing({**noted, **known.outputs})
            flow = read_flow(connection, self._log, self._settings, failing=is_failing)
        tracked = None if known.triggers is None else any(known.triggers.values())
        vitals.note_flow(replace(adjust_own_flow(flow, known), tracked=tracked))
        self._next = due_after(began, MEASURE_SECONDS)
