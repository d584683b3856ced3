"""The publisher at one post: turn after turn of each output, until nothing is left or until it is told to stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import reduce
from pathlib import Path
from threading import Event as Flag
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, cast

from msgspec.structs import replace
from structlog.stdlib import BoundLogger

from eventlog.config.build import name_of, outputs_of
from eventlog.config.outputs import own_table, table_of
from eventlog.config.settings import Config, load
from eventlog.core.errors import MachineError, OccupiedError, OutputError, SinkError
from eventlog.core.model import Status
from eventlog.core.registry import format_named
from eventlog.daemon.background import Background
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.lag_limits import MostBehindWatch
from eventlog.daemon.log_session import Post, post_of
from eventlog.daemon.logging import library_journal
from eventlog.daemon.scheduling import LOOK_SECONDS, CycleWait, Failures, Heartbeat
from eventlog.daemon.workers import Line, SideBySide
from eventlog.delivery.blame import Guarded
from eventlog.delivery.output import Output
from eventlog.delivery.report import Report

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.core.seams import Sink


STANDBY_SECONDS: Final = 1.0
"""Seconds between two looks whether the lock is free."""

ALL_LOOPBACK: Final = (
    "Every row was made by the publisher's own user. Let applications connect as somebody else, name"
    " another source.user, or set publisher.allow_loopback = true."
)
"""Why nothing comes out where every row was made so."""


def list_ignored_settings(config: Config) -> Iterator[tuple[str, str]]:
    """Yield settings without effect, each with the reason."""
    for output in config.output:
        ignored = format_named(output.format).ignored
        for key, why in ignored(own_table(output)) if ignored is not None else ():
            yield f"output.{table_of(output.format)}.{key}", f"{name_of(output)} {why}"


class Publisher:
    """Publishes one log or stream. What it opens it closes, and a turn that it began it finishes."""

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
        made = outputs_of(config) if outputs is None else outputs
        self._outputs = [replace(output, sink=cast("Sink", Guarded(output.sink))) for output in made]
        try:
            self.post: Post = post_of(config, self.vitals, self.journal, engine)
        except BaseException:
            self._close_outputs()
            raise
        self.vitals.serves([output.name for output in self._outputs])
        settings = config.publisher
        self._rest = CycleWait(settings, self.post.wakeup, self.stopped, self.vitals.note_alive)
        self._heartbeat = Heartbeat(self._outputs, settings.heartbeat_interval * 60)
        self._lines: list[Line] = []
        self._background = Background(self.journal)
        self._at_work = SideBySide(self.stopped, self._goes_on)
        self._behind = MostBehindWatch(self.post, config.output, self.journal)
        self._failures = Failures()
        """Those of the log; a line has its own."""
        self._ask_at = 0.0
        """When it looks again whether somebody wants an output tried at once."""
        self._worked = self._has_published = False
        """Whether turns have found rows, and published something of them, since it waited last."""
        self._warned_loopback = False
        for setting, why in list_ignored_settings(config):
            self.journal.warning("setting_ignored", setting=setting, why=why)

    @classmethod
    def from_config(cls, path: str | Path) -> Self:
        """Make the publisher of a configuration file and the environment."""
        return cls(load(Path(path)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives back the post, connections and files."""
        with ExitStack() as closing:  # all of it, whatever one of them raises
            closing.callback(self.post.drop)
            closing.callback(self._close_outputs)
            self._background.end()
            self._end_lines()
            # A database that is away has given the lock to nobody, or to somebody else.
            with suppress(MachineError):
                self.post.leave()

    def stop(self) -> None:
        """Ask for the end; turns in progress are finished first."""
        self.stopped.set()

    # --- one after the other ----------------------------------------------------------------------

    def run_once(self) -> Report:
        """Gives each output one turn. OccupiedError while somebody else publishes."""
        if not self._take():
            raise self._make_occupied_error()
        self._begin()
        reports = list(self._turn_each(self._lines))
        if len(reports) < len(self._lines):
            self._raise_trouble()
        return reduce(Report.join, reports)

    def once(self) -> Iterator[Report]:
        """Run one turn of each output, as soon as this publisher has the lock."""
        if self._has_waited_for_lock():
            yield self.run_once()

    def rounds(self, *, until_empty: bool = False) -> Iterator[Report]:
        """Run turn after turn, resting when nothing was waiting; wait out errors that may pass.

        With `until_empty` it ends when nothing can be published now, and at the first error after
        which no output can continue.
        """
        if not until_empty:
            yield from self._live()
            return
        if not self._has_waited_for_lock():
            return
        self._begin()
        going = self._lines
        while going and not self.stopped.is_set():
            for report in self._turn_each(going):
                yield report
                if self.is_over(report):
                    return
            going = [line for line in going if line.trouble is None]
            moving = any(not line.rests for line in going)
            if not (moving or self.post.sweep() or self.post.captures_on()):
                break
        self._raise_trouble()

    def _turn_each(self, lines: Sequence[Line]) -> Iterator[Report]:
        """Give each line a turn; what is wrong with one is noted, and the others have theirs."""
        for line in lines:
            try:
                report = self._turn(line)
            except OccupiedError:
                raise
            except MachineError as error:
                line.trouble = error
            else:
                yield report

    def _raise_trouble(self) -> None:
        """Raise what is wrong with a line, first what does not pass by itself."""
        troubles = [line.trouble for line in self._lines if line.trouble is not None]
        if troubles:
            raise min(troubles, key=lambda error: error.may_pass)

    def _has_waited_for_lock(self) -> bool:
        """Takes the lock, unless it is stopped; OccupiedError where somebody else keeps it."""
        end = monotonic() + self.config.publisher.lease * 2 + STANDBY_SECONDS
        while not self.stopped.is_set():
            if self._take():
                return True
            if monotonic() >= end:
                raise self._make_occupied_error()
            self.stopped.wait(STANDBY_SECONDS / 4)
        return False

    def _take(self) -> bool:
        """Try to take the post; return True with the lock."""
        try:
            return self.post.take(self._outputs)
        except OccupiedError:
            # It was lost: all that was begun ends before it can be taken again.
            self._let_go()
            raise

    def _make_occupied_error(self) -> OccupiedError:
        message = f"Another publisher works on the {self.post.name}."
        return OccupiedError(message, hint="Stop it, or let it do this.")

    def is_over(self, report: Report) -> bool:
        """Return True if this turn forbids another one."""
        halts = self.config.publisher.on_error == "halt"
        return report.fatal or (halts and (report.errors > 0 or report.ended is Status.ERROR))

    def _begin(self) -> None:
        """Make the lines of work; only the lock's holder knows how far each output is."""
        if not self._lines:
            self._lines = self.post.lines(self._outputs)
        self.post.follow_tables()
        self.post.capture()

    def _turn(self, line: Line) -> Report:
        """Run one turn of one output, in this thread."""
        tenure = self.post.tenure
        assert tenure is not None
        report = line.turn(tenure)
        self._finish(line, report)
        return report

    # --- as a daemon ------------------------------------------------------------------------------

    def _live(self) -> Iterator[Report]:
        if self._rest.by_time_of_day:
            self._rest.until_next(self._beat)
        while not self.stopped.is_set():
            try:
                had_lock = self.post.taken
                if not self._take():
                    self._stand_by()
                    continue
                if not had_lock:
                    self.journal.info("lock_taken", post=self.post.name)
                if self.vitals.reading().state != "failing":
                    self.vitals.now("publishing")
                self._begin()
                if not self._background.begun:
                    self._background.begin(self.post.works())
                for report in self._all_turns():
                    yield report
                    if self.is_over(report):
                        return
                self._idle()
            except MachineError as error:
                self._wait_out(error)
        self.vitals.now("stopping")

    def _stand_by(self) -> None:
        """Look what the one that has the lock does, and wait until the next look."""
        if self.vitals.reading().state != "standby":
            self.journal.info("standing_by", post=self.post.name)
        self.vitals.now("standby")
        self.post.wait_for_lock()
        # Who is on standby has reached the database: nothing else is known to be wrong.
        if self._failures.count:
            self._log_recovery()
        self._rest.for_seconds(STANDBY_SECONDS)

    def _all_turns(self) -> Iterator[Report]:
        """Run turns of all outputs until only those far behind still have work."""
        tenure = self.post.tenure
        if tenure is None:
            return
        # One output needs no threads: its turns are taken here.
        if len(self._lines) == 1:
            [line] = self._lines
            while not self.stopped.is_set() and (line.trouble is None or line.may_go()):
                try:
                    report = self._turn(line)
                except SinkError as error:
                    self._fail(line, error)
                    return
                yield report
                if not self._goes_on(line, report):
                    break
            return
        self._behind.hold_up(self._lines)
        self._at_work.begin(self._lines, tenure)
        while (finished := self._at_work.next(self._lines, tenure)) is not None:
            line, outcome = finished
            self.vitals.note_alive()
            self._behind.hold_up(self._lines)
            if self._is_asked_now():
                self._at_work.begin(self._lines, tenure)
            if isinstance(outcome, MachineError):
                self._fail(line, outcome)
                continue
            self._finish(line, outcome)
            yield outcome
            # Others may have waited for this one to take new rows, and have its batch ahead now.
            if outcome.events > 0:
                self._at_work.begin([other for other in self._lines if other is not line], tenure)

    def _goes_on(self, line: Line, report: Report) -> bool:
        """Return True if a line should have another turn at once."""
        # Who looks whether rows wait does so at once: another turn would do the same, and more.
        may_be_more = report.moved and not (report.took_all and self._rest.looks)
        return (may_be_more or line.wanted.is_set()) and not self.is_over(report)

    def _fail(self, line: Line, error: MachineError) -> None:
        """Note the failure of an output: it is tried again after a while, and the others go on meanwhile."""
        if not isinstance(error, SinkError):
            raise error
        if isinstance(error, OutputError):
            self._pause(line, error)
            return
        line.trouble = error
        troubles = [other.trouble for other in self._lines if other.trouble is not None]
        if len(troubles) == len(self._lines):
            # Nobody is left who could go on, now or later.
            if not any(trouble.may_pass for trouble in troubles):
                raise error
            line.again_at = monotonic() + line.failures.report(error, self.vitals, self.journal)
            return
        seconds = line.failures.another()
        line.again_at = monotonic() + seconds
        if not line.is_behind:
            line.is_behind = True
            self.journal.warning("output_left_behind", output=line.name, why=str(error))
            return
        self.journal.warning(
            "output_failed",
            output=line.name,
            error=str(error),
            attempt=line.failures.count,
            again_in=round(seconds, 1),
        )

    def _pause(self, line: Line, error: OutputError) -> None:
        """Pause an output with a permanent error; raise it if no output has ever worked here."""
        if len(self._lines) == 1 and not line.has_worked:
            raise error
        self.vitals.note_failure(error)
        self.post.pause(line.name, str(error))
        line.trouble, line.is_paused, line.is_behind = None, True, len(self._lines) > 1
        self.journal.error("output_paused", output=line.name, why=str(error))

    def _finish(self, line: Line, report: Report) -> None:
        """Finish a turn: enter it, and run the statements of an active one."""
        if self._failures.count or (line.failures.count and not line.is_behind):
            self._log_recovery(line.failures)
        line.trouble, line.failures.count, line.has_worked = None, 0, True
        if len(self._lines) > 1:
            # It is logged when an output is no longer with the others, and when it is again.
            if report.paused and not line.is_behind:
                line.is_behind = True
                self.journal.warning("output_left_behind", output=line.name, why="Somebody has paused it.")
            elif line.is_behind and (
                report.took_all or not (report.moved or report.paused or report.later is not None)
            ):
                line.is_behind = False
                self.journal.info("output_in_step", output=line.name)
        self.vitals.note_cycle(report)
        if report.events or report.documents:
            self._worked = True
            self._log_published(line, report)
        for table, why in report.unread.items():
            self.journal.warning("table_unread", table=table, reason=why.reason.value, error=why.note)
        for table in report.readable:
            self.journal.info("table_read", table=table)
        self._has_published = self._has_published or report.documents > 0
        self.post.finish_turn(report)

    def _log_published(self, line: Line, report: Report) -> None:
        facts: dict[str, object] = {"output": line.name} if len(self._lines) > 1 else {}
        facts |= {
            "rows": report.events,
            "changes": report.changes,
            "documents": report.documents,
            "statuses": {status.value: count for status, count in report.statuses.items()},
        }
        if report.loopback:
            facts["loopback"] = report.loopback
        self.journal.info("published", **facts, seconds=round(report.seconds, 4))
        # Where nothing comes out because of that the reason is logged, once.
        is_all_loopback = report.events > 0 and report.loopback == report.events
        if is_all_loopback and not self._warned_loopback:
            self.journal.warning("nothing_published", why=ALL_LOOPBACK)
        self._warned_loopback = is_all_loopback

    def _idle(self) -> None:
        """Waits for the next turn, and lets the heart beat meanwhile."""
        if self._worked:
            self._rest.note_work()
        if self._has_published:
            self._heartbeat.postpone()
        self._worked = self._has_published = False
        self.post.idle()
        if self.post.sweep() or self.post.more:
            return
        failing = [line.again_at for line in self._lines if line.trouble is not None]
        retrying = [line.later_at for line in self._lines if line.trouble is None and line.later_at is not None]
        if not (failing or retrying):
            self._rest.until_next(self._beat)
            return
        # Where all of them wait for a time, new rows need not be looked for before it.
        waiting = [*failing, *retrying] if self.config.publisher.on_retry == "stop" else failing
        later = max(0.0, min([*failing, *retrying]) - monotonic())
        self._rest.until_next(self._beat, later=later, all_held=len(waiting) == len(self._lines))

    def _beat(self) -> bool:
        """Send a heartbeat; return True if the wait is to end, because a turn has."""
        lines = {line.name: line for line in self._lines}
        # Nobody has opened the sink yet of who has had no turn with this lock.
        busy = {
            name
            for name, line in lines.items()
            if line.trouble is not None or line.is_paused or not line.has_worked or self._at_work.has(line)
        }
        if lines and self._heartbeat.beat(self.post.confirm, lambda name, error: self._fail(lines[name], error), busy):
            self.vitals.beat()
            self.journal.info("heartbeat")
        return self._at_work.anything_finished or self._is_asked_now()

    def _is_asked_now(self) -> bool:
        """Return True if somebody wants a waiting output tried at once."""
        waiting = [line for line in self._lines if line.trouble is not None or line.later_at is not None]
        if not waiting or monotonic() < self._ask_at:
            return False
        self._ask_at = monotonic() + LOOK_SECONDS
        wanted: Sequence[str] = ()
        # A log that is away says so when it is read.
        with suppress(MachineError):
            wanted = self.post.list_wanted_now([line.name for line in waiting])
        for line in waiting:
            if line.name in wanted:
                line.again_at = 0.0
                self.journal.info("output_tried", output=line.name)
        return bool(wanted)

    def _log_recovery(self, failures: Failures | None = None) -> None:
        """Log how many failures of the log are over, or else those of a line."""
        self.journal.info("recovered", after=self._failures.count or (failures and failures.count))
        self._failures.count = 0

    def _wait_out(self, error: MachineError) -> None:
        """Wait after an error that may pass, longer each time; raise any other."""
        if isinstance(error, OccupiedError):
            self.journal.warning("lock_lost", post=self.post.name)
            self._let_go()
            return
        if not error.may_pass:
            self.vitals.note_failure(error)
            raise error
        seconds = self._failures.report(error, self.vitals, self.journal)
        self._let_go()
        self._rest.for_seconds(seconds)

    def _let_go(self) -> None:
        """Forget all state of connections that may be broken."""
        self._background.end()
        self.vitals.note_proofs(())
        self._end_lines()
        self.post.drop()

    def _end_lines(self) -> None:
        self._at_work.end()
        self._lines = []

    def _close_outputs(self) -> None:
        with ExitStack() as closing:
            for output in self._outputs:
                closing.callback(output.sink.close)
