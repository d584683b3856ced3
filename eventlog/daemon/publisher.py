"""The publisher at one post: one batch after the other, until nothing is left or until it is told to stop."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event as Flag
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from msgspec.structs import replace
from structlog.stdlib import BoundLogger

from eventlog.config.build import outputs_of
from eventlog.config.settings import Config, load
from eventlog.core.backoff import Backoff
from eventlog.core.errors import ChangedError, EventlogError, MachineError, OccupiedError, SinkError, SourceError
from eventlog.core.seams import Tenure
from eventlog.daemon.health import SILENCE_SECONDS
from eventlog.daemon.heartbeat import Heartbeat
from eventlog.daemon.logging import library_journal
from eventlog.daemon.post import Post, post_of
from eventlog.daemon.rest import CycleWait
from eventlog.daemon.vitals import PublisherHealth
from eventlog.delivery.output import Output
from eventlog.delivery.pipeline import Report
from eventlog.delivery.read_ahead import ReadAhead

if TYPE_CHECKING:
    from sqlalchemy import Engine

STANDBY_SECONDS: Final = 1.0
"""Seconds between two looks whether the seat is free."""

FAILURES: Final = Backoff(first=0.5, longest=30.0)
"""How long it waits after a cycle that failed, when trying again makes sense."""

MOST_LOOKS: Final = 3
"""How often it looks at the tables again when it cannot read: they may go on changing meanwhile."""


class Publisher:
    """Publishes one log or stream. What it opens it closes, and a batch that it began it finishes."""

    def __init__(
        self,
        config: Config,
        *,
        engine: Engine | None = None,
        outputs: list[Output] | None = None,
        journal: BoundLogger | None = None,
        vitals: PublisherHealth | None = None,
    ) -> None:
        self.config = config
        self.journal = journal or library_journal()
        self.vitals = vitals or PublisherHealth()
        self.stopped = Flag()
        self._outputs = outputs_of(config) if outputs is None else outputs
        try:
            self.post: Post = post_of(config, self.journal, engine, self._moves)
        except BaseException:
            self._close_outputs()
            raise
        self.vitals.serves([output.name for output in self._outputs])
        settings = config.publisher
        self._rest = CycleWait(settings, self.post.wakeup, self.stopped, self.vitals.moved)
        self._heartbeat = Heartbeat(self._outputs, settings.heartbeat_interval * 60)
        self._read_ahead: ReadAhead | None = None
        self._opened: Tenure | None = None
        self._failures = 0
        self._told_loopback = False
        if settings.workers > 1:
            self.journal.warning(
                "setting_ignored",
                setting="publisher.workers",
                why="One process does all the work; take the setting out.",
            )

    @classmethod
    def from_config(cls, path: str | Path) -> Self:
        """The publisher that a configuration file, and the environment, describe."""
        return cls(load(Path(path)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives back the post, connections and files."""
        self._end_read_ahead()
        with suppress(MachineError):  # a database that is away has given the seat to nobody, or to somebody else
            self.post.leave(self.vitals)
        self._close_outputs()
        self.post.close()

    def _moves(self) -> bool:
        """Whether the loop is alive, by the measure of /health; a publisher that hangs does not keep the lock."""
        return self.vitals.reading().silent < SILENCE_SECONDS

    def stop(self) -> None:
        """Asks for the end; the batch in hand is finished first."""
        self.stopped.set()

    def run_once(self, *, ahead: bool = False) -> Report:
        """Publishes one batch, `ahead` says that another one follows. OccupiedError while somebody else publishes.

        Rows that cannot be read, or read back, make it look at the tables again before they are given up.
        """
        if not self.post.take():
            raise self._occupied()
        if self.post.look_at_tables(self.vitals, self.journal):
            self._see_tables()
        began = monotonic()
        report, looks = self._tried(ahead=ahead, looks=MOST_LOOKS), MOST_LOOKS
        while report.stale:
            self.post.look_at_tables(self.vitals, self.journal, at_once=True)  # so that the history has every shape
            self._read_ahead = self._new_read_ahead(self._read_ahead)
            looks -= 1
            report = self._tried(ahead=ahead, looks=looks)
        self._finish(report, monotonic() - began)
        return report

    def rounds(self, *, until_empty: bool = False) -> Iterator[Report]:
        """Batch after batch, resting when nothing was waiting; trouble that may pass is waited out.

        With `until_empty` it ends when nothing is left that can be published now, and at the first trouble.
        """
        if not until_empty:
            yield from self._live()
            return
        self.sit_down(self.config.publisher.lease * 2 + STANDBY_SECONDS)
        while not self.stopped.is_set():
            report = self.run_once(ahead=True)
            yield report
            if self.is_over(report) or not (report.settled or report.again):
                return

    def sit_down(self, patience: float) -> None:
        """Takes the seat; when somebody else has it for longer than this, OccupiedError."""
        end = monotonic() + patience
        while not self.post.take() and not self.stopped.is_set():
            if monotonic() >= end:
                raise self._occupied()
            self.stopped.wait(STANDBY_SECONDS / 4)

    def _occupied(self) -> OccupiedError:
        return OccupiedError(f"Another publisher works on the {self.post.name}.", hint="Stop it, or let it do this.")

    def is_over(self, report: Report) -> bool:
        """Whether what happened in this cycle forbids another one."""
        return report.fatal or (self.config.publisher.on_error == "halt" and report.errors > 0)

    def _live(self) -> Iterator[Report]:
        if self._rest.by_time_of_day:
            self._rest.until_next(self._beat)
        while not self.stopped.is_set():
            try:
                report = self.run_once(ahead=True) if self._seated() else None
                self._recovered()  # who stands by has reached the database, and knows nothing else to be wrong
                if report is None:
                    self._rest.for_seconds(STANDBY_SECONDS)
                    continue
                yield report
                if self.is_over(report):
                    return
                if not (report.settled or report.again):
                    self._idle(report)
            except MachineError as error:
                self._wait_out(error)
        self.vitals.now("stopping")

    def _tried(self, *, ahead: bool, looks: int) -> Report:
        """A round; one that failed for good may have asked for a column that is gone, while there are `looks` left."""
        try:
            return self._round(ahead=ahead)
        except SourceError as error:
            if looks <= 0 or (error.may_pass and not isinstance(error, ChangedError)):
                raise
            return Report(stale=True)

    def _round(self, *, ahead: bool) -> Report:
        with self.post.guarded():
            self._open_outputs()
            self._read_ahead = self._read_ahead or self._new_read_ahead()
            return self._read_ahead.go_round(ahead=ahead)

    def _open_outputs(self) -> None:
        """Takes the outputs over whenever the lock was taken: how far they are now, nobody knew before that."""
        tenure = self.post.tenure
        if tenure is None or tenure == self._opened:
            return
        self._opened = None
        self._end_read_ahead()  # what it read under a former lock others may have published since
        for output in self._outputs:
            try:
                output.sink.open(tenure)
            except SinkError as error:
                self.vitals.not_opened(output.name, error)
                raise
        self._opened = tenure

    def _finish(self, report: Report, seconds: float) -> None:
        """What follows a cycle: the books, and the statements that an active one asks for."""
        self.vitals.finished(report, seconds)
        self.post.settled(report.settled)
        if report.events:
            self._rest.worked()
            statuses = {status.value: count for status, count in report.statuses.items()}
            self.journal.info(
                "published",
                rows=report.events,
                changes=report.changes,
                documents=report.documents,
                statuses=statuses,
                **({"loopback": report.loopback} if report.loopback else {}),
                seconds=round(seconds, 4),
            )
            self._tell_loopback(report)
        for table, note in report.unread.items():
            self.journal.warning("table_unread", table=table, error=note)
        if report.documents:
            self._heartbeat.put_off()
            self.post.published(self.journal)

    def _tell_loopback(self, report: Report) -> None:
        """Says once why nothing comes out, where all that was read is the doing of the publisher's own user."""
        alone = report.loopback == report.events
        if alone and not self._told_loopback:
            why = (
                "Every row was made by the publisher's own user. Let applications connect as somebody else, name"
                " another source.user, or set publisher.allow_loopback = true."
            )
            self.journal.warning("nothing_published", why=why)
        self._told_loopback = alone

    def _seated(self) -> bool:
        """Whether it may publish; says so when that changes."""
        before = self.post.taken
        seated = self.post.take()
        if seated and not before:
            self.journal.info("seat_taken", post=self.post.name)
        elif not seated and self.vitals.reading().state != "standby":
            self.journal.info("standing_by", post=self.post.name)
        self.vitals.now("publishing" if seated else "standby")
        if not seated:
            self.post.stand_by(self.vitals, self.journal)
        return seated

    def _idle(self, report: Report) -> None:
        """Waits for the next cycle, and lets the heart beat meanwhile."""
        self.post.idle(self.vitals)
        all_held = self.config.publisher.on_retry == "stop" and report.later is not None and not report.events
        self._rest.until_next(self._beat, later=report.later, all_held=all_held)

    def _beat(self) -> None:
        if self._opened is not None and self._heartbeat.beat(self.post.confirm):
            self.vitals.beat()
            self.journal.info("heartbeat")

    def _recovered(self) -> None:
        if self._failures:
            self.journal.info("recovered", after=self._failures)
        self._failures = 0

    def _wait_out(self, error: MachineError) -> None:
        """Waits after a failure that may pass, longer each time; any other one goes on to whoever called."""
        if isinstance(error, OccupiedError):
            self.journal.warning("seat_lost", post=self.post.name)
            self._let_go()
            return
        self.vitals.failed(error)
        if not error.may_pass:
            raise error
        self._failures += 1
        seconds = FAILURES.delay(self._failures, secrets.SystemRandom().random())
        self.journal.warning("failed", error=str(error), attempt=self._failures, again_in=round(seconds, 1))
        if isinstance(error, SinkError):
            with suppress(MachineError):  # what is wrong with the log as well is said when it is read again
                self.post.idle(self.vitals)
        else:
            self._let_go()
        self._rest.for_seconds(seconds)

    def _let_go(self) -> None:
        """Forgets what depends on connections that may be broken."""
        self._end_read_ahead()
        self._opened = None
        self.post.drop()

    def _new_read_ahead(self, former: ReadAhead | None = None) -> ReadAhead:
        """The way of batches with the tables as they look now; nothing is left that was made ready by the former look."""
        if former is not None:
            former.forget()
        made = self.post.pipeline(self._outputs, self.vitals.moved)
        return ReadAhead(replace(made, told=self.vitals.delivered, confirm=self.post.confirm), former)

    def _see_tables(self) -> None:
        """Goes on with the tables as they look now; where they cannot be seen, with what is known."""
        if self._read_ahead is None:
            return
        try:
            self._read_ahead = self._new_read_ahead(self._read_ahead)
        except EventlogError as error:
            self.journal.warning("tables_not_seen", error=str(error))

    def _end_read_ahead(self) -> None:
        ahead, self._read_ahead = self._read_ahead, None
        if ahead is not None:
            ahead.forget()

    def _close_outputs(self) -> None:
        for output in self._outputs:
            output.sink.close()
