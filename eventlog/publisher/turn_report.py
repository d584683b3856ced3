"""What one turn of an output did, as it is entered in its course."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter

from msgspec import Struct, field
from msgspec.structs import replace

from eventlog.core.model import Document, Event, Outcome, Position, Reason, Status
from eventlog.core.tracing import Span
from eventlog.delivery.answers import Strictness
from eventlog.delivery.report import Report
from eventlog.publisher.decide import Cause
from eventlog.publisher.plans import FinishedRows, TakePlan
from eventlog.publisher.traces import BatchTrace


class ConsumerSettings(Struct, frozen=True, kw_only=True):
    """How an output is published: rows a turn, what an answer stops, and how often a change is offered."""

    limit: int = 10_000
    strictness: Strictness = Strictness()
    max_attempts: int = 0

    @property
    def stops(self) -> bool:
        """Return True if nothing more is sent while something is to be offered again."""
        return self.strictness.on_retry == "stop"


class Turn(Report, frozen=True, kw_only=True):
    """The report of one turn, with what only whoever gave it needs to know."""

    stale: frozenset[Cause] | None = None
    """What rows name that cannot be read. Nothing was done: tables may look another way by now."""
    last: tuple[str, Position] | None = None
    """The last document that the target took, and its last row."""
    delivered: Iterable[Event] = ()
    """The rows that the target has now."""
    complaint: str | None = None
    """What a receiver answered for the last row that it did not take, or why the turn failed."""


class Books(Struct, kw_only=True):
    """Collects what one turn does."""

    made: TakePlan | None = None
    """The plan that was entered in this turn, perhaps made in the one before."""
    trace: BatchTrace | None = None
    complaint: str | None = None
    statuses: Counter[Status] = field(default_factory=Counter)
    tables: Counter[str] = field(default_factory=Counter)
    documents: int = 0
    positions: set[Position] = field(default_factory=set)
    """Of the rows that the target has now."""
    last: tuple[str, Position] | None = None
    ended: Status | None = None

    @property
    def span(self) -> Span | None:
        """Return the span of its trace."""
        return None if self.trace is None else self.trace.span

    def enter_answers(self, answers: Mapping[Position, Outcome], strictness: Strictness) -> None:
        """Enter the answers of a receiver or a target."""
        for outcome in answers.values():
            if outcome.status in (Status.ERROR, Status.FATAL) or outcome.reason is Reason.RETRY:
                self.complaint = outcome.note or str(outcome.reason)
            if strictness.ends(outcome.status):
                self.ended = outcome.status

    def enter_delivery(self, documents: Sequence[Document], answers: Mapping[Position, Outcome]) -> None:
        """Enter the documents a target has, except those to be retried."""
        for document in documents:
            rows = list(chain.from_iterable(document.covers.values()))
            again = answers and any(answers[row].status is Status.NEW for row in rows if row in answers)
            if rows and not again:
                self.documents += 1
                self.positions.update(rows)
                last = max(rows)
                if self.last is None or last > self.last[1]:
                    self.last = (document.id, last)

    def enter_finished(self, finished: FinishedRows) -> None:
        """Enter the rows with their new status."""
        self.statuses.update(finished.statuses)
        if self.made is None or not finished.statuses:
            return
        events = self.made.taken.events
        if len(events) != len(finished.records):
            events = [event for event in events if event.position[0] in finished.records]
        self.tables.update(filter(None, map(attrgetter("table"), events)))

    def close_turn(self, turn: Turn) -> Turn:
        """Return the turn with everything entered."""
        turn = replace(
            turn,
            statuses=dict(self.statuses),
            ended=self.ended,
            last=self.last,
            complaint=self.complaint,
        )
        if self.made is None:
            return turn
        taken, encoded = self.made.taken, self.made.encoded
        # Another output has counted the rows of a batch when it took them first.
        is_first = not taken.batches
        loopback = 0
        if is_first and encoded.outcomes:
            loopback = [outcome.reason for outcome in encoded.outcomes.values()].count(Reason.LOOPBACK)
        return replace(
            turn,
            events=len(taken.events) * is_first,
            changes=encoded.changes * is_first,
            tables=self.tables,
            loopback=loopback,
            unread=self.made.unread,
            readable=self.made.readable,
            # Looked for only where somebody asks, for this goes over every row.
            delivered=filter(lambda event: event.position in self.positions, taken.events),
        )
