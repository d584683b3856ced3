"""A full load: ranges of a table's keys, gone through a range of rows at a time, each in a
transaction with its mark.

Several ranges go at once, each in a thread and a session of its own: drivers wait without holding
others up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Final
from uuid import uuid4

from msgspec.structs import replace
from sqlalchemy import Connection, Engine

from eventlog.care.rows import was_stopped_by_lock
from eventlog.core.errors import DataError, InstallError, MachineError, SourceError, UsageError, shorten
from eventlog.core.model import REFRESH, REFRESH_FOR, Kind, Status
from eventlog.core.times import in_zone
from eventlog.refresh import ranges
from eventlog.refresh.loads import Gate, Load, RefreshPace, Statements
from eventlog.refresh.ranges import RangeState, RangeStates
from eventlog.sources.marks import Marks
from eventlog.sql.access import is_denied, transaction
from eventlog.sql.log import Log
from eventlog.tracked.registry import refuse_condition

JOB_RANGES: Final = 4
"""Ranges for each job: who is through with one helps with what is left, also when it goes on with
more jobs.
"""

LOCK_TRIES: Final = 10
"""How often a range is tried for which somebody else holds a lock: each time it waits as long as
its session may.
"""


class Refresh:
    """A full load of one class.

    `pause` waits so many seconds; `reading` is who reads the table, if it is not who writes the
    log.
    """

    def __init__(
        self,
        log: Log,
        load: Load,
        pace: RefreshPace | None = None,
        pause: Callable[[float], object] | None = None,
        reading: Engine | None = None,
    ) -> None:
        if load.table.whole_row:
            problem = f"The rows of {load.called} have no key, so refresh cannot have them read back."
            raise InstallError(
                problem,
                hint="Move them aside before you track the table, and insert them afterwards.",
            )
        self._log = log
        self._reading = reading or log.engine
        if load.when is not None and self._reading is log.engine:
            with log.transaction() as connection:
                refuse_condition(connection, log.names, load.called)
        self._load = load
        self._pace = pace or RefreshPace()
        self._marks = Marks(log)
        self._sql = Statements(log.dialect, log.names, load)
        self.gate = Gate(self._pace, self._waiting, pause)

    def begin(self, *, again: bool = False, jobs: int = 1) -> RangeStates:
        """Begin the ranges of the load: behind the rows written before it was broken off, unless it is to
        begin `again`.

        Where fewer ranges than `jobs` are left, they are cut further.
        """
        marked = None if again else self._read_marked()
        states = marked
        if not states or not self._is_of_this(states):
            states = (RangeState(where=self._load.where, only=self._load.only, total=self._count()),)
        cut = self._cut_ranges(states, jobs)
        if cut != marked:
            # Former marks go in the same transaction: those of two cuts together would be no load
            # at all.
            with self._log.transaction() as connection:
                self._clear(connection)
                for state in cut:
                    self._mark(connection, state)
        return cut

    @property
    def is_begun(self) -> bool:
        """Tell whether this load was broken off, and goes on."""
        marked = self._read_marked()
        return bool(marked) and self._is_of_this(marked or ())

    def steps(self, states: Sequence[RangeState]) -> Iterator[RangeState]:
        """Goes through one range after the other, and yields after each range how far its range
        is.
        """
        left = [state.place for state in states if not state.done]
        for state in states:
            for step in self.write_chunks(state):
                if step.done:
                    left.remove(step.place)
                yield step
        if not left:  # nobody closed the gate
            self.end(states)

    def write_chunks(self, state: RangeState) -> Iterator[RangeState]:
        """Writes a range range after range, and yields after each how far it is.

        The mark goes along.
        """
        tries = 0
        while not state.done and self.gate.enter():
            try:
                with self._log.transaction() as connection:
                    state = self._write_chunk(connection, state)
            except SourceError as error:
                tries += 1
                if is_denied(self._log.dialect, error.__cause__):
                    error.hint = (
                        f"A full load needs INSERT on {self._log.name}: run it as the login that installed the log."
                    )
                # A range that did not get a lock has left nothing, so it is tried again.
                if tries == LOCK_TRIES or not was_stopped_by_lock(self._log, error):
                    raise
                continue
            finally:
                self.gate.leave()
            tries = 0
            yield state

    def end(self, states: Sequence[RangeState]) -> None:
        """Forgets the ranges of a load that has ended.

        One in one piece was forgotten with its last range.
        """
        if len(states) > 1:
            with self._log.transaction() as connection:
                self._clear(connection)

    def _read_marked(self) -> RangeStates | None:
        with self._log.transaction() as connection:
            return ranges.read(self._load.mark, self._marks.all(connection))

    def _is_of_this(self, states: RangeStates) -> bool:
        # A load under another condition has written other rows, so it is not this one that was broken off.
        return (states[0].where, states[0].only) == (self._load.where, self._load.only)

    def _cut_ranges(self, states: RangeStates, jobs: int) -> RangeStates:
        """Cut the ranges that are left into as many pieces that there is work for all jobs."""
        left = [state for state in states if not state.done]
        if not left or len(left) >= jobs:
            return states
        # Rounded up.
        most = -(-jobs * JOB_RANGES // len(left))
        cut: list[RangeState] = []
        with self._table() as connection:
            for state in states:
                pieces, share = ranges.shares(state, most, self._pace.chunk)
                if state.done or pieces == 1:
                    cut.append(state)
                    continue
                cut += ranges.part_range(state, self._sql.bounds(connection, state, pieces, share), share)
        if len(cut) == len(states):
            return states
        return ranges.number_ranges(cut, uuid4().hex)

    def _write_chunk(self, connection: Connection, state: RangeState) -> RangeState:
        if self._reading is self._log.engine:
            self._sql.prepare_session(connection)
            keys = self._sql.next_keys(connection, state, self._pace.chunk)
        else:
            with self._table() as table:
                keys = self._sql.next_keys(table, state, self._pace.chunk)
        # A value that compares as greater than itself would give the same range for ever.
        if keys and keys[-1] == state.after:
            problem = f"The row {shorten(keys[-1])} of {self._load.table.name} comes after itself."
            raise DataError(problem, hint="Leave that row out with --where.")
        distinct = dict.fromkeys(keys)  # a view may have several rows of one object
        if distinct:
            self._sql.write(connection, list(distinct), self._columns(connection))
            state = replace(state, after=keys[-1], rows=state.rows + len(keys))
        # Where fewer rows came than were asked for, no more are left.
        state = replace(state, done=len(keys) < self._pace.chunk)
        self._mark(connection, state)
        return state

    @contextmanager
    def _table(self) -> Iterator[Connection]:
        """Open a transaction that reads the table, with the settings that its texts need."""
        with transaction(self._reading, f"The table {self._load.called}") as connection:
            self._sql.prepare_session(connection)
            yield connection

    def _mark(self, connection: Connection, state: RangeState) -> None:
        name = ranges.mark_name(self._load.mark, state.place)
        if state.done and state.ranges == 1:
            self._marks.clear(connection, name)
        else:
            self._marks.set(connection, name, ranges.write(state))

    def _clear(self, connection: Connection) -> None:
        for name in ranges.marks_of(self._load.mark, list(self._marks.all(connection))):
            self._marks.clear(connection, name)

    def _columns(self, connection: Connection) -> dict[str, object]:
        """Return the values common to all rows of a range."""
        by = REFRESH
        if self._load.only:
            by = f"{REFRESH_FOR}{self._load.only}"
        # As parameters and not as constants of the statement: PyMySQL sends many rows at once only
        # then.
        return {
            "status": Status.NEW.value,
            "kind": int(Kind.INSERT_ROW_BACK),
            "time": in_zone(self._log.now(connection), self._log.zone),
            "perpetrator": by,
            "called": self._load.called,
        }

    def _count(self) -> int:
        try:
            with self._table() as connection:
                return int(connection.execute(self._sql.count).scalar_one())
        except SourceError as error:
            if error.may_pass or self._load.where is None:
                raise
            problem = f"The condition {self._load.where!r} cannot be asked of {self._load.table.name}"
            reason = str(getattr(error.__cause__, "orig", error)).partition("\n")[0].rstrip(".")
            hint = error.hint or "Write it with the names of the table's columns."
            raise UsageError(f"{problem}: {reason}.", hint=hint) from None

    def _waiting(self, most: int) -> int:
        with self._log.transaction(lone=True) as connection:
            return int(connection.execute(self._sql.waiting, {"limit": most}).scalar_one())


GO_ON: Final = "What was written stays, and the same command continues from there."


def work_on(load: Refresh, states: Sequence[RangeState], jobs: int, report: Callable[[int], None]) -> None:
    """Goes through all ranges, so many at once, and reports after each range how many rows the
    load has written.

    What goes wrong in one range, or whoever interrupts, ends the others after the range in hand;
    it is raised then.
    """
    crew = RefreshJobs(load, states, report)
    ends = [Event() for _ in range(jobs)]
    try:
        for end in ends:
            # Not joined: Python may take a thread for ended whose join is interrupted.
            Thread(target=crew.work, args=(end,), daemon=True).start()
        _await(ends)
    except BaseException:
        load.gate.close()
        # An interrupt may come while they are started: who is not at work by now writes nothing.
        _await(crew.at_work)
        raise
    if crew.failures:
        failure = crew.failures[0]
        # Only of a machine's trouble it makes sense to say that the same command goes on.
        if isinstance(failure, MachineError):
            failure.hint = f"{failure.hint} {GO_ON}" if failure.hint else GO_ON
        raise failure
    load.end(states)


class RefreshJobs:
    """The ranges that are left, and who takes them."""

    def __init__(self, load: Refresh, states: Sequence[RangeState], report: Callable[[int], None]) -> None:
        self._load = load
        self._left = deque(state for state in states if not state.done)
        self._rows = {state.place: state.rows for state in states}
        self._report = report
        self._reporting = Lock()
        self.at_work: list[Event] = []
        self.failures: list[BaseException] = []

    def work(self, end: Event) -> None:
        """Takes one range after the other until none is left, or something goes wrong anywhere; `end` is set then."""
        self.at_work.append(end)
        try:
            while True:
                with self._reporting:
                    if not self._left:
                        break
                    state = self._left.popleft()
                for step in self._load.write_chunks(state):
                    with self._reporting:
                        self._rows[step.place] = step.rows
                        self._report(sum(self._rows.values()))
        except BaseException as failure:  # noqa: BLE001  # the thread that waits for this one raises it
            self.failures.append(failure)
            self._load.gate.close()
        finally:
            end.set()


def _await(ends: Sequence[Event]) -> None:
    for end in ends:
        end.wait()
