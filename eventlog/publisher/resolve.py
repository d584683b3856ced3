"""Asks the target of an output what it has, after each start, error and doubt."""

from __future__ import annotations

from eventlog.core.seams import Tenure
from eventlog.delivery.output import Output
from eventlog.publisher.finish import Finisher
from eventlog.publisher.journal import Journal
from eventlog.publisher.plans import TakePlan
from eventlog.publisher.restored import Given, adopt_given, compare_plans
from eventlog.publisher.row_outcomes import POSITION, worst_by
from eventlog.publisher.tables import OnTheWay
from eventlog.publisher.turn_report import Books


class OutputTarget:
    """What is known of the target of one output; after any error nothing of it counts."""

    def __init__(self, journal: Journal, output: Output, finisher: Finisher, given: Given) -> None:
        self.after = ""
        """The id of its last document."""
        self.asked: tuple[Tenure, int] | None = None
        """With which lock, and after how many doubts, it was asked last; None after an error."""
        self.unsent: set[tuple[str, int]] = set()
        """Documents that were planned since the last error, and that nobody has begun to send."""
        self._journal = journal
        self._output = output
        self._finisher = finisher
        self._given = given
        self._tenure: Tenure | None = None

    def forget(self) -> None:
        """Ask it again before the next documents."""
        self.asked = None

    def give(self, plan: TakePlan) -> None:
        """Note a plan that it is about to get, as it cannot be asked."""
        self._given[self._output.name] = plan.plan
        self.unsent.update(document.key for document in plan.planned)

    def ask(self, tenure: Tenure, books: Books, *, names_lost: bool) -> None:
        """Take it over with this lock, and ask it; `names_lost` says that what it calls objects must be read anew."""
        doubts, known = self._journal.doubts, self._output.sink.capabilities.associations
        if known is not None and (self._tenure != tenure or self._finisher.doubts != doubts or names_lost):
            from eventlog.publisher.associated import KeptAssociations

            known.serve(KeptAssociations(self._journal.log, self._output.name))
        if self._tenure != tenure:
            self._output.sink.open(tenure)
            self._tenure = tenure
        self._finisher.doubts = doubts
        self.resolve(books)
        self.asked = tenure, doubts

    def resolve(self, books: Books) -> None:
        """Ask for its last plan; the rest of an open plan is decided again."""
        name, sink, finisher = self._output.name, self._output.sink, self._finisher
        with self._journal.reading() as view:
            row, waiting = view.memory.output(name), view.list_planned(name)
        if not sink.capabilities.resolves:
            self.after = sink.last()
            self.unsent.clear()
            # What was answered in a time that the log has lost. Nor has anybody the bodies of what
            # was planned for a target of this name that could be asked.
            if not adopt_given(self._journal, row, self._given, finisher.doubts):
                waiting = [document for document in waiting if document.body is None]
            if waiting:
                finisher.finish(books, [], {}, self._journal.now(), finisher.find_objects(waiting), freed=waiting)
            return
        open_plan = row.plan if waiting else ""
        target = sink.resolve(open_plan)
        self.after = sink.last()
        row = compare_plans(self._journal, row, target.last, finisher.doubts, is_open=bool(waiting))
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
        objects = finisher.find_objects(waiting)
        target_plan = target.last if target.last == open_plan else row.target_plan
        finisher.finish(books, there, answers, self._journal.now(), objects, target_plan=target_plan, freed=missing)
