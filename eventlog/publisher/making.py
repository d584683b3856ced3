"""Makes what an output is given next of the rows that it may have: decided, encoded, and prepared at its sink."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.counting import Told
from eventlog.core.model import Event, Reason, Status, exceptional
from eventlog.core.tracing import step
from eventlog.delivery.output import Output
from eventlog.publisher.books import Books, Turn
from eventlog.publisher.decide import Cause, Decider, Encoded, Part, causes_of, encode, planned_documents, waits
from eventlog.publisher.journal import Journal
from eventlog.publisher.letters import by_number, of_shared_numbers
from eventlog.publisher.plans import TakePlan
from eventlog.publisher.tables import Parked
from eventlog.publisher.take import Parking, Take
from eventlog.publisher.traces import BatchTrace


class MadePlan(Struct, frozen=True, kw_only=True):
    """What an output may be given next, decided and prepared; the journal does not know of it yet."""

    taken: Take
    encoded: Encoded
    plan: TakePlan
    decider: Decider
    books: Books
    trace: BatchTrace | None = None
    is_prepared: bool = True


class PlanMaker:
    """Makes plans of one output, of takes of about `limit` rows. The journal does not know of them before they are
    entered there.
    """

    def __init__(self, journal: Journal, output: Output, limit: int) -> None:
        self._journal = journal
        self._output = output
        self._limit = limit
        self._unreadable: dict[str, tuple[int, str]] = {}
        """Tables that may not be read: from when on they are tried again, and what the database said."""

    def unreadable_at(self, now: int) -> Mapping[str, tuple[int, str]]:
        """Those that are not to be tried again yet."""
        self._unreadable = {table: known for table, known in self._unreadable.items() if known[0] > now}
        return self._unreadable

    def make(
        self,
        decider: Decider,
        taken: Take,
        now: int,
        *,
        plans: int,
        told: Told,
        after: str,
        trace: BatchTrace | None,
        prepares: bool = True,
    ) -> MadePlan | Turn:
        """Decides the rows of a take, and prepares documents if the sink may do that now; `plans` is how many the output
        has had until then.
        """
        encoded = self._encoded(decider, taken, now, told, after, trace)
        causes = causes_of(taken.events, list(encoded.said.values())) if encoded.said else frozenset[Cause]()
        if causes and not decider.looks.cover(causes):
            return Turn(stale=causes)
        books = Books()
        books.decided(taken, encoded)
        again = self._parked_again(taken, encoded, now)
        plan_id = f"{plans + 1:012d}-{secrets.token_hex(4)}"
        planned = planned_documents(
            plan_id, taken, encoded, {one.record for one in again}, asked=self._output.sink.capabilities.resolves
        )
        if planned and prepares:
            self._output.sink.prepare(plan_id, encoded.documents)
        over = {event.position[0] for event in taken.events}
        over.difference_update(one.record for one in again)
        for one in planned:
            over.difference_update(*(detail.records for detail in one.details))
        ended = by_number(encoded.said.values()) if over else {}
        plan = TakePlan(
            stamp=taken.stamp,
            plan=plan_id,
            sealed=taken.sealed,
            passed=taken.batches,
            unparked=taken.unparked,
            planned=planned,
            parked=[*taken.parked, *again],
            said={number: ended[number] for number in over if number in ended},
            over=over,
            gone=taken.gone,
        )
        return MadePlan(
            taken=taken,
            encoded=encoded,
            plan=plan,
            decider=decider,
            books=books,
            trace=trace,
            is_prepared=prepares,
        )

    def _encoded(
        self, decider: Decider, taken: Take, now: int, told: Told, after: str, trace: BatchTrace | None
    ) -> Encoded:
        """What the output gets of a take. What was left for it once is decided by itself, as it was then."""
        left_before = {one.record for one in taken.unparked if one.reason == Reason.GOES_ON.value}
        groups = _one_after_the_other(taken, left_before) if left_before else [taken.events]
        going_on = None
        if (self._output.format.counts or self._output.whole) and taken.events:
            with self._journal.reading() as view:
                going_on = view.going_on(self._output.name, taken, now)
        span = None if trace is None else trace.span
        first = trace is not None and trace.first == self._output.name
        with step(span if first else None, "decide"):
            parts = decider.decide(
                taken, groups, self._journal.moment, output=self._output.name, outputs=self._journal.outputs
            )
        if going_on is not None and (later := _transactions_not_read(taken.events, parts)):
            going_on = replace(going_on, every=going_on.every | later)
        with step(span, "encode", output=self._output.name):
            encoded = encode(
                self._output,
                parts,
                after=after,
                told=told,
                going_on=going_on,
                # Left rows that come alone are not left again, or they would come so for ever. A take that parks rows is
                # another one the next time.
                may_leave=not left_before or bool(taken.parked) or _others_come(taken, left_before),
                most_left=self._limit // 2,
            )
        if encoded.said and any(len(event.position) > 1 for event in taken.events):
            return replace(encoded, said={**encoded.said, **of_shared_numbers(taken.events, encoded.said)})
        return encoded

    def _parked_again(self, taken: Take, encoded: Encoded, now: int) -> list[Parked]:
        """The rows of a take that wait, because the rules say so: nothing behind them is in a document either."""
        waiting = waits(encoded.said, encoded.left)
        if not waiting:
            return []
        parking = Parking(self._output.name)
        attempts = taken.attempts
        for event in sorted(taken.events, key=lambda one: one.position):
            number, outcome = event.position[0], waiting.get(event.position)
            if outcome is None:
                continue
            due, tried = 0, attempts.get(number, 0)
            if outcome.reason is Reason.NO_RIGHT:
                tried += 1
                due = now + self._journal.delay(tried)
                if event.table is not None:
                    self._unreadable[event.table] = (due, outcome.note or "")
            elif outcome.reason is Reason.NOT_DUE:
                due = now + self._journal.delay(1)
            parking.add(number, taken.objects[number], outcome.reason.value, due, outcome.note, tried)
        return parking.rows


def _others_come(taken: Take, left_before: Collection[int]) -> bool:
    """Whether a take has more than what was left."""
    return any(event.position[0] not in left_before for event in taken.events)


def _one_after_the_other(taken: Take, left_before: Collection[int]) -> list[Sequence[Event]]:
    """The events in groups that are decided one after the other. What was left is first, but where an earlier row of its
    object has come back meanwhile: after a crash, or because a receiver wants it again.
    """
    groups: list[list[Event]] = []
    turns: dict[str, int] = {}
    for event in sorted(taken.events, key=lambda one: one.position):
        number = event.position[0]
        name = taken.objects[number]
        turn = turns.get(name, 0)
        turn += turn % 2 == (number in left_before)  # even turns are of what was left, odd ones of the others
        turns[name] = turn
        groups += [[] for _ in range(len(groups), turn + 1)]
        groups[turn].append(event)
    return [group for group in groups if group] or [[]]


def _transactions_not_read(events: Sequence[Event], parts: Sequence[Part]) -> set[int]:
    """The transactions of rows that the rules say are to come again."""
    outcomes = chain.from_iterable(exceptional(part.decision.outcomes) for part in parts)
    later = {outcome.position for outcome in outcomes if outcome.status is Status.NEW}
    return {one.transaction.mark for one in events if one.position in later and one.transaction is not None}
