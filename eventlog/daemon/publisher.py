"""The publisher at one post: one batch after the other, until nothing is left or until it is told to stop."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event as Flag
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from msgspec.structs import replace
from structlog.stdlib import BoundLogger

from eventlog.config.build import name_of, outputs_of
from eventlog.config.settings import Config, load
from eventlog.core.errors import ChangedError, EventlogError, MachineError, OccupiedError, SinkError, SourceError
from eventlog.core.model import Reason
from eventlog.core.seams import Tenure
from eventlog.daemon.catching_up import CatchingUp, MostBehind
from eventlog.daemon.logging import library_journal
from eventlog.daemon.post import LogPost, Post, post_of
from eventlog.daemon.rest import FAILURES, CycleWait, Heartbeat
from eventlog.daemon.vitals import SILENCE_SECONDS, PublisherHealth
from eventlog.delivery.output import Delivery, Output
from eventlog.delivery.pipeline import Report
from eventlog.delivery.read_ahead import ReadAhead
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sources.log.source import LogSource

if TYPE_CHECKING:
    from sqlalchemy import Engine

STANDBY_SECONDS: Final = 1.0
"""Seconds between two looks whether the lock is free."""

SLOW_SECONDS: Final = 5.0
SLOW_PART: Final = 4
"""An output whose share of a batch takes longer than so many seconds, and so many times as long as all others', is left behind."""

MOST_LOOKS: Final = 3
"""How often it looks at the tables again when it cannot read: they may go on changing meanwhile."""


class Shares:
    """What outputs made of their shares of the last batch: who keeps the others waiting, and why."""

    def __init__(self) -> None:
        self._why: dict[str, str] = {}
        self._seconds: dict[str, float] = {}
        self.for_good: set[str] = set()
        """Those that failed in a way which trying again does not mend."""

    def forget(self) -> None:
        """Nobody keeps anybody waiting."""
        self._why, self._seconds, self.for_good = {}, {}, set()

    def failed(self, name: str, error: MachineError) -> None:
        """Nothing can be handed over to an output."""
        if error.may_pass or isinstance(error, SinkError):
            self._why[name] = str(error)
        if not error.may_pass:
            self.for_good.add(name)

    def had(self, delivery: Delivery, error: MachineError | None) -> None:
        name = delivery.output.name
        self._seconds[name] = delivery.seconds
        if error is not None:
            self.failed(name, error)
        elif any(answer.reason is Reason.RETRY for answer in delivery.said.answers.values()):
            self._why[name] = delivery.said.complaint or "Its receiver asks for another time."

    def leaving(self) -> dict[str, str]:
        """Those that should be left behind, each with the reason."""
        others = sum(self._seconds.values())
        slow = {
            name: f"It took {seconds:.0f} s for its share of a batch."
            for name, seconds in self._seconds.items()
            if seconds > SLOW_SECONDS and seconds > SLOW_PART * (others - seconds)
        }
        return slow | self._why


def most_behind_of(config: Config) -> dict[str, MostBehind]:
    """How far each output may lag, where that is said of one."""
    return {
        name_of(output): MostBehind(
            rows=output.max_behind_rows, seconds=output.max_behind_seconds, pause=output.when_behind == "pause"
        )
        for output in config.output
        if output.max_behind_rows or output.max_behind_seconds
    }


