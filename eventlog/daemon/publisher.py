"""The publisher of one log: one batch after the other, until nothing is left or until it is told to stop."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event as Flag
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from structlog.stdlib import BoundLogger

from eventlog.assembly import outputs_of, pipeline_of
from eventlog.backoff import Backoff
from eventlog.config import Config, load
from eventlog.daemon.gauge import Gauge
from eventlog.daemon.heartbeat import Heartbeat
from eventlog.daemon.postpoll import run_statements
from eventlog.daemon.rest import Rest
from eventlog.daemon.tempo import Tempo
from eventlog.daemon.vitals import Vitals
from eventlog.delivery import Output
from eventlog.errors import ConfigError, EventlogError, MachineError, OccupiedError, SinkError
from eventlog.journal import library_journal
from eventlog.pipeline import Report
from eventlog.relay import Relay
from eventlog.sources.seat import Seat
from eventlog.sources.wakeup import Wakeup
from eventlog.sql.access import in_our_words
from eventlog.sql.connect import connect
from eventlog.sql.limits import limit_sessions
from eventlog.sql.log import Log
from eventlog.sql.names import read_log_name
from eventlog.sql.reflect import log_columns

if TYPE_CHECKING:
    from sqlalchemy import Engine

STANDBY: Final = 1.0
"""Seconds between two looks whether the seat is free."""

FAILURES: Final = Backoff(first=0.5, longest=30.0)
"""How long it waits after a cycle that failed, when trying again makes sense."""


class Publisher:
    """Publishes one log. What it opens it closes, and a batch that it began it finishes."""

    def __init__(
        self,
        config: Config,
        *,
        engine: Engine | None = None,
        outputs: list[Output] | None = None,
        journal: BoundLogger | None = None,
        vitals: Vitals | None = None,
    ) -> None:
        self.config = config
        self.journal = journal or library_journal()
        self.vitals = vitals or Vitals()
        self.stopped = Flag()
        self.engine = _engine_of(config) if engine is None else engine
        self._outputs: list[Output] = []
        try:
            self._outputs = outputs_of(config) if outputs is None else outputs
            with in_our_words(self.engine, f"The event log {config.source.log}"):
                self._names = log_columns(self.engine, read_log_name(config.source.log), config.source.columns)
        except EventlogError:
            self.close()
            raise
        settings = config.publisher
        self.seat = Seat(Log(self.engine, self._names), settings.lease)
        self._wakeup = Wakeup(self.seat, due=settings.handle_future_events) if settings.wake_up else None
        self._rest = Rest(settings, self._wakeup, self.stopped, self.vitals.moved)
        self._heartbeat = Heartbeat(self._outputs, settings.heartbeat_interval * 60)
        self._gauge = Gauge(self.seat.log, self.vitals)
        self._tempo = Tempo(self.seat)
        self._relay: Relay | None = None
        self._failures = 0

    @classmethod
    def from_config(cls, path: str | Path) -> Self:
        """The publisher that a configuration file, and the environment, describe."""
        return cls(load(Path(path)))

    @property
    def place(self) -> str:
        """The database, without a password."""
        return self.engine.url.render_as_string(hide_password=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives back the seat, connections and files."""
        if hasattr(self, "seat"):
            self._end_relay()
            with suppress(MachineError):  # a database that is away has given the seat to nobody, or to somebody else
                if self.seat.taken:
                    self._tempo.enter(now=True)
                self.seat.leave()
        for output in self._outputs:
            output.sink.close()
        self.engine.dispose()

    def stop(self) -> None:
        """Asks for the end; the batch in hand is finished first."""
        self.stopped.set()

    def run_once(self, *, ahead: bool = False) -> Report:
        """Publishes one batch, `ahead` says that another one follows. OccupiedError while somebody else publishes.

        Rows that cannot be read make it look at the tables again before they are given up.
        """
        if not self.seat.take():
            raise OccupiedError(f"Another publisher works on the event log {self.seat.log.name}.")
        began = monotonic()
        report = self._round(ahead=ahead)
        if report.stale:
            self._relay = self._new_relay(self._relay)
            report = self._round(ahead=ahead)
        self._finish(report, monotonic() - began)
        return report

    def rounds(self, *, until_empty: bool = False) -> Iterator[Report]:
        """Batch after batch, resting when nothing was waiting; trouble that may pass is waited out.

        With `until_empty` it ends when nothing is left that can be published now, and at the first trouble.
        """
        if not until_empty:
            yield from self._live()
            return
        self.sit_down(self.config.publisher.lease * 2 + STANDBY)
        while not self.stopped.is_set():
            report = self.run_once(ahead=True)
            yield report
            if self.is_over(report) or not report.settled:
                return

    def sit_down(self, patience: float) -> None:
        """Takes the seat; when somebody else has it for longer than this, OccupiedError."""
        end = monotonic() + patience
        while not self.seat.take() and not self.stopped.is_set():
            if monotonic() >= end:
                raise OccupiedError(
                    f"Another publisher works on the event log {self.seat.log.name}.",
                    hint="Stop it, or let it do this.",
                )
            self.stopped.wait(STANDBY / 4)

    def is_over(self, report: Report) -> bool:
        """Whether what happened in this cycle forbids another one."""
        return report.fatal or (self.config.publisher.on_error == "halt" and report.errors > 0)

    def _live(self) -> Iterator[Report]:
        if self._rest.by_time_of_day:
            self._rest.until_next(self._beat)
        while not self.stopped.is_set():
            try:
                report = self.run_once(ahead=True) if self._seated() else None
                if report is None:
                    self._rest.for_seconds(STANDBY)
                    continue
                self._recovered()
                yield report
                if self.is_over(report):
                    return
                if not report.settled:
                    self._idle(report)
            except MachineError as error:
                self._wait_out(error)
        self.vitals.now("stopping")

    def _round(self, *, ahead: bool) -> Report:
        with in_our_words(self.engine, f"The event log {self.seat.log.name}"):
            self._relay = self._relay or self._new_relay()
            return self._relay.go_round(ahead=ahead)

    def _finish(self, report: Report, seconds: float) -> None:
        """What follows a cycle: the books, and the statements that an active one asks for."""
        self.vitals.finished(report, seconds)
        self._tempo.count(report.settled)
        if report.events:
            self._rest.worked()
            statuses = {status.value: count for status, count in report.statuses.items()}
            self.journal.info(
                "published",
                rows=report.events,
                changes=report.changes,
                documents=report.documents,
                statuses=statuses,
                seconds=round(seconds, 4),
            )
        if report.documents:
            self._heartbeat.put_off()
            run_statements(self.seat.log, self.config.publisher.post_poll_statements, self.journal)

    def _seated(self) -> bool:
        """Whether it may publish; says so when that changes."""
        before = self.seat.taken
        seated = self.seat.take()
        if seated and not before:
            self.journal.info("seat_taken", log=self.seat.log.name)
        elif not seated and self.vitals.reading().state != "standby":
            self.journal.info("standing_by", log=self.seat.log.name)
        self.vitals.now("publishing" if seated else "standby")
        return seated

    def _idle(self, report: Report) -> None:
        """Waits for the next cycle, and lets the heart beat meanwhile."""
        self._gauge.measure()
        self._tempo.enter()
        all_held = self.config.publisher.on_retry == "stop" and report.later is not None and not report.events
        self._rest.until_next(self._beat, later=report.later, all_held=all_held)

    def _beat(self) -> None:
        if self._heartbeat.beat():
            self.vitals.beat()
            self.journal.info("heartbeat")

    def _recovered(self) -> None:
        if self._failures:
            self.journal.info("recovered", after=self._failures)
        self._failures = 0

    def _wait_out(self, error: MachineError) -> None:
        """Waits after a failure that may pass, longer each time; any other one goes on to whoever called."""
        if isinstance(error, OccupiedError):
            self.journal.warning("seat_lost", log=self.seat.log.name)
            self._let_go()
            return
        self.vitals.failed(error)
        if not error.may_pass:
            raise error
        self._failures += 1
        seconds = FAILURES.delay(self._failures, secrets.SystemRandom().random())
        self.journal.warning("failed", error=str(error), attempt=self._failures, again_in=round(seconds, 1))
        if not isinstance(error, SinkError):
            self._let_go()
        self._rest.for_seconds(seconds)

    def _let_go(self) -> None:
        """Forgets what depends on connections that may be broken."""
        self._end_relay()
        self.seat.drop()
        self.engine.dispose()

    def _new_relay(self, former: Relay | None = None) -> Relay:
        """The way of batches with the tables as they look now; nothing is left that was made ready by the former look."""
        if former is not None:
            former.forget()
        return Relay(
            pipeline_of(
                self.engine,
                self._names,
                self.config,
                self._outputs,
                self.seat,
                self.vitals.moved,
                former.pipeline if former is not None else None,
            )
        )

    def _end_relay(self) -> None:
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.close()


def _engine_of(config: Config) -> Engine:
    if not config.source.url:
        raise ConfigError("source.url is missing; it names the database.")
    engine = connect(config.source.url)
    limit_sessions(engine, config.source.statement_timeout, config.source.lock_timeout)
    return engine
