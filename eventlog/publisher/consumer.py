"""The consumer: one output of a log, turn by turn, in step with the others or far behind.

A turn, when nothing is in doubt: take rows, decide, prepare documents at the sink, plan them in the
journal, commit them at the sink, done in the journal. After a crash and after any error `_resolve`
asks the sink which plan it has. A target that cannot be asked gets its planned documents again.

Where many rows wait, the next plan is made, and prepared, while this one is committed. No journal
has it yet: where anything comes again, or fails, it is forgotten, and its rows are taken again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from time import time_ns
from typing import Final

from msgspec.structs import replace

from eventlog.core.counting import counts_after
from eventlog.core.detail import log_documents
from eventlog.core.errors import EventlogError
from eventlog.core.model import CutTransaction, Outcome
from eventlog.core.seams import Tenure
from eventlog.core.tracing import Span, step
from eventlog.delivery.blame import refuse_fault
from eventlog.delivery.lanes import haste
from eventlog.delivery.output import Output
from eventlog.publisher.blocked_rows import park_unread
from eventlog.publisher.decide import Decider
from eventlog.publisher.journal import Journal
from eventlog.publisher.journal_view import View
from eventlog.publisher.late import Late
from eventlog.publisher.planner import MadePlan, PlanMaker
from eventlog.publisher.plans import Done, HoldsChangedError, TablesChangedError
from eventlog.publisher.restored import Given, adopt_given, compare_plans
from eventlog.publisher.row_outcomes import POSITION, Answers, judge, number_of, worst_by
from eventlog.publisher.selection import BEHIND, EVERY_ROW_SECONDS, NOTHING_SENT, Parking, Take, Unanswered, take
from eventlog.publisher.sending import Again, HandOver, may_go
from eventlog.publisher.table_faults import try_tables
from eventlog.publisher.tables import JournalRow, OnTheWay
from eventlog.publisher.threads import beside
from eventlog.publisher.traces import BatchTrace, BatchTraces, Ended
from eventlog.publisher.turn_report import Books, ConsumerSettings, Turn
from eventlog.sources.marks import RowRanges

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
        self._traces = traces
        self._trace: BatchTrace | None = None
        self.decider = self._decider = decider
        self._journal = journal
        self._settings = settings
        self._confirm = confirm
        self._pulse = pulse
        self._tenure: Tenure | None = None
        self._asked: tuple[Tenure, int] | None = None
        """With which lock, and after how many doubts, the target was asked last; None after an error."""
        self._doubts = 0
        """How many doubts there were when the target was asked last, or is being asked."""
        self._unsent: set[tuple[str, int]] = set()
        """Documents that were planned since the last error, and that nobody has begun to send."""
        self._given: Given = {} if given is None else given
        self._after = ""
        self._most_wait = False
        """Whether most rows of the last take had to wait, as those behind them may have to."""
        self._ahead: MadePlan | None = None
        self._maker = PlanMaker(journal, output, settings.limit)
        self._books = Books()
        self._late = Late(journal, output, settings)

    def turn(self, tenure: Tenure) -> Turn:
        """Give the output its next documents; after any error, nothing known of its target counts."""
        self._books = Books()
        self._decider = self.decider
        try:
            turn = self._step(tenure)
            # The books are those of the plan that was handed over, which may be an earlier one's.
            turn = self._books.close_turn(turn)
        except (HoldsChangedError, TablesChangedError) as error:
            self._asked = None
            self._forget_ahead()
            turn = Turn(moved=True, stale=frozenset() if isinstance(error, TablesChangedError) else None)
        except BaseException as error:
            self._asked = None
            self._forget_ahead()
            self._end_trace(self._trace, error)
            raise
        self._end_trace(self._trace, turn)
        return turn

    @property
    def _span(self) -> Span | None:
        return None if self._trace is None else self._trace.span

    def _join_trace(self, taken: Take, began: int) -> BatchTrace | None:
        """Goes on with the trace of these rows, or begins it; None while traces are off."""
        if self._traces is None or not taken.events:
            return None
        others = self._journal.others(self.name)
        return self._traces.join(self.name, taken, (began, time_ns()), others)

    def _end_trace(self, trace: BatchTrace | None, end: Ended = None) -> None:
        if trace is not None and self._traces is not None:
            self._traces.leave(self.name, trace, end)
        if trace is self._trace:
            self._trace = None

    def _forget_ahead(self) -> None:
        """Forget the plan made for the next turn; its rows are taken again."""
        if self._ahead is not None:
            self._end_trace(self._ahead.trace)
            self._ahead = None

    def so_far(self) -> Turn:
        """Return the work a failed turn has done."""
        return self._books.close_turn(Turn(documents=self._books.documents))

    def _step(self, tenure: Tenure) -> Turn:
        sure = tenure, self._journal.doubts
        if self._asked != sure or self.name in self._decider.faults:
            # Before the target is asked: it may be down, and paused because of that.
            if self._journal.output(self.name).paused:
                return Turn(paused=True)
            refuse_fault(self._decider.faults.get(self.name))
            # Somebody else may have had the lock since, and have taken its rows.
            self._forget_ahead()
            known = self.output.sink.capabilities.associations
            if known is not None and (self._tenure != tenure or self._doubts != sure[1] or self._late.is_lost):
                from eventlog.publisher.associated import KeptAssociations

                known.serve(KeptAssociations(self._journal.log, self.name))
            if self._tenure != tenure:
                self.output.sink.open(tenure)
                self._tenure = tenure
            self._doubts = sure[1]
            self._resolve()
            self._asked = sure
        self._late.enter(self._books, self._doubts)
        now = self._journal.now()
        if self._ahead is not None and self._ahead.decider is not self._decider:
            # It was decided by the tables as they were. Resolving sweeps what was prepared for it.
            self._forget_ahead()
            self._resolve()
        step_taken: Turn | MadePlan | Again
        if self._ahead is not None:
            made, self._ahead = self._ahead, None
            step_taken = self._plan(made)
        else:
            with self._journal.at_new_rows(self.name):
                self._most_wait = self._most_wait and self._parks_unread(now)
                if self._most_wait:
                    return Turn(moved=True)
                step_taken = self._next(now)
        if isinstance(step_taken, Turn):
            return step_taken
        if isinstance(step_taken, Again):
            return self._hand_over(step_taken, now, is_new=False)
        if self.output.sink.capabilities.resolves:
            return self._commit(step_taken, now)
        planned = step_taken.plan.planned
        self._given[self.name] = step_taken.plan.plan
        self._unsent.update(document.key for document in planned)
        return self._hand_over(Again(planned, range(len(planned))), now, is_new=True)

    def _next(self, now: int) -> Turn | MadePlan | Again:
        """Plan the next turn, find documents to repeat, or say why none is sent."""
        began = time_ns()
        try_tables(self._journal, self.name, now)
        with self._journal.reading() as view:
            row = view.memory.output(self.name)
            if row.paused:
                return Turn(paused=True)
            if self._asked != (self._tenure, self._journal.doubts):
                return Turn(moved=True)
            unanswered = self._find_unanswered(view)
            until = view.find_last_retry(self.name) if self._settings.stops else None
            going = may_go(unanswered, now)
            if going and until is None:
                return Again(unanswered.documents, going)
            taken = self._take(view, unanswered, now, until)
            # What comes again goes first where it stops all, unless it waits itself.
            if going and taken.is_empty and (until or now) <= now:
                return Again(unanswered.documents, going)
            self._most_wait = len(taken.parked) > len(taken.events)
            if taken.is_empty:
                times = [document.due for document in unanswered.documents]
                waited = (until, view.soonest(self.name), self._journal.faults.find_next_try(self.name))
                times += [time for time in waited if time is not None]
                # What is due already waits for one of the others, or for somebody: it is looked at again.
                again = now + round(EVERY_ROW_SECONDS * 1000) if times else None
                later = min([time for time in times if time > now], default=again)
                # The journal goes by milliseconds.
                return Turn(later=None if later is None else (later - now) / 1000)
            # With few rows the plan asks whether tables were altered: that saves a way to the database.
            history = self._decider.stamp if taken.is_all else None
            knows = self._decider.knows_tracked(view.memory)
            if not knows or (history is None and not self._decider.knows_tables(view.memory, view.ask)):
                return Turn(stale=frozenset())
        self._trace = trace = self._join_trace(taken, began)
        made = self._maker.make(self._decider, taken, now, row, after=self._after, trace=trace, history=history)
        if isinstance(made, Turn):
            return made
        return self._plan(made)

    def _parks_unread(self, now: int) -> bool:
        """Park new rows without reading their values; return True if they were the majority."""
        with self._journal.reading() as view:
            memory = view.memory
            if memory.output(self.name).paused or not memory.any_parked:
                return False
            # With "stop" one answer holds up everything, and nothing may pass it unread either.
            if self._settings.stops and ((view.find_last_retry(self.name) or 0) > now or view.list_planned(self.name)):
                return False
        return park_unread(self._journal, self._decider, self._settings.limit)

    def _find_unanswered(self, view: View) -> Unanswered:
        """Find documents perhaps at a receiver; a target that can be asked has been."""
        if self.output.sink.capabilities.resolves or not (documents := view.list_planned(self.name)):
            return NOTHING_SENT
        return Unanswered(documents, view.come_again(self.name), self._settings.stops)

    def _take(self, view: View, unanswered: Unanswered, now: int, until: int | None) -> Take:
        """Take the rows ready for the output; none if a receiver's answer stops everything."""
        if until is not None or unanswered.stops:
            until = max([until or 0, *map(attrgetter("due"), unanswered.documents)])
            if until > now:
                return Take(stamp=view.memory.stamp)
        return take(
            view,
            self.name,
            now=now,
            limit=self._settings.limit,
            identities=self._decider.identities,
            unanswered=unanswered,
            untried=self._journal.faults.list_untried(now),
        )

    # --- what is new ------------------------------------------------------------------------------

    def _plan(self, made: MadePlan) -> Turn | MadePlan:
        """Enters in the journal where the rows go."""
        self._books, self._trace = made.books, made.trace
        # Before the plan: else one that the sink cannot write would be open in the journal.
        if made.plan.planned and not made.is_prepared:
            self.output.sink.prepare(made.plan.plan, made.encoded.documents)
        self._books.enter_finished(self._journal.plan(self.name, made.plan))
        log_documents(self.name, made.encoded.documents)
        if not made.plan.planned:
            return Turn(moved=True)
        return made

    def _commit(self, made: MadePlan, now: int) -> Turn:
        """Give its plan to a target that can be asked, and make the next one meanwhile."""
        documents = made.encoded.documents
        took_all = False
        if self._may_make_ahead(made):
            self._deliver_beside(made, now)
        else:
            took_all = self._deliver(made, now) and made.plan.taken.is_all and not made.plan.again
        self._after = documents[-1].id
        return Turn(documents=len(documents), moved=True, took_all=took_all)

    def _deliver(self, made: MadePlan, now: int) -> bool:
        """Commit a plan at the target and enter the result; return True if all of it is finished."""
        documents = made.encoded.documents
        with step(self._span, "write", output=self.name, documents=len(documents)):
            # The last moment to see that the lock is lost: what is committed cannot be taken back.
            self._confirm()
            answers = self.output.sink.commit(made.plan.plan, made.encoded.documents)
        outcomes = worst_by(POSITION, answers)
        self._pulse()
        self._books.enter_answers(outcomes, self._settings.strictness)
        is_over = self._finish(made.plan.planned, outcomes, now, made.plan.taken.objects)
        self._books.enter_delivery(documents, outcomes)
        return is_over

    def _may_make_ahead(self, made: MadePlan) -> bool:
        """Return True if a turn was full, and the next plan may be made beside its delivery."""
        rows = len(made.plan.taken.events)
        if rows < max(self._settings.limit, AHEAD_ROWS) or self._journal.embedded:
            return False
        # Of several outputs the first one to plan new rows seals them, and the plans of the others
        # would fail. So one without a batch ahead waits for that.
        return self._journal.outputs <= 1 or self._journal.is_behind(self.name)

    def _deliver_beside(self, made: MadePlan, now: int) -> None:
        """Delivers in a thread of its own, while this one takes the next rows and makes their plan."""
        # Read before the thread begins: its `done` writes into this row what is reckoned here.
        row, documents = self._journal.output(self.name), made.encoded.documents
        if cut := [part for document in documents for part in document.cut]:
            row = replace(row, transactions=counts_after(row.transactions, cut))
        ahead: MadePlan | None = None
        with haste():
            delivering = beside(f"eventlog-delivers-{self.name}", partial(self._deliver, made, now))
            try:
                ahead = self._make_ahead(row, documents[-1].id, now)
            except EventlogError:
                pass  # what is wrong with the next plan is raised when its turn comes
            finally:
                delivering.exception()  # waits for it
        self._ahead = ahead
        if not delivering.result() and ahead is not None:
            # Something comes again: resolving sweeps what the sink has prepared.
            self._forget_ahead()
            self._asked = None

    def _make_ahead(self, row: JournalRow, after: str, now: int) -> MadePlan | None:
        """Make the plan of the next turn while another one is committed, and let the sink prepare it if it can."""
        began = time_ns()
        with self._journal.reading() as view:
            until = view.find_last_retry(self.name) if self._settings.stops else None
            taken = self._take(view, NOTHING_SENT, now, until)
            if taken.is_empty or not self._decider.knows_tables(view.memory, view.ask):
                return None
        trace = self._join_trace(taken, began)
        ahead: MadePlan | None = None
        try:
            made = self._maker.make(self._decider, taken, now, row, after=after, trace=trace)
            if isinstance(made, MadePlan):
                if made.plan.planned and self.output.sink.capabilities.prepares:
                    self.output.sink.prepare(made.plan.plan, made.encoded.documents)
                    made = replace(made, is_prepared=True)
                ahead = made
        finally:
            if ahead is None:
                self._end_trace(trace)
        return ahead

    # --- answers ----------------------------------------------------------------------------------

    def _finish(
        self,
        planned: Sequence[OnTheWay],
        answers: Answers,
        now: int,
        objects: Mapping[int, str],
        *,
        target_plan: str | None = None,
        freed: Sequence[OnTheWay] = (),
    ) -> bool:
        """Enter answers, and rows to be retried as `freed`; return True if none are."""
        ended: dict[int, Outcome] = {}
        # Rows that are to come again and wait no longer. They leave everything: should one wait
        # again, it is new, and every output is to get it.
        gone: list[int] = []
        parking = Parking(self.name)
        cut: list[CutTransaction] = []
        spoken = worst_by(number_of, answers.values())
        for sent in planned:
            for detail in sent.details:
                cut.extend(detail.cut)
                # By far the most documents: no answer names them, which is success.
                if not detail.said and (not spoken or spoken.keys().isdisjoint(detail.records)):
                    continue
                judged = judge(sent, detail, spoken, objects, self._settings.max_attempts)
                ended.update(judged.over)
                if not judged.again:
                    continue
                # One delay for all rows of a document: they were refused together.
                due = now + self._journal.delay(sent.attempts + 1)
                for record, outcome in sorted(judged.again.items()):
                    if record in objects:
                        name, reason = objects[record], outcome.reason.value
                        parking.add(record, name, reason, due, outcome.note, sent.attempts + 1)
                    else:
                        gone.append(record)
        back = [(record, document) for document in freed for record in document.records]
        for record, document in sorted(back, key=itemgetter(0)):
            if record in objects:
                due = max(now, document.due)
                parking.add(record, objects[record], BEHIND, due, None, document.attempts)
            else:
                gone.append(record)
        counts = counts_after(self._journal.output(self.name).transactions, cut) if cut else None
        capabilities = self.output.sink.capabilities
        known = capabilities.associations
        associations = {} if known is None else known.unwritten()
        done = Done(
            planned=[*planned, *freed],
            outcomes=ended,
            again=parking.rows,
            gone=RowRanges.of(gone),
            transactions=counts,
            target_plan=target_plan,
            asked=capabilities.resolves,
            doubts=self._doubts,
            associations=associations,
        )
        with step(self._span, "settle", output=self.name):
            self._books.enter_finished(self._journal.done(self.name, done))
        if known is not None:
            known.note_entered(associations)
        return not (parking.rows or gone)

    # --- a target that cannot be asked ------------------------------------------------------------

    def _hand_over(self, again: Again, now: int, *, is_new: bool) -> Turn:
        """Sends documents in order. One without a readable answer keeps its plan and id."""
        planned = again.documents

        def enter(over: Sequence[OnTheWay], freed: Sequence[OnTheWay], answers: Answers) -> None:
            objects: Mapping[int, str] = {}
            if answers or freed:  # else no row is parked, and the log need not be asked for objects
                objects = self._objects([*over, *freed])
            self._books.enter_answers(answers, self._settings.strictness)
            self._finish(over, answers, now, objects, freed=freed)
            self._books.enter_delivery([document.again() for document in over], answers)

        sending = HandOver(
            self.output.sink,
            planned,
            going=again.going,
            unsent=self._unsent,
            settings=self._settings,
            confirm=self._confirm,
            pulse=self._pulse,
            enter=enter,
        )
        if self._traces is not None and self._trace is None:
            self._trace = self._traces.again(self.name, planned)
        try:
            with step(self._span, "write", output=self.name, documents=len(planned)):
                sending.run()
        finally:
            sending.enter_answers()
            # Who was not reached has made no attempt: its documents go again when the output does.
            if unread := sending.unread:
                attempts = max(document.attempts for document in unread)
                due = now + self._journal.delay(attempts + 1)
                self._journal.later(self.name, unread, due)
        if sending.complaint is not None:
            self._books.complaint = sending.complaint
        moved = sending.answered > 0 or bool(unread) or is_new
        return Turn(documents=sending.answered, moved=moved)

    def _objects(self, planned: Sequence[OnTheWay]) -> Mapping[int, str]:
        """Map the rows behind documents to their objects, as far as they still wait."""
        with self._journal.reading() as view:
            return view.objects([record for document in planned for record in document.records])

    # --- what is in doubt -------------------------------------------------------------------------

    def _resolve(self) -> None:
        """Ask the target for its last plan; the rest of an open plan is decided again."""
        sink = self.output.sink
        with self._journal.reading() as view:
            row, waiting = view.memory.output(self.name), view.list_planned(self.name)
        if not sink.capabilities.resolves:
            self._after = sink.last()
            self._unsent.clear()
            # What was answered in a time that the log has lost. Nor has anybody the bodies of what
            # was planned for a target of this name that could be asked.
            if not adopt_given(self._journal, row, self._given, self._doubts):
                waiting = [document for document in waiting if document.body is None]
            if waiting:
                self._finish([], {}, self._journal.now(), self._objects(waiting), freed=waiting)
            return
        open_plan = row.plan if waiting else ""
        target = sink.resolve(open_plan)
        self._after = sink.last()
        row = compare_plans(self._journal, row, target.last, self._doubts, is_open=bool(waiting))
        if not waiting:
            return
        there: list[OnTheWay] = []
        missing: list[OnTheWay] = []
        answers = worst_by(POSITION, target.answers)
        for planned in waiting:
            state = target
            if planned.plan != open_plan:  # a receiver that stood here before may have left several
                state = sink.resolve(planned.plan)
                answers |= worst_by(POSITION, state.answers)
            arrived, lacking = planned.split(state.has)
            there += arrived
            missing += lacking
        objects = self._objects(waiting)
        target_plan = target.last if target.last == open_plan else row.target_plan
        self._finish(there, answers, self._journal.now(), objects, target_plan=target_plan, freed=missing)
