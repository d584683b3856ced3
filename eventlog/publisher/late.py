"""Answers of a receiver that first accepts, and says later what became of it.

Law: what waits for an answer is kept by the log, and forgotten in the transaction that enters the answer. A row that
other outputs still lack, or that somebody has set back, waits with its answer.
"""

from __future__ import annotations

import logging
from time import monotonic

from eventlog.core.errors import SinkError
from eventlog.core.model import Outcome, Reason, Status
from eventlog.delivery.output import Output
from eventlog.publisher.journal import Journal
from eventlog.publisher.turn_report import Books, ConsumerSettings

_log = logging.getLogger(__name__)


class Late:
    """The later answers of one output."""

    def __init__(self, journal: Journal, output: Output, settings: ConsumerSettings) -> None:
        self._journal = journal
        self._output = output
        self._settings = settings
        self._ask_at = 0.0
        self.is_lost = False
        """Whether what waits must be read anew from the log."""

    def enter(self, books: Books, doubts: int) -> None:
        """Ask for answers, where it is time, and enter them."""
        capabilities = self._output.sink.capabilities
        late, known = capabilities.late, capabilities.associations
        if late is None or known is None or monotonic() < self._ask_at:
            return
        self._ask_at = monotonic() + late.seconds
        try:
            answers = late.read()
        except SinkError as error:
            # What comes next may be delivered all the same.
            _log.warning("%s", error)
            books.complaint = str(error)
            return
        if not answers:
            return
        with self._journal.reading() as view:
            waiting = view.objects([record for answer in answers for record in answer.records])
        outcomes: dict[int, Outcome] = {}
        for answer in answers:
            if waiting.keys().isdisjoint(answer.records):
                known.end_waiting(answer.object, answer.awaiting)
                for record in answer.records if answer.status is not Status.SUCCESS else ():
                    reason = Reason.REFUSED if answer.status is Status.ERROR else Reason.PUBLISHED
                    outcomes[record] = Outcome(
                        position=(record,), status=answer.status, reason=reason, note=answer.note or None
                    )
        associations = known.unwritten()
        self.is_lost = True
        finished = self._journal.answer_late(self._output.name, outcomes, associations, doubts)
        self.is_lost = False
        known.note_entered(associations)
        books.enter_finished(finished)
        books.enter_answers({(record,): outcomes[record] for record in finished.records}, self._settings.strictness)
