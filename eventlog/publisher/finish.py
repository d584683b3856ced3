"""Enters in the journal what became of planned documents: rows are over, come again, or are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

from eventlog.core.counting import counts_after
from eventlog.core.model import CutTransaction, Outcome
from eventlog.core.tracing import step
from eventlog.delivery.output import Output
from eventlog.publisher.journal import Journal
from eventlog.publisher.plans import Done
from eventlog.publisher.row_outcomes import Answers, judge, number_of, worst_by
from eventlog.publisher.selection import BEHIND, Parking
from eventlog.publisher.tables import OnTheWay
from eventlog.publisher.turn_report import Books, ConsumerSettings
from eventlog.sources.marks import RowRanges


class Finisher:
    """Ends the documents of one output."""

    def __init__(self, journal: Journal, output: Output, settings: ConsumerSettings) -> None:
        self.doubts = 0
        """How many doubts there were when the target was asked last, or is being asked."""
        self._journal = journal
        self._output = output
        self._settings = settings

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
