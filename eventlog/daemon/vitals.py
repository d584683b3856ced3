"""How the publisher is doing, counted while it works: what metrics and health checks are made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from threading import Lock
from time import monotonic, time
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import MachineError, SinkError, SourceError
from eventlog.core.secrets import shown
from eventlog.delivery.output import Delivery, OutputState, stands
from eventlog.delivery.pipeline import Report
from eventlog.sources.log.flow import Flow

State = Literal["starting", "standby", "publishing", "failing", "stopping"]


class Standby(Struct, frozen=True, kw_only=True):
    """What a publisher that stands by knows of the one that has the lock, by the clock of the database in UTC.

    `waiting` rows could be published now, counted up to a limit; for so many seconds they have waited while nothing
    was settled.
    """

    host: str | None = None
    pid: int | None = None
    since: str | None = None
    lease_until: str | None = None
    waiting: int = 0
    stalled_seconds: float = 0.0


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
    standby: Standby | None = None
    triggers: Mapping[str, int] | None = None
    """How many triggers are in which state; None as long as nobody has looked."""
    failing_triggers: int | None = None
    """How many of them fail every write to their table."""


class PublisherHealth:
    """Counts in the publisher's thread and is read from others; `watched` says that somebody does.

    `on_move` is called when the loop shows that it is alive.
    """

    def __init__(self, *, watched: bool = False, on_move: Callable[[], None] = lambda: None) -> None:
        self.watched = watched
        self._on_move = on_move
        self._lock = Lock()
        self._reading = VitalsReading()
        self._moved = monotonic()

    def reading(self) -> VitalsReading:
        """The vitals now."""
        with self._lock:
            return replace(self._reading, silent=monotonic() - self._moved)

    def moved(self) -> None:
        """The loop is alive."""
        with self._lock:
            self._moved = monotonic()
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

    def failed(self, error: Exception) -> None:
        """A cycle did not get to its end."""
        kind = {SourceError: "source", SinkError: "sink"}
        blame = next((name for whose, name in kind.items() if isinstance(error, whose)), "other")
        failures = {**self._reading.failures, blame: self._reading.failures.get(blame, 0) + 1}
        self._change(state="failing", error=shown(str(error)), failures=failures)

    def delivered(self, delivery: Delivery, error: MachineError | None) -> None:
        """An output has had its share of a batch."""
        name, outputs = delivery.output.name, self._reading.outputs
        self._change(outputs={**outputs, name: stands(outputs.get(name, OutputState()), delivery, error, time())})

    def not_opened(self, name: str, error: MachineError) -> None:
        """An output could not be taken over."""
        outputs = self._reading.outputs
        standing = replace(outputs.get(name, OutputState()), error=shown(str(error)), failed_at=time())
        self._change(outputs={**outputs, name: standing})

    def serves(self, outputs: Collection[str]) -> None:
        """These are the outputs from now on."""
        former = self._reading.outputs
        self._change(outputs={name: former[name] for name in former if name in outputs})

    def beat(self) -> None:
        """A heartbeat was published."""
        self._change(heartbeats=self._reading.heartbeats + 1, last_document=time())

    def finished(self, report: Report, seconds: float) -> None:
        """A cycle came to its end."""
        former = self._reading
        rows = Counter(former.rows)
        rows.update({status.value: count for status, count in report.statuses.items() if status.value != "N"})
        self._change(
            state="publishing",
            error=None,
            rows=rows,
            changes=former.changes + report.changes,
            documents=former.documents + report.documents,
            cycles=former.cycles + 1,
            active_cycles=former.active_cycles + bool(report.documents),
            seconds=former.seconds + seconds,
            last_cycle=time(),
            last_document=time() if report.documents else former.last_document,
        )

    def _change(self, **facts: object) -> None:
        with self._lock:
            self._reading = replace(self._reading, **facts)
        self.moved()
