"""The target of an output: asks what it has, after each start, error and doubt, and enters what became of documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

from eventlog.core.counting import counts_after
from eventlog.core.model import CutTransaction, Outcome
from eventlog.core.seams import Tenure
from eventlog.core.tracing import step
from eventlog.delivery.output import Output
from eventlog.publisher.journal import Journal
from eventlog.publisher.plans import Done, TakePlan
from eventlog.publisher.restored import Given, adopt_given, compare_plans
from eventlog.publisher.row_outcomes import Answers, choose_worst, judge
from eventlog.publisher.selection import BEHIND, Parking
from eventlog.publisher.tables import OnTheWay
from eventlog.publisher.turn_report import Books, ConsumerSettings
from eventlog.sources.marks import RowRanges


class OutputTarget:
    """What is known of the target of one output; after any error nothing of it counts."""

    def __init__(self, journal: Journal, output: Output, settings: ConsumerSettings, given: Given) -> None:
        self.after = ""
        """The id of its last document."""
        self.asked: tuple[Tenure, int] | None = None
        """With which lock, and after how many doubts, it was asked last; None after an error."""
        self.doubts = 0
        """How many doubts there were when it was asked last, or is being asked."""
        self.unsent: set[tuple[str, int]] = set()
        """Documents that were planned since the last error, and that nobody has begun to send."""
        self._journal = journal
        self._output = output
        self._settings = settings
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
        if known is not None and (self._tenure != tenure or self.doubts != doubts or names_lost):
            from eventlog.publisher.associated import KeptAssociations

            known.serve(KeptAssociations(self._journal.log, self._output.name))
        if self._tenure != tenure:
            self._output.sink.open(tenure)
            self._tenure = tenure
        self.doubts = doubts
        self.resolve(books)
        self.asked = tenure, doubts

    def resolve(self, books: Books) -> None:
        """Ask for its last plan; the rest of an open plan is decided again."""
        name, sink = self._output.name, self._output.sink
        with self._journal.reading() as view:
            row, waiting = view.memory.output(name), view.list_planned(name)
        if not sink.capabilities.resolves:
            self.after = sink.last()
            self.unsent.clear()
            # What was answered in a time that the log has lost. Nor has anybody the bodies of what
            # was planned for a target of this name that could be asked.
            if not adopt_given(self._journal, row, self._given, self.doubts):
                waiting = [document for document in waiting if document.body is None]
            if waiting:
                self.finish(books, [], {}, self._journal.now(), self.find_objects(waiting), freed=waiting)
            return
        open_plan = row.plan if waiting else ""
        target = sink.resolve(open_plan)
        self.after = sink.last()
        row = compare_plans(self._journal, row, target.last, self.doubts, is_open=bool(waiting))
        if not waiting:
            return
        there: list[OnTheWay] = []
        missing: list[OnTheWay] = []
        answers = choose_worst(target.answers)
        for planned in waiting:
            state = target
            if planned.plan != open_plan:  # a receiver that stood here before may have left several
                state = sink.resolve(planned.plan)
                answers |= choose_worst(state.answers)
            arrived, lacking = planned.split(state.has)
            there += arrived
            missing += lacking
        objects = self.find_objects(waiting)
        target_plan = target.last if target.last == open_plan else row.target_plan
        self.finish(books, there, answers, self._journal.now(), objects, target_plan=target_plan, freed=missing)

    def finish(
        self,
        books: Books,
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
        parking = Parking(self._output.name)
        cut: list[CutTransaction] = []
        spoken: Mapping[int, Outcome] = {}
        if answers:
            spoken = {position[0]: outcome for position, outcome in answers.items()}
        for sent in planned:
            for detail in sent.details:
                cut.extend(detail.cut)
                # By far the most documents: no answer names them, which is success.
                if not detail.said and (not spoken or spoken.keys().isdisjoint(detail.records)):
                    continue
                over, again = judge(sent, detail, spoken, objects, self._settings.max_attempts)
                ended.update(over)
                if not again:
                    continue
                # One delay for all rows of a document: they were refused together.
                due = now + self._journal.delay(sent.attempts + 1)
                for record, outcome in sorted(again.items()):
                    if record in objects:
                        name, reason = objects[record], outcome.reason.value
                        parking.add(record, name, reason, due, outcome.note, sent.attempts + 1)
                    else:
                        gone.append(record)
        if freed:
            gone += _park_freed(freed, now, objects, parking)
        counts = counts_after(self._journal.output(self._output.name).transactions, cut) if cut else None
        capabilities = self._output.sink.capabilities
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
            doubts=self.doubts,
            associations=associations,
        )
        with step(books.span, "settle", output=self._output.name):
            books.enter_finished(self._journal.done(self._output.name, done))
        if known is not None:
            known.note_entered(associations)
        return not (parking.rows or gone)

    def find_objects(self, planned: Sequence[OnTheWay]) -> Mapping[int, str]:
        """Map the rows behind documents to their objects, as far as they still wait."""
        with self._journal.reading() as view:
            return view.objects([record for document in planned for record in document.records])


def _park_freed(freed: Sequence[OnTheWay], now: int, objects: Mapping[int, str], parking: Parking) -> list[int]:
    """Park the rows of documents that are decided anew; return those that wait no longer."""
    gone: list[int] = []
    back = [(record, document) for document in freed for record in document.records]
    for record, document in sorted(back, key=itemgetter(0)):
        if record in objects:
            parking.add(record, objects[record], BEHIND, max(now, document.due), None, document.attempts)
        else:
            gone.append(record)
    return gone
