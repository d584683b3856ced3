"""Outputs that lag behind the others: each goes on by itself, in a thread of its own, until it is in step again.

While all outputs are in step there is nothing of this but an empty list: no thread, no mark, no statement.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Event as Flag
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace
from structlog.stdlib import BoundLogger

from eventlog.core.errors import MachineError, OccupiedError, SinkError
from eventlog.core.plural import counted
from eventlog.core.seams import Tenure
from eventlog.daemon.post import LogPost
from eventlog.daemon.rest import FAILURES
from eventlog.daemon.vitals import PublisherHealth
from eventlog.delivery.output import Output
from eventlog.delivery.pipeline import Report
from eventlog.delivery.read_ahead import ReadAhead
from eventlog.sources.log.flow import OutputLag
from eventlog.sources.log.owed import Resumed

if TYPE_CHECKING:
    from eventlog.sources.log.lagging import LaggingSource

MOST_TRIES: Final = 3
"""How often it tries what fails for good: a table may have changed, and looks another way the next time."""

REST_SECONDS: Final = 1.0
"""Seconds between two looks of an output that has nothing to do, unless somebody says that there is something."""

LOOK_SECONDS: Final = 2.0
"""Seconds between two looks at how far outputs are behind."""

MEET_SECONDS: Final = 2.0
"""Seconds for which the others wait for an output that has nearly caught up: else it never would while they go on."""

MEET_PAUSE_SECONDS: Final = 10.0
"""Seconds between two such waits."""


class MostBehind(Struct, frozen=True, kw_only=True):
    """How far an output may lag; 0 says that nothing is too far. `pause` says what happens then: else all others wait for it.

    Who resumes an output that was paused lets it catch up: it is paused again once it was inside its bound and passes that,
    or when it gets further behind by as much again, counted from how far it was behind then.
    """

    rows: int = 0
    seconds: float = 0
    pause: bool = False

    def is_passed(self, lag: OutputLag) -> bool:
        """Whether an output that lags so far is too far behind."""
        return self._is_passed(lag, Resumed())

    def is_paused_at(self, lag: OutputLag) -> bool:
        """Whether an output that lags so far is paused."""
        return self.pause and self._is_passed(lag, lag.resumed or Resumed())

    def _is_passed(self, lag: OutputLag, resumed: Resumed) -> bool:
        rows, seconds = lag.rows - resumed.rows, (lag.seconds or 0.0) - resumed.seconds
        return bool(self.rows and rows > self.rows) or bool(self.seconds and seconds > self.seconds)


class CatchUp:
    """One output that lags."""

    def __init__(
        self,
        output: Output,
        post: LogPost,
        tenure: Tenure,
        vitals: PublisherHealth,
        journal: BoundLogger,
        is_over: Callable[[Report], bool],
        *,
        opened: bool,
    ) -> None:
        self._is_over = is_over
        self.output = output
        self.idle = Flag()
        """It is owed nothing, as far as it knows, and does nothing until somebody wakes it."""
        self.trouble: MachineError | None = None
        """What was wrong the last time; None once it goes on."""
        self.waits = False
        """It is paused, or its receiver wants rows at another time."""
        self.over: Report | None = None
        """The cycle that says that nothing more may be sent."""
        self.unexpected: BaseException | None = None
        self._post = post
        self._tenure = tenure
        self._vitals = vitals
        self._journal = journal
        self._stopped = Flag()
        self._wake = Flag()
        self._moves = Flag()
        self._opened = opened
        self._failures = 0
        self._way: ReadAhead | None = None
        self._thread = Thread(target=self._run, name=f"eventlog-output-{output.name}", daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        return self.output.name

    @property
    def rows(self) -> int:
        """How many rows it is owed, as of its last look."""
        return 0 if self._way is None else len(self._source(self._way).owed)

    @property
    def alive(self) -> bool:
        """Whether it goes on by itself."""
        return self._thread.is_alive()

    def wake(self) -> None:
        """There may be rows for it."""
        self.idle.clear()
        self._wake.set()

    def stop(self) -> None:
        """Begins nothing more."""
        self._stopped.set()
        self._wake.set()

    def join(self) -> None:
        """Waits until it has ended. What it does meanwhile is a sign of life; a receiver that hangs gives none."""
        while self._thread.is_alive():
            self._thread.join(LOOK_SECONDS / 4)
            if self._moves.is_set():
                self._moves.clear()
                self._vitals.moved()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set() and self.over is None:
                self._go_on()
        except OccupiedError:
            pass  # whoever publishes now does this as well; our publisher learns it by itself
        except BaseException as error:  # noqa: BLE001  # told to the publisher's thread, which ends with it
            self.unexpected = error
        finally:
            self.idle.clear()
            if self._way is not None:
                self._way.forget()

    def _go_on(self) -> None:
        try:
            report = self._round()
        except OccupiedError:
            raise
        except MachineError as error:
            self._wait_out(error)
            return
        self.trouble, self._failures, self.waits = None, 0, False
        if self._is_over(report):
            self.over = report
        elif not report.settled:
            self._rest(report)

    def _round(self) -> Report:
        if not self._opened:
            self.output.sink.open(self._tenure)
            self._opened = True
        self._wake.clear()
        if self._way is None:
            self._way = self._new_way(None)
        report = self._way.go_round(ahead=False)
        while report.stale and not self._stopped.is_set():
            self._way = self._new_way(self._way)
            report = self._way.go_round(ahead=False)
        return report

    def _new_way(self, former: ReadAhead | None) -> ReadAhead:
        if former is not None:
            former.forget()
        made = self._post.lagging_pipeline(self.output)
        return ReadAhead(replace(made, told=self._vitals.delivered, pulse=self._moves.set), former)

    def _rest(self, report: Report) -> None:
        assert self._way is not None
        source = self._source(self._way)
        self.waits = source.paused or report.later is not None
        if not report.events and not self.waits:
            source.gone()
            if not source.owed and not self._wake.is_set():
                self.idle.set()
        self._wake.wait(REST_SECONDS if report.later is None else min(report.later, REST_SECONDS))

    def _wait_out(self, error: MachineError) -> None:
        self.trouble = error
        if isinstance(error, SinkError) and not self._opened:
            self._vitals.not_opened(self.name, error)
        if self._way is not None and not isinstance(error, SinkError):
            self._way.forget()
            self._way = None
        self._failures += 1
        if not (error.may_pass or isinstance(error, SinkError)) and self._failures >= MOST_TRIES:
            raise error  # which ends the publisher, as it does where all are in step
        seconds = FAILURES.delay(self._failures, secrets.SystemRandom().random())
        self._journal.warning(
            "output_failed", output=self.name, error=str(error), attempt=self._failures, again_in=round(seconds, 1)
        )
        self._stopped.wait(seconds)

    @staticmethod
    def _source(way: ReadAhead) -> LaggingSource:
        from eventlog.sources.log.lagging import LaggingSource

        assert isinstance(way.pipeline.source, LaggingSource)
        return way.pipeline.source


class CatchingUp:
    """All outputs that lag, as the publisher's thread sees them; `post` is None where none may, for a stream goes on only once."""

    def __init__(
        self,
        outputs: Sequence[Output],
        post: LogPost | None,
        vitals: PublisherHealth,
        journal: BoundLogger,
        is_over: Callable[[Report], bool],
        most: Mapping[str, MostBehind],
    ) -> None:
        self._is_over = is_over
        self._outputs = outputs
        self._most = most
        self._next_look = 0.0
        self._waited_for: str | None = None
        self._post = post
        self._vitals = vitals
        self._journal = journal
        self._tenure: Tenure | None = None
        self.in_step = [*outputs]
        """The outputs that do not lag."""
        self.running: dict[str, CatchUp] = {}
        """Those that do, by name."""
        self._next_meeting = 0.0

    def __bool__(self) -> bool:
        return bool(self.running)

    @property
    def over(self) -> Report | None:
        """The cycle of an output that says that nothing more may be sent. What nobody expected is raised."""
        for one in self.running.values():
            if one.unexpected is not None:
                raise one.unexpected
        return next((one.over for one in self.running.values() if one.over is not None), None)

    @property
    def moving(self) -> bool:
        """Whether an output goes on, and nothing is wrong with it."""
        return any(one.alive and one.trouble is None and not one.waits for one in self.running.values())

    @property
    def failed_for_good(self) -> set[str]:
        """The outputs with which something is wrong that trying again does not mend."""
        return {name for name, one in self.running.items() if one.trouble is not None and not one.trouble.may_pass}

    def raise_trouble(self) -> None:
        """Raises what is wrong with one of them."""
        for one in self.running.values():
            if one.trouble is not None:
                raise one.trouble

    def begin(self, tenure: Tenure) -> None:
        """Goes on with those that lag, as the log has it, after the lock was taken."""
        self.end()
        self._tenure = tenure
        if self._post is None:
            return
        known = {output.name: output for output in self._outputs}
        self._post.serve([*known])
        formerly = {former: output.name for output in self._outputs for former in output.former_names}
        self._post.rename({former: name for former, name in formerly.items() if former not in known})
        for name in self._post.lagging():
            if name in known:
                self._start(known[name])
            else:
                hint = f"It keeps rows waiting. Add it again, or give them up: eventlog outputs forget {name!r}."
                self._journal.error("output_unknown", output=name, hint=hint)

    def end(self) -> None:
        """Stops them all, and waits until each has ended what it began."""
        for one in self.running.values():
            one.stop()
        for one in self.running.values():
            one.join()
        self._lag({})

    def may_leave(self, names: Collection[str]) -> bool:
        """Whether these can be left behind: somebody must stay in step."""
        return self._post is not None and bool(names) and any(one.name not in names for one in self.in_step)

    def leave_behind(self, names: Mapping[str, str], opened: Collection[str]) -> None:
        """Lets these lag, each for a reason. To be called between two cycles; `opened` are outputs that were taken over."""
        assert self._post is not None
        leaving = [output for output in self.in_step if output.name in names]
        self._post.leave_behind(leaving)
        for output in leaving:
            self._journal.warning("output_left_behind", output=output.name, why=names[output.name])
            self._start(output, opened=output.name in opened)

    def hold_up(self) -> bool:
        """Whether the others wait for an output that is too far behind; one that is to be paused then is paused here."""
        if not self.running or self._post is None or not any(one in self._most for one in self.running):
            self._waited_for = None
            return False
        if monotonic() < self._next_look:
            return self._waited_for is not None
        self._next_look = monotonic() + LOOK_SECONDS
        former, self._waited_for = self._waited_for, None
        for name, lag in self._post.lags().items():
            most = self._most.get(name, MostBehind())
            if lag.paused or name not in self.running:
                continue
            if not most.is_passed(lag):
                if lag.resumed is not None:
                    self._post.caught_up(name)
                continue
            if most.pause and not most.is_paused_at(lag):
                continue
            if most.pause:
                self._post.pause(name, f"it was {counted(lag.rows, 'row')} behind.")
                self._journal.error("output_paused", output=name, rows=lag.rows, seconds=lag.seconds)
                continue
            if former != name:
                self._journal.error("others_wait_for_output", output=name, rows=lag.rows, seconds=lag.seconds)
            self._waited_for = name
        return self._waited_for is not None

    def rejoined(self, moved: Callable[[], None], most_rows: int, *, failing: bool = False) -> bool:
        """Whether an output is in step again. To be called between two cycles; those in step wait for it a little.

        Where those in step are `failing`, it joins them with the batch in hand, and goes on without them then.
        """
        changed = False
        for one in list(self.running.values()):
            if self._meets(one, moved, most_rows) and self._joins(one, with_batch=failing):
                changed = True
        return changed

    def _meets(self, one: CatchUp, moved: Callable[[], None], most_rows: int) -> bool:
        if one.idle.is_set():
            return True
        stays = one.waits or one.trouble is not None or one.rows > most_rows
        if stays or monotonic() < self._next_meeting:
            return False
        end = monotonic() + MEET_SECONDS
        while monotonic() < end and not one.idle.wait(0.05) and one.trouble is None:
            moved()
        self._next_meeting = monotonic() + MEET_PAUSE_SECONDS
        return one.idle.is_set()

    def _joins(self, one: CatchUp, *, with_batch: bool) -> bool:
        assert self._post is not None
        one.stop()
        one.join()
        self._lag({name: other for name, other in self.running.items() if other is not one})
        if one.unexpected is None and self._post.rejoin(one.name, with_batch=with_batch):
            self._journal.info("output_in_step", output=one.name)
            return True
        self._start(one.output, opened=True)
        return False

    def _start(self, output: Output, *, opened: bool = False) -> None:
        assert self._post is not None
        assert self._tenure is not None
        one = CatchUp(output, self._post, self._tenure, self._vitals, self._journal, self._is_over, opened=opened)
        self._lag({**self.running, output.name: one})

    def _lag(self, running: dict[str, CatchUp]) -> None:
        self.running = running
        self.in_step = [output for output in self._outputs if output.name not in running]
