"""Makes what an output is given next of the rows that it may have: decided, and encoded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.counting import TransactionCounts
from eventlog.core.model import TABLE_FAULTS, Event, Outcome, Position, Reason, Status, Unreadable, exceptional
from eventlog.core.tracing import step
from eventlog.delivery.output import Output
from eventlog.publisher.decide import Decider, causes_of
from eventlog.publisher.encode import Encoded, KeptWriter, Part, encode, plan_documents, waits
from eventlog.publisher.plans import TakeAgainError, TakePlan, name_plan, read_plan
from eventlog.publisher.reader import JournalReader
from eventlog.publisher.row_outcomes import POSITION
from eventlog.publisher.selection import Parking, Take
from eventlog.publisher.tables import EVER, JournalRow, Parked
from eventlog.publisher.traces import BatchTrace


class _Again(Struct):
    """What is to come again of a take: rows, tables that cannot be read, those of them that are new."""

    rows: Sequence[Parked] = ()
    faulty: set[str] = set()
    unread: dict[str, Unreadable] = {}


class PlanMaker:
    """Makes plans of one output, of takes of about `limit` rows."""

    def __init__(self, journal: JournalReader, output: Output, limit: int) -> None:
        self._journal = journal
        self._output = output
        self._writer = KeptWriter(output.format)
        self._limit = limit

    def make(
        self,
        decider: Decider,
        taken: Take,
        now: int,
        row: JournalRow,
        *,
        after: str,
        trace: BatchTrace | None,
        history: int | None = None,
    ) -> TakePlan:
        """Decide the rows of a take; with `history`, nobody has checked it yet.

        TakeAgainError if the tables may look another way by now.
        """
        encoded = self._encode(decider, taken, now, row.transactions, after, trace)
        if history is not None and (encoded.outcomes or encoded.left):
            with self._journal.reading() as view:
                is_current = decider.knows_tables(view)
            if not is_current:
                raise TakeAgainError("Tables were altered since they were looked at.", stale=frozenset())
        if encoded.outcomes:
            causes = causes_of(taken.events, list(encoded.outcomes.values()))
            # A row that cannot be read may be of a table that has changed since the decider looked
            # at it: then all is decided again. Just after such a look the row itself is wrong.
            if causes and not decider.looks.cover(causes):
                raise TakeAgainError("Rows name what the tables do not have.", stale=causes)
        again = self._park_again(taken, encoded, now)
        parked_again = set(map(attrgetter("record"), again.rows))
        plan_id = name_plan(row.plans + 1, _highest_row(taken, row))
        asked = self._output.sink.capabilities.resolves
        planned = plan_documents(plan_id, taken, encoded, parked_again, asked=asked)
        # What is in no document and does not come again is over: nothing is published of it.
        over = {event.position[0] for event in taken.events} - parked_again
        for documents in planned:
            for detail in documents.details:
                over.difference_update(detail.records)
        outcomes: dict[int, Outcome] = {}
        if over and encoded.outcomes:
            ended = encoded.outcomes
            outcomes = {number: ended[number,] for number in over if (number,) in ended}
        readable = self._journal.faults.find_ended(self._output.name, taken, again.faulty)
        return TakePlan(
            taken=taken,
            history=history,
            plan=plan_id,
            is_asked=asked,
            planned=planned,
            again=again.rows,
            readable=readable,
            outcomes=outcomes,
            over=over,
            encoded=encoded,
            decider=decider,
            unread=again.unread,
            trace=trace,
        )

    def _encode(
        self,
        decider: Decider,
        taken: Take,
        now: int,
        counts: TransactionCounts,
        after: str,
        trace: BatchTrace | None,
    ) -> Encoded:
        """Write the documents of a take for the output."""
        name, format_ = self._output.name, self._output.format
        groups: Sequence[Sequence[Event]] = [taken.events]
        # What was left of a transaction is decided by itself, as it was when it was left: together
        # with other rows of its objects it might come to something else.
        goes_on = Reason.GOES_ON.value
        left_before = set[int]()
        if taken.unparked:
            left_before = {waited.record for waited in taken.unparked if waited.reason == goes_on}
        if left_before:
            groups = _one_after_the_other(taken, left_before)
        going_on = None
        if (format_.counts or self._output.whole) and taken.events:
            with self._journal.reading() as view:
                going_on = view.going_on(name, taken, now)
        span = span_of_decision = None
        if trace is not None:
            span = trace.span
            # Outputs that take the same rows share one decision, which the first of them shows.
            if trace.first == name:
                span_of_decision = span
        with step(span_of_decision, "decide"):
            outputs, clock = len(self._journal.places), self._journal.moment
            parts = decider.decide(taken, groups, clock, output=name, outputs=outputs)
        if going_on is not None and (later := _transactions_not_read(taken.events, parts)):
            going_on = replace(going_on, every=going_on.every | later)
        # Left rows that come alone are not left again, or they would come so for ever. A take that
        # parks rows is another one the next time.
        may_leave = not left_before or bool(taken.parked)
        may_leave = may_leave or any(event.position[0] not in left_before for event in taken.events)
        with step(span, "encode", output=name):
            return encode(
                self._output,
                parts,
                after=after,
                counts=counts,
                going_on=going_on,
                may_leave=may_leave,
                most_left=self._limit // 2,
                reader=decider.round.reader,
                writer=self._writer,
            )

    def _park_again(self, taken: Take, encoded: Encoded, now: int) -> _Again:
        """Park the rows of a take that must wait by the rules; no document has rows behind them."""
        again = _Again(faulty={*taken.untried})
        if encoded.outcomes or encoded.left:
            self._park_waiting(taken, waits(encoded.outcomes, encoded.left), now, again)
        if again.faulty:
            self._journal.faults.wait(self._output.name, again.faulty)
        return again

    def _park_waiting(self, taken: Take, waiting: Mapping[Position, Outcome], now: int, again: _Again) -> None:
        """Add the rows of these events to those that come again, and their tables that cannot be read."""
        parking, attempts = Parking(self._output.name), taken.attempts
        events = [event for event in taken.events if event.position in waiting]
        for event in sorted(events, key=POSITION):
            number, outcome = event.position[0], waiting[event.position]
            due, tried = 0, attempts.get(number, 0)
            if outcome.reason in TABLE_FAULTS:
                tried += 1
                table = event.table or ""
                fault, is_new = self._journal.faults.add(table, outcome, now)
                due = fault.rest_due
                again.faulty.add(table)
                if is_new:
                    again.unread[table] = fault.why
            elif outcome.reason is Reason.NOT_DUE:
                due = now + self._journal.delay(1)
            name, reason = taken.objects[number], outcome.reason.value
            parking.add(number, name, reason, due, outcome.note, tried)
        again.rows = parking.rows


def _highest_row(taken: Take, row: JournalRow) -> int:
    """Return the highest row an output was ever given, these included."""
    former = read_plan(row.plan)
    waited = max(map(attrgetter("record"), taken.unparked), default=EVER)
    sealed = taken.records.parts[-1][1] if taken.records.parts else EVER
    return max(waited, sealed, EVER if former is None else former.highest)


def _one_after_the_other(taken: Take, left_before: Collection[int]) -> list[Sequence[Event]]:
    """Group the events for decisions one after the other.

    Left ones come first, but where an earlier row of their object has come back since: after a crash,
    or because a receiver wants it again.
    """
    groups: list[list[Event]] = [[], []]
    turns: dict[str, int] = {}
    last_left = max(left_before)
    for event in sorted(taken.events, key=POSITION):
        number = event.position[0]
        # By far the most rows are behind all that was left, and none has come back: their objects
        # need not be known.
        if number > last_left and len(groups) == 2:
            groups[1].append(event)
            continue
        name = taken.objects[number]
        turn = turns.get(name, 0)
        # Even turns are of what was left, odd ones of the others.
        turn += turn % 2 == (number in left_before)
        turns[name] = turn
        if turn == len(groups):
            groups.append([])
        groups[turn].append(event)
    return [group for group in groups if group] or [[]]


def _transactions_not_read(events: Sequence[Event], parts: Sequence[Part]) -> set[int]:
    """Find the transactions of rows to be retried by the rules."""
    outcomes = chain.from_iterable(exceptional(part.decision.outcomes) for part in parts)
    later = {outcome.position for outcome in outcomes if outcome.status is Status.NEW}
    marks = set[int]()
    if not later:
        return marks
    for event in events:
        if event.position in later and event.transaction is not None:
            marks.add(event.transaction.mark)
    return marks