def ignored_settings(config: Config) -> Iterator[tuple[str, str]]:
    """Settings that somebody has made and that do nothing, each with the reason."""
    if config.publisher.workers > 1:
        yield "publisher.workers", "One process does all the work; take the setting out."
    for output in config.output:
        messages = getattr(output, "messages", None)
        if not isinstance(messages, MessageSettings) or messages.mode == "metadata":
            continue
        if messages.metadata_topic != MessageSettings().metadata_topic:
            why = f'{name_of(output)} writes no metadata messages; say mode = "metadata", or take the setting out.'
            yield "output.messages.metadata_topic", why


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
        self._taken_over: set[str] = set()
        self._shares = Shares()
        lag_post = self.post if isinstance(self.post, LogPost) else None
        self._lagging = CatchingUp(
            self._outputs, lag_post, self.vitals, self.journal, self.is_over, most_behind_of(config)
        )
        self._failures = 0
        self._worked = self._told = False
        """Whether cycles have found rows, and told something of them, since it waited last."""
        self._told_loopback = False
        for setting, why in ignored_settings(config):
            self.journal.warning("setting_ignored", setting=setting, why=why)

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
        self._lagging.end()
        with suppress(MachineError):  # a database that is away has given the lock to nobody, or to somebody else
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
        if not self._take():
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
        self.wait_for_lock(self.config.publisher.lease * 2 + STANDBY_SECONDS)
        while not self.stopped.is_set():
            report = self.run_once(ahead=True)
            yield report
            if self.is_over(report):
                return
            if (over := self._lagging.over) is not None:
                yield over
                return
            if not (report.settled or report.again or self._leave(self._paused())) and not self._catching_up():
                return

    def wait_for_lock(self, patience: float) -> None:
        """Takes the lock; when somebody else has it for longer than this, OccupiedError."""
        end = monotonic() + patience
        while not self._take() and not self.stopped.is_set():
            if monotonic() >= end:
                raise self._occupied()
            self.stopped.wait(STANDBY_SECONDS / 4)

    def _take(self) -> bool:
        """Whether it has the post. Where it was lost, all that was begun ends before it can be taken again."""
        try:
            return self.post.take()
        except OccupiedError:
            self._let_go()
            raise

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
                locked = self._holds_lock()
                held_up = locked and self._lagging.hold_up()
                report = self.run_once(ahead=True) if locked and not held_up else None
                self._recovered()  # who stands by has reached the database, and knows nothing else to be wrong
                if report is not None:
                    yield report
                    if self.is_over(report):
                        return
                if (over := self._lagging.over) is not None:
                    yield over
                    return
                if report is None:
                    self._end_read_ahead()
                    self._rest.for_seconds(STANDBY_SECONDS)
                changed = self._look_after_outputs() if locked else False
                if report is not None and not (changed or report.settled or report.again):
                    self._idle(report)
            except MachineError as error:
                self._wait_out(error)
        self.vitals.now("stopping")

    def _look_after_outputs(self) -> bool:
        """Leaves behind who keeps the others waiting, and takes back who has caught up; whether anything is new by that."""
        changed = self._leave(self._shares.leaving() | self._paused())
        return self._rejoined() or changed

    def _paused(self) -> dict[str, str]:
        """The outputs in step that somebody has paused, as the last reading saw it: nothing was read because of them."""
        source = self._read_ahead.pipeline.source if self._read_ahead is not None else None
        paused = source.paused if isinstance(source, LogSource) else frozenset()
        return {output.name: "Somebody has paused it." for output in self._lagging.in_step if output.name in paused}

    def _leave(self, leaving: Mapping[str, str]) -> bool:
        """Leaves outputs behind, each for a reason, unless nobody would be left; whether it did."""
        if not self._lagging.may_leave(leaving):
            return False
        self._end_read_ahead()
        self._lagging.leave_behind(leaving, self._taken_over)
        self._shares.forget()
        return True

    def _rejoined(self, *, failing: bool = False) -> bool:
        """Whether an output that lagged is in step again."""
        most = self.config.publisher.query_limit
        if not self._lagging or not self._lagging.rejoined(self.vitals.moved, most, failing=failing):
            return False
        self._end_read_ahead()
        return True

    def _catching_up(self) -> bool:
        """Whether outputs that lagged before go on: waits for them a little. Trouble that one of them has is raised."""
        if not self._lagging:
            return False
        if self._rejoined():
            return True
        self.stopped.wait(STANDBY_SECONDS / 4)
        if self._lagging.moving:
            return True
        self._lagging.raise_trouble()
        return False

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
            if not self._lagging.in_step:
                return Report()
            self._read_ahead = self._read_ahead or self._new_read_ahead()
            self._shares.forget()
            return self._read_ahead.go_round(ahead=ahead)

    def _open_outputs(self) -> None:
        """Takes the outputs over whenever the lock was taken: how far they are now, nobody knew before that."""
        tenure = self.post.tenure
        if tenure is None or tenure == self._opened:
            return
        self._opened = None
        self._end_read_ahead()  # what it read under a former lock others may have published since
        self._lagging.begin(tenure)
        self._taken_over = set()
        self._shares.forget()
        failed: list[SinkError] = []
        for output in self._lagging.in_step:
            try:
                output.sink.open(tenure)
                self._taken_over.add(output.name)
            except SinkError as error:
                self.vitals.not_opened(output.name, error)
                self._shares.failed(output.name, error)
                failed.append(error)
        if failed:
            raise min(failed, key=lambda error: error.may_pass)
        self._opened = tenure

    def _finish(self, report: Report, seconds: float) -> None:
        """What follows a cycle: the books, and the statements that an active one asks for."""
        self.vitals.finished(report, seconds)
        self.post.settled(report.settled)
        for lagging in self._lagging.running.values() if report.settled else ():
            lagging.wake()  # it is owed these rows now
        if report.events:
            self._worked = True
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
            self._told = True
            self.post.published(self.vitals, self.journal)

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

    def _holds_lock(self) -> bool:
        """Whether it may publish; says so when that changes."""
        before = self.post.taken
        locked = self._take()
        if locked and not before:
            self.journal.info("seat_taken", post=self.post.name)
        elif not locked and self.vitals.reading().state != "standby":
            self.journal.info("standing_by", post=self.post.name)
        self.vitals.now("publishing" if locked else "standby")
        if not locked:
            self.post.stand_by(self.vitals, self.journal)
        return locked

    def _idle(self, report: Report) -> None:
        """Waits for the next cycle, and lets the heart beat meanwhile."""
        if self._worked:
            self._rest.worked()
        if self._told:
            self._heartbeat.put_off()
        self._worked = self._told = False
        self.post.idle(self.vitals)
        all_held = self.config.publisher.on_retry == "stop" and report.later is not None and not report.events
        self._rest.until_next(self._beat, later=report.later, all_held=all_held)

    def _beat(self) -> None:
        if self._opened is not None and self._heartbeat.beat(self.post.confirm, self._lagging.running):
            self.vitals.beat()
            self.journal.info("heartbeat")

    def _recovered(self) -> None:
        if self._failures:
            self.journal.info("recovered", after=self._failures)
        self._failures = 0

    def _wait_out(self, error: MachineError) -> None:
        """Waits after a failure that may pass, longer each time; any other one goes on to whoever called."""
        if isinstance(error, SinkError):
            try:
                if self._leave(self._shares.leaving()) or self._rejoined(failing=True):
                    return  # others go on
            except MachineError as worse:
                error = worse  # the log is away as well
        if isinstance(error, OccupiedError):
            self.journal.warning("seat_lost", post=self.post.name)
            self._let_go()
            return
        self.vitals.failed(error)
        if not (error.may_pass or (isinstance(error, SinkError) and self._others_may_go_on())):
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

    def _others_may_go_on(self) -> bool:
        """Whether one of several outputs can go on by itself, now or soon: what ails one for good ends nobody else then."""
        for_good = self._shares.for_good | self._lagging.failed_for_good
        return len(self._outputs) > 1 and any(output.name not in for_good for output in self._outputs)

    def _let_go(self) -> None:
        """Forgets what depends on connections that may be broken."""
        self._end_read_ahead()
        self._lagging.end()
        self._opened = None
        self.post.drop()

    def _new_read_ahead(self, former: ReadAhead | None = None) -> ReadAhead:
        """The way of batches with the tables as they look now; nothing is left that was made ready by the former look."""
        if former is not None:
            former.forget()
        made = self.post.pipeline(self._lagging.in_step, self.vitals.moved)
        return ReadAhead(replace(made, told=self._delivered, confirm=self.post.confirm), former)

    def _delivered(self, delivery: Delivery, error: MachineError | None) -> None:
        self.vitals.delivered(delivery, error)
        self._shares.had(delivery, error)

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
