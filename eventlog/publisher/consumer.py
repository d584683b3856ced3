"""The consumer: one output of a log, turn by turn, in step with the others or far behind.

A turn, when nothing is in doubt: take rows, decide, prepare documents at the sink, plan them in the
journal, commit them at the sink, done in the journal. After a crash and after any error the sink is
asked which plan it has (`OutputTarget`). A target that cannot be asked gets its planned documents again.

Where many rows wait, the next plan is made, and prepared, while this one is committed. No journal
has it yet: where anything comes again, or fails, it is forgotten, and its rows are taken again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from time import time_ns
from typing import Final

from msgspec.structs import replace

from eventlog.core.counting import counts_after
from eventlog.core.detail import log_documents
from eventlog.core.errors import EventlogError
from eventlog.core.seams import Tenure
from eventlog.core.tracing import step
from eventlog.delivery.blame import refuse_fault
from eventlog.delivery.lanes import haste
from eventlog.delivery.output import Output
from eventlog.publisher.decide import Decider
from eventlog.publisher.journal import Journal
from eventlog.publisher.late import Late
from eventlog.publisher.output_queue import OutputQueue
from eventlog.publisher.output_target import OutputTarget
from eventlog.publisher.planner import PlanMaker
from eventlog.publisher.plans import TakeAgainError, TakePlan
from eventlog.publisher.restored import Given
from eventlog.publisher.row_outcomes import Answers, choose_worst
from eventlog.publisher.sending import HandOver
from eventlog.publisher.table_faults import try_tables
from eventlog.publisher.tables import JournalRow, OnTheWay
from eventlog.publisher.threads import beside
from eventlog.publisher.traces import BatchTraces
from eventlog.publisher.turn_report import Books, ConsumerSettings, Turn

AHEAD_ROWS: Final = 1_000
"""Fewer rows are published quicker than a thread is begun."""


class Consumer:
    """Publishes one output of a log. `decider` knows the tables, and may change between turns."""

    def __init__(
        self,
        journal: Journal,
        output: Output,
        decider: Decider,
        settings: ConsumerSettings,
        *,
        confirm: Callable[[], None] = lambda: None,
        pulse: Callable[[], None] = lambda: None,
        traces: BatchTraces | None = None,
        given: Given | None = None,
    ) -> None:
        self.output = output
        self.name = output.name
        self.decider = self._decider = decider
        self._journal = journal
        self._settings = settings
        self._confirm = confirm
        self._pulse = pulse
        self._traces = traces or BatchTraces()
        self._queue = OutputQueue(journal, output, settings)
        self._maker = PlanMaker(journal, output, settings.limit)
        self._target = OutputTarget(journal, output, settings, {} if given is None else given)
        self._late = Late(journal, output, settings)
        self._most_wait = False
        """Whether most rows of the last take had to wait, as those behind them may have to."""
        self._ahead: TakePlan | None = None
        self._books = Books()

    def turn(self, tenure: Tenure) -> Turn:
        """Give the output its next documents; after any error, nothing known of its target counts."""
        self._books = Books()
        self._decider = self.decider
        try:
            turn = self._books.close_turn(self._step(tenure))
        except TakeAgainError as error:
            self._target.forget()
            self._forget_ahead()
            turn = Turn(moved=True, stale=error.stale)
        except BaseException as error:
            self._target.forget()
            self._forget_ahead()
            self._traces.leave(self.name, self._books.trace, error)
            raise
        if self._books.trace is not None:
            self._traces.leave(self.name, self._books.trace, turn)
        return turn

    def so_far(self) -> Turn:
        """Return the work a failed turn has done."""
        return self._books.close_turn(Turn(documents=self._books.documents))

    def _forget_ahead(self) -> None:
        """Forget the plan made for the next turn; its rows are taken again."""
        if self._ahead is not None:
            self._traces.leave(self.name, self._ahead.trace)
            self._ahead = None

    # --- what comes next --------------------------------------------------------------------------

    def _step(self, tenure: Tenure) -> Turn:
        if self._target.asked != (tenure, self._journal.doubts) or self.name in self._decider.faults:
            # Before the target is asked: it may be down, and paused because of that.
            if self._journal.output(self.name).paused:
                return Turn(paused=True)
            refuse_fault(self._decider.faults.get(self.name))
            # Somebody else may have had the lock since, and have taken its rows.
            self._forget_ahead()
            self._target.ask(tenure, self._books, names_lost=self._late.is_lost)
        self._late.enter(self._books, self._target.doubts)
        now = self._journal.now()
        if self._ahead is not None and self._ahead.decider is not self._decider:
            # It was decided by the tables as they were. Resolving sweeps what was prepared for it.
            self._forget_ahead()
            self._target.resolve(self._books)
        if self._ahead is not None:
            made, self._ahead = self._ahead, None
            self._plan(made)
            return self._send(made, now)
        with self._journal.at_new_rows(self.name) as let_others_take:
            self._most_wait = self._most_wait and self._queue.parks_unread(self._decider, now)
            if self._most_wait:
                return Turn(moved=True)
            return self._next(now, let_others_take)

    def _next(self, now: int, let_others_take: Callable[[], None]) -> Turn:
        """Send documents again, or plan and send the next rows."""
        began = time_ns()
        try_tables(self._journal, self.name, now)
        with self._journal.reading() as view:
            row = view.memory.output(self.name)
            if row.paused:
                return Turn(paused=True)
            if self._journal.doubts != self._target.doubts:
                return Turn(moved=True)
            ready = self._queue.look(view, self._decider, now)
            taken = ready.taken
            # With few rows the plan asks whether tables were altered: that saves a way to the database.
            history = self._decider.stamp if taken is not None and taken.is_all else None
            is_current = taken is None or self._decider.knows_tables(view, by_memory=history is not None)
        if ready.going:
            let_others_take()
            return self._hand_over(ready.documents, ready.going, now, is_new=False)
        if taken is None:
            return Turn(later=ready.later)
        self._most_wait = len(taken.parked) > len(taken.events)
        if not is_current:
            raise TakeAgainError("Tables were altered since they were looked at.", stale=frozenset())
        self._books.trace = trace = self._traces.join(self.name, taken, began, self._journal)
        after = self._target.after
        made = self._maker.make(self._decider, taken, now, row, after=after, trace=trace, history=history)
        self._plan(made)
        let_others_take()
        return self._send(made, now)

    def _plan(self, made: TakePlan) -> None:
        """Enter in the journal where the rows go."""
        books = self._books
        books.made, books.trace, books.complaint = made, made.trace, made.encoded.complaint or books.complaint
        # Before the plan: else one that the sink cannot write would be open in the journal.
        if made.planned and not made.is_prepared:
            self.output.sink.prepare(made.plan, made.encoded.documents)
        books.enter_finished(self._journal.plan(self.name, made))
        log_documents(self.name, made.encoded.documents)

    def _send(self, made: TakePlan, now: int) -> Turn:
        """Give its documents to the target."""
        planned = made.planned
        if not planned:
            return Turn(moved=True)
        if not self.output.sink.capabilities.resolves:
            self._target.give(made)
            return self._hand_over(planned, range(len(planned)), now, is_new=True)
        documents = made.encoded.documents
        took_all = False
        if self._may_make_ahead(made):
            self._deliver_beside(made, now)
        else:
            took_all = self._deliver(made, now) and made.taken.is_all and not made.again
        self._target.after = documents[-1].id
        return Turn(documents=len(documents), moved=True, took_all=took_all)

    # --- a target that can be asked ---------------------------------------------------------------

    def _deliver(self, made: TakePlan, now: int) -> bool:
        """Commit a plan at the target and enter the result; return True if all of it is finished."""
        documents = made.encoded.documents
        with step(self._books.span, "write", output=self.name, documents=len(documents)):
            # The last moment to see that the lock is lost: what is committed cannot be taken back.
            self._confirm()
            answers = self.output.sink.commit(made.plan, documents)
        self._pulse()
        outcomes: Answers = {}
        if answers:
            outcomes = choose_worst(answers)
            self._books.enter_answers(outcomes, self._settings.strictness)
        is_over = self._target.finish(self._books, made.planned, outcomes, now, made.taken.objects)
        self._books.enter_delivery(documents, outcomes)
        return is_over

    def _may_make_ahead(self, made: TakePlan) -> bool:
        """Return True if a turn was full, and the next plan may be made beside its delivery."""
        rows = len(made.taken.events)
        if rows < max(self._settings.limit, AHEAD_ROWS) or self._journal.embedded:
            return False
        # Of several outputs the first one to plan new rows seals them, and the plans of the others
        # would fail. So one without a batch ahead waits for that.
        return len(self._journal.places) <= 1 or self._journal.is_behind(self.name)

    def _deliver_beside(self, made: TakePlan, now: int) -> None:
        """Delivers in a thread of its own, while this one takes the next rows and makes their plan."""
        # Read before the thread begins: its `done` writes into this row what is reckoned here.
        row, documents = self._journal.output(self.name), made.encoded.documents
        if cut := [part for document in documents for part in document.cut]:
            row = replace(row, transactions=counts_after(row.transactions, cut))
        with haste():
            delivering = beside(f"eventlog-delivers-{self.name}", partial(self._deliver, made, now))
            try:
                self._ahead = self._make_ahead(row, documents[-1].id, now)
            except EventlogError:
                pass  # what is wrong with the next plan is raised when its turn comes
            finally:
                delivering.exception()  # waits for it
        if not delivering.result() and self._ahead is not None:
            # Something comes again: resolving sweeps what the sink has prepared.
            self._forget_ahead()
            self._target.forget()

    def _make_ahead(self, row: JournalRow, after: str, now: int) -> TakePlan | None:
        """Make the plan of the next turn while another one is committed, and let the sink prepare it if it can."""
        began = time_ns()
        with self._journal.reading() as view:
            taken = self._queue.look(view, self._decider, now).taken
            if taken is None or not self._decider.knows_tables(view):
                return None
        trace = self._traces.join(self.name, taken, began, self._journal)
        try:
            made = self._maker.make(self._decider, taken, now, row, after=after, trace=trace)
            if made.planned and self.output.sink.capabilities.prepares:
                self.output.sink.prepare(made.plan, made.encoded.documents)
                made = replace(made, is_prepared=True)
        except BaseException:
            self._traces.leave(self.name, trace)
            raise
        return made

    # --- a target that cannot be asked ------------------------------------------------------------

    def _hand_over(self, planned: Sequence[OnTheWay], going: Collection[int], now: int, *, is_new: bool) -> Turn:
        """Sends documents in order. One without a readable answer keeps its plan and id."""
        books = self._books
        sending = HandOver(
            self.output.sink,
            planned,
            going=going,
            unsent=self._target.unsent,
            settings=self._settings,
            confirm=self._confirm,
            pulse=self._pulse,
            enter=partial(self._enter_answers, now),
        )
        if books.trace is None:
            books.trace = self._traces.again(self.name, planned)
        try:
            with step(books.span, "write", output=self.name, documents=len(planned)):
                sending.run()
        finally:
            sending.enter_answers()
            # Who was not reached has made no attempt: its documents go again when the output does.
            if unread := sending.unread:
                attempts = max(document.attempts for document in unread)
                self._journal.later(self.name, unread, now + self._journal.delay(attempts + 1))
        if sending.complaint is not None:
            books.complaint = sending.complaint
        moved = sending.answered > 0 or bool(unread) or is_new
        return Turn(documents=sending.answered, moved=moved)

    def _enter_answers(self, now: int, over: Sequence[OnTheWay], freed: Sequence[OnTheWay], answers: Answers) -> None:
        """Enter documents that are over, documents that are freed to be decided anew, and answers."""
        objects: Mapping[int, str] = {}
        if answers or freed:  # else no row is parked, and the log need not be asked for objects
            objects = self._target.find_objects([*over, *freed])
        self._books.enter_answers(answers, self._settings.strictness)
        self._target.finish(self._books, over, answers, now, objects, freed=freed)
        self._books.enter_delivery([document.again() for document in over], answers)
