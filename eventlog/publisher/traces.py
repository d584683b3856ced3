"""Traces of batches, from the oldest row to the last answer. Outputs that take the same rows share
one.

A batch that an output takes later, because it lags or tries again, has a trace of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from time import time_ns
from typing import TYPE_CHECKING, Final

from eventlog.core.tracing import Span, batch_span, end, is_on, times_of
from eventlog.delivery.report import Report

if TYPE_CHECKING:
    from eventlog.publisher.reader import JournalReader
    from eventlog.publisher.selection import Take
    from eventlog.publisher.tables import OnTheWay

OPEN_BATCHES: Final = 8
"""So many traces wait for outputs that have not taken their batch yet; older ones just end."""

Ended = Report | BaseException | None
"""How an output is through with a batch; None where its plan was forgotten."""


class BatchTrace:
    """The trace of one batch, and the outputs that are still to come or at work."""

    def __init__(self, span: Span, records: object, first: str, waiting: set[str]) -> None:
        self.span = span
        self.records = records
        self.first = first
        """The output that took the rows first: it read them and decided."""
        self.waiting = waiting
        self.changes = self.documents = 0
        self.failure: BaseException | None = None


class BatchTraces:
    """The traces of a log that have begun and not ended. Several threads may use it at the same time."""

    def __init__(self) -> None:
        self._open: list[BatchTrace] = []
        self._one_at_a_time = Lock()

    def join(self, output: str, taken: Take, began: int, journal: JournalReader) -> BatchTrace | None:
        """Join the trace of these rows, perhaps begun already; None while traces are off, or without rows.

        They began to be read then.
        """
        if not (is_on() and taken.events):
            return None
        records = frozenset(event.position for event in taken.events)
        with self._one_at_a_time:
            for trace in self._open:
                if trace.records == records and output in trace.waiting and trace.first != output:
                    return trace
            span = batch_span(lambda: times_of(taken.events), (began, time_ns()), len(records))
            if span is None:
                return None
            waiting = {output}
            if not (taken.batches or taken.unparked):  # else others have these rows, or their own take
                waiting.update(row.name for row in journal.places.values() if not row.paused)
            trace = BatchTrace(span, records, output, waiting)
            self._open.append(trace)
            for old in self._open[:-OPEN_BATCHES]:
                self._end(old)
            return trace

    def again(self, output: str, documents: Sequence[OnTheWay]) -> BatchTrace | None:
        """Begin a trace of repeated documents; None while traces are off."""
        span = batch_span(lambda: (), None, sum(len(document.records) for document in documents)) if is_on() else None
        if span is None:
            return None
        trace = BatchTrace(span, None, output, {output})
        with self._one_at_a_time:
            self._open.append(trace)
        return trace

    def leave(self, output: str, trace: BatchTrace | None, ended: Ended = None) -> None:
        """Leave a batch, done or not; with the last output the trace ends."""
        if trace is None:
            return
        with self._one_at_a_time:
            trace.waiting.discard(output)
            if isinstance(ended, Report):
                trace.changes += ended.changes
                trace.documents += ended.documents
            elif ended is not None and trace.failure is None:
                trace.failure = ended
            if not trace.waiting:
                self._end(trace)

    def end(self) -> None:
        """End open spans: nobody continues them here."""
        with self._one_at_a_time:
            for trace in [*self._open]:
                self._end(trace)

    def _end(self, trace: BatchTrace) -> None:
        if trace in self._open:
            self._open.remove(trace)
            end(trace.span, trace.failure, changes=trace.changes, documents=trace.documents)
