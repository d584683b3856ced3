"""The consumer: one output of a log, turn by turn, the same whether it is in step with the others or far behind.

A turn, when nothing is in doubt: take rows, decide, prepare documents at the sink, plan them in the journal, commit
them at the sink, done in the journal. After a crash, and after any error, `resolve` asks the sink which plan it has;
a target that cannot be asked gets its planned documents again as they were: same plan, same id, same body.

Where many rows wait, the plan of the next turn is made while this one is committed. It is in no journal yet: where
anything comes again, or fails, it is forgotten, and its rows are taken anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from threading import Thread
from time import time_ns
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.counting import told_after
from eventlog.core.errors import EventlogError
from eventlog.core.model import CutTransaction, Outcome, Position, Reason
from eventlog.core.seams import Tenure
from eventlog.core.tracing import Span, step
from eventlog.delivery.lanes import haste
from eventlog.delivery.output import Output
from eventlog.publisher.books import Books, ConsumerSettings, Turn
from eventlog.publisher.decide import Decider, Encoded
from eventlog.publisher.journal import Journal
from eventlog.publisher.letters import by_number, by_position, given_up, judge
from eventlog.publisher.making import MadePlan, PlanMaker
from eventlog.publisher.plans import Done, HoldsChangedError
from eventlog.publisher.sending import HandOver
from eventlog.publisher.tables import OnTheWay
from eventlog.publisher.take import BEHIND, Parking, Take, take
from eventlog.publisher.traces import BatchTrace, BatchTraces
from eventlog.publisher.unread import park_unread
from eventlog.publisher.view import View
from eventlog.sources.marks import Stretches
from eventlog.sql.journal_tables import MOVED_PLAN

AHEAD_ROWS: Final = 1_000
"""Fewer rows are published quicker than a thread is begun."""


class Outgoing(Struct, frozen=True, kw_only=True):
    """Documents that are to be handed over. Those that were planned just now say from what they were made."""

    on_the_way: Sequence[OnTheWay]
    encoded: Encoded | None = None
    taken: Take | None = None


class Consumer:
    """Publishes one output of a log. `decider` may be another one from one turn to the next: it knows the tables."""

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
        self._resolved = False
        self._after = ""
        self._most_wait = False
        """Whether most of the rows that were taken last had to wait, as those behind them may have to."""
        self._ahead: MadePlan | None = None
        self._maker = PlanMaker(journal, output, settings.limit)
        self._books = Books()

    def turn(self, tenure: Tenure) -> Turn:
        """Gives the output what comes next. After any error nothing that was known of its target counts."""
        self._books = Books()
        self._decider = self.decider
        try:
            turn = self._step(tenure)
            # The books are those of the plan that was handed over, which may be an earlier one's.
            turn = self._books.entered(turn)
        except HoldsChangedError:
            self._resolved = False
            self._forget_ahead()
            turn = Turn(moved=True)
        except BaseException as error:
            self._resolved = False
            self._forget_ahead()
            self._end_trace(self._trace, None, error)
            raise
        self._end_trace(self._trace, turn)
        return turn

    @property
    def _span(self) -> Span | None:
        return None if self._trace is None else self._trace.span

    def _joined_trace(self, taken: Take, began: int) -> BatchTrace | None:
        """Goes on with the trace of these rows, or begins it; None while traces are off."""
        if self._traces is None or not taken.events:
            return None
        return self._traces.join(self.name, taken, (began, time_ns()), self._journal.others(self.name))

    def _end_trace(self, trace: BatchTrace | None, turn: Turn | None, failure: BaseException | None = None) -> None:
        if trace is not None and self._traces is not None:
            self._traces.leave(self.name, trace, turn, failure)
        if trace is self._trace:
            self._trace = None

    def _forget_ahead(self) -> None:
        """Lets go of the plan that was made for the next turn; its rows are taken anew."""
        made, self._ahead = self._ahead, None
        if made is not None:
            self._end_trace(made.trace, None)

    def so_far(self) -> Turn:
        """What the turn had done that has failed."""
        return self._books.so_far()

    def _step(self, tenure: Tenure) -> Turn:
        if not self._resolved or self._tenure != tenure:
            if self._journal.output(self.name).paused:
                return Turn(paused=True)
            if self._tenure != tenure:
                self._forget_ahead()  # somebody else may have taken its rows
                self.output.sink.open(tenure)
                self._tenure = tenure
            self._resolve()
            self._resolved = True
        now = self._journal.now()
        if self._ahead is not None and self._ahead.decider is not self._decider:
            self._forget_ahead()
            self._resolve()  # what was prepared for it is swept
        if self._ahead is not None:
            made, self._ahead = self._ahead, None
            next_ = self._plan(made)
        else:
            with self._journal.at_new_rows(self.name):
                self._most_wait = self._most_wait and self._parks_unread(now)
                next_ = Turn(moved=True) if self._most_wait else self._next(now)
        if isinstance(next_, Turn):
            return next_
        if next_.encoded is None or not self.output.sink.capabilities.resolves:
            return self._hand_over(next_, now)
        return self._commit(next_, now)

    def _next(self, now: int) -> Turn | Outgoing:
        """Plans what comes next, or says why nothing is to be handed over."""
        began = time_ns()
        with self._journal.reading() as view:
            row = view.memory.output(self.name)
            if row.paused:
                return Turn(paused=True)
            # A target that can be asked has been: nothing is planned for it now.
            on_the_way = () if self.output.sink.capabilities.resolves else view.planned(self.name)
            if any(one.due <= now for one in on_the_way):
                return Outgoing(on_the_way=on_the_way)
            taken = self._taken(view, on_the_way, now)
            self._most_wait = len(taken.parked) > len(taken.events)
            soonest = view.soonest(self.name) if taken.is_empty else None
            if self._decider.tracked is not None and self._decider.tracked != view.memory.tracked:
                return Turn(stale=frozenset())
            if taken.events and not self._knows_definitions(view):
                return Turn(stale=frozenset())
        if taken.is_empty:
            due = [one.due for one in on_the_way] + ([] if soonest is None else [soonest])
            return Turn(later=max(0, min(due) - now) if due else None)
        trace = self._joined_trace(taken, began)
        self._trace = trace
        made = self._maker.make(
            self._decider, taken, now, plans=row.plans, told=row.told, after=self._after, trace=trace
        )
        return made if isinstance(made, Turn) else self._plan(made)

    def _parks_unread(self, now: int) -> bool:
        """Parks new rows without reading their values; whether that were most of them."""
        with self._journal.reading() as view:
            if view.memory.output(self.name).paused:
                return False
            stops = self._settings.strictness.on_retry == "stop"  # then an answer stops everything
            if stops and (view.retried_until(self.name) > now or view.planned(self.name)):
                return False
        return park_unread(self._journal, self._decider, self._settings.limit)

    def _knows_definitions(self, view: View) -> bool:
        """Whether the decider knows the history of tables as it is. To be asked behind the rows: who has seen one that was
        written after DDL sees what that has entered.
        """
        stamp = self._decider.stamp
        return stamp is None or view.history_stamp() == stamp

    def _taken(self, view: View, on_the_way: Sequence[OnTheWay], now: int) -> Take:
        """What the output may be given now; nothing where a receiver's answer stops everything."""
        if self._settings.strictness.on_retry == "stop":
            until = max([view.retried_until(self.name), *(one.due for one in on_the_way)])
            if until > now:
                return Take(stamp=view.memory.stamp)
        return take(
            view,
            self.name,
            now=now,
            limit=self._settings.limit,
            identities=self._decider.identities,
            on_the_way=on_the_way,
            unreadable=self._maker.unreadable_at(now),
        )

    # --- what is new -------------------------------------------------------------------------------------------------

    def _plan(self, made: MadePlan) -> Turn | Outgoing:
        """Enters in the journal where the rows go."""
        self._books, self._trace = made.books, made.trace
        if made.plan.planned and not made.is_prepared:
            self.output.sink.prepare(made.plan.plan, made.encoded.documents)
        self._books.settled(self._journal.plan(self.name, made.plan))
        if not made.plan.planned:
            return Turn(moved=True)
        return Outgoing(on_the_way=made.plan.planned, encoded=made.encoded, taken=made.taken)

    def _commit(self, planned: Outgoing, now: int) -> Turn:
        """Gives a target that can be asked what was planned for it, and makes the next plan meanwhile."""
        assert planned.encoded is not None
        documents = planned.encoded.documents
        began = time_ns()
        following = self._taken_ahead(planned, now)
        if following is None:
            self._deliver(planned, now)
        else:
            self._deliver_beside(planned, following, began, now)
        self._after = documents[-1].id
        return Turn(documents=len(documents), moved=True)

    def _deliver(self, planned: Outgoing, now: int) -> bool:
        """Commits a plan at the target, and enters what became of it; whether all of it is over."""
        assert planned.encoded is not None
        assert planned.taken is not None
        documents, [one] = planned.encoded.documents, planned.on_the_way
        with step(self._span, "write", output=self.name, documents=len(documents)):
            self._confirm()
            outcomes = by_position(self.output.sink.commit(one.plan, documents))
        self._pulse()
        self._books.answered(outcomes, self._settings.strictness)
        is_over = self._finish(planned.on_the_way, outcomes, now, planned.taken.objects)
        self._books.delivered(documents, outcomes)
        return is_over

    def _taken_ahead(self, planned: Outgoing, now: int) -> Take | None:
        """The rows of the next turn, where a turn was full and a plan may be made beside another one.

        New rows are taken so by the only output alone: of several the first one to plan them seals them. One that has no
        batch ahead waits for that, for what was left of a transaction comes with what is behind it.
        """
        assert planned.taken is not None
        rows = len(planned.taken.events)
        if rows < max(self._settings.limit, AHEAD_ROWS) or self._journal.embedded:
            return None
        if self._journal.outputs > 1 and not self._journal.is_behind(self.name):
            return None
        with self._journal.reading() as view:
            taken = self._taken(view, (), now)
            if taken.is_empty or (taken.events and not self._knows_definitions(view)):
                return None
        return taken

    def _deliver_beside(self, planned: Outgoing, following: Take, began: int, now: int) -> None:
        """Delivers in a thread of its own, while this one makes the next plan."""
        assert planned.encoded is not None
        delivered: list[bool | BaseException] = []

        def deliver() -> None:
            try:
                delivered.append(self._deliver(planned, now))
            except BaseException as error:  # noqa: BLE001  # raised below, in the thread that waits for it
                delivered.append(error)

        row = self._journal.output(self.name)
        cut = [part for document in planned.encoded.documents for part in document.cut]
        thread = Thread(target=deliver, name=f"eventlog-delivers-{self.name}", daemon=True)
        made: MadePlan | Turn | None = None
        trace = self._joined_trace(following, began)
        with haste():
            thread.start()
            try:
                told = told_after(row.told, cut) if cut else row.told
                after = planned.encoded.documents[-1].id
                made = self._maker.make(
                    self._decider,
                    following,
                    now,
                    plans=row.plans,
                    told=told,
                    after=after,
                    trace=trace,
                    prepares=self.output.sink.capabilities.prepares,
                )
            except EventlogError:
                pass  # what is wrong with the next plan is said when its turn comes
            finally:
                thread.join()
        [result] = delivered
        if result is True and isinstance(made, MadePlan):
            self._ahead = made
            return
        self._end_trace(trace, None)
        if isinstance(result, BaseException):
            raise result
        self._resolved = False  # something comes again, or the plan was not made: what is prepared is swept

    # --- answers -----------------------------------------------------------------------------------------------------

    def _finish(
        self,
        planned: Sequence[OnTheWay],
        answers: Mapping[Position, Outcome],
        now: int,
        objects: Mapping[int, str],
        *,
        has: str | None = None,
        freed: Sequence[OnTheWay] = (),
    ) -> bool:
        """Enters what was said of documents; whether nothing comes again. Those that were `freed` do, for something
        before them does.

        What is to come again and waits no longer leaves everything: should it wait again, every output is to get it.
        """
        ended: dict[int, Outcome] = {}
        gone: list[int] = []
        parking = Parking(self.name)
        cut: list[CutTransaction] = []
        spoken = by_number(answers.values())
        for one in planned:
            for detail in one.details:
                cut.extend(detail.cut)
                if not detail.said and (not spoken or spoken.keys().isdisjoint(detail.records)):
                    continue
                judged = judge(one, detail, spoken, objects, self._settings.max_attempts)
                ended.update(judged.said)
                delay = self._journal.delay(one.attempts + 1) if judged.again else 0
                for record, outcome in sorted(judged.again.items()):
                    reason = outcome.reason.value
                    if record in objects:
                        parking.add(record, objects[record], reason, now + delay, outcome.note, one.attempts + 1)
                    else:
                        gone.append(record)
        back = [(record, document) for document in freed for record in document.records]
        for record, document in sorted(back, key=itemgetter(0)):
            if record in objects:
                # Rows that a version without journal offered wait as long as they did there.
                reason = Reason.RETRY.value if document.plan == MOVED_PLAN and document.attempts else BEHIND
                parking.add(record, objects[record], reason, max(now, document.due), None, document.attempts)
            else:
                gone.append(record)
        told = told_after(self._journal.output(self.name).told, cut) if cut else None
        done = Done(
            planned=[*planned, *freed],
            said=ended,
            again=parking.rows,
            gone=Stretches.of(gone),
            told=told,
            has=has,
            asked=self.output.sink.capabilities.resolves,
        )
        with step(self._span, "settle", output=self.name):
            self._books.settled(self._journal.done(self.name, done))
        return not (parking.rows or gone)

    # --- a target that cannot be asked -------------------------------------------------------------------------------

    def _hand_over(self, planned: Outgoing, now: int) -> Turn:
        """Sends documents whose turn it is, in order. A readable answer ends with the document; without one it keeps its
        plan, id and body, and nothing of its objects passes it.
        """

        def enter(over: Sequence[OnTheWay], freed: Sequence[OnTheWay], said: Mapping[Position, Outcome]) -> None:
            objects = self._objects([*over, *freed]) if said or freed else {}
            self._books.answered(said, self._settings.strictness)
            self._finish(over, said, now, objects, freed=freed)
            self._books.delivered([one.again() for one in over], said)

        sending = HandOver(
            self.output.sink,
            planned.on_the_way,
            now=now,
            strictness=self._settings.strictness,
            confirm=self._confirm,
            pulse=self._pulse,
            enter=enter,
            given_up=partial(given_up, self._settings.max_attempts),
        )
        if self._traces is not None and self._trace is None:
            self._trace = self._traces.again(self.name, sum(len(one.records) for one in planned.on_the_way))
        try:
            with step(self._span, "write", output=self.name, documents=len(planned.on_the_way)):
                sending.run()
        finally:
            sending.enter_answers()
            # A receiver that was not reached has made no attempt: its documents go again when the output does.
            if unread := sending.unread:
                due = now + self._journal.delay(max(one.attempts for one in unread) + 1)
                self._journal.later(self.name, unread, due)
        if sending.complaint is not None:
            self._books.complain(sending.complaint)
        moved = sending.answered > 0 or bool(unread) or planned.encoded is not None
        return Turn(documents=sending.answered, moved=moved)

    def _objects(self, planned: Sequence[OnTheWay]) -> Mapping[int, str]:
        """The objects of the rows behind documents, as far as they still wait."""
        with self._journal.reading() as view:
            return view.objects([record for one in planned for record in one.records])

    # --- what is in doubt --------------------------------------------------------------------------------------------

    def _resolve(self) -> None:
        """Learns what the target has. What it does not have of an open plan goes back, and is decided anew."""
        sink = self.output.sink
        with self._journal.reading() as view:
            row, waiting = view.memory.output(self.name), view.planned(self.name)
        plan = row.plan if waiting else ""
        if not sink.capabilities.resolves:
            self._after = sink.last()
            # Of plans that a version without journal has made nobody has the bodies: they are decided anew.
            moved = [one for one in waiting if one.body is None]
            if moved:
                self._finish([], {}, self._journal.now(), self._objects(moved), freed=moved)
            return
        found = sink.resolve(plan)
        self._after = sink.last()
        warning = None
        known = (row.plan, row.has) if waiting else (row.plan,)
        if found.last not in known and MOVED_PLAN not in known:
            side = "behind the journal" if found.last < row.plan else "ahead of the journal"
            warning = f"The target is {side}: it has plan {found.last or 'none'}, and {row.plan or 'none'} was made."
        if warning is not None and warning != row.warning:
            self._journal.warn(self.name, warning)
        if not waiting:
            return
        there: list[OnTheWay] = []
        missing: list[OnTheWay] = []
        answers = by_position(found.answers)
        for one in waiting:
            target = found
            if one.plan != plan:  # a version without journal may have had several in doubt
                target = sink.resolve(one.plan)
                answers |= by_position(target.answers)
            for is_there, group in ((True, there), (False, missing)):
                details = [detail for detail in one.details if target.has(detail.document) == is_there]
                if details:
                    group.append(replace(one, details=details))
        objects = self._objects(waiting)
        has = found.last if found.last == plan else row.has
        self._finish(there, answers, self._journal.now(), objects, has=has, freed=missing)
