"""The consumer: one output of a log, turn by turn, the same whether it is in step with the others or far behind.

A turn, when nothing is in doubt: take rows, decide, prepare documents at the sink, plan them in the journal, commit
them at the sink, done in the journal. After a crash, and after any error, `resolve` asks the sink which plan it has;
a target that cannot be asked gets its planned documents again as they were: same plan, same id, same body.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.counting import told_after
from eventlog.core.model import SEVERITY, Event, Outcome, Position, Reason, Status
from eventlog.core.rules.screen import Identities
from eventlog.core.schema import Catalog
from eventlog.core.seams import Tenure
from eventlog.delivery.answers import Strictness
from eventlog.delivery.output import Output
from eventlog.publisher.decide import Decider, Encoded, encode, waits
from eventlog.publisher.journal import Done, HoldsChanged, Journal, Plan, Replaced
from eventlog.publisher.sending import Sending, by_position
from eventlog.publisher.tables import Parked, Planned
from eventlog.publisher.take import BEHIND, Parking, Take, take
from eventlog.sources.marks import Stretches

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from eventlog.core.backoff import Backoff

class Settings(Struct, frozen=True, kw_only=True):
    """How an output is published: rows a turn, what an answer stops, and how often a change is offered."""

    limit: int = 10_000
    strictness: Strictness = Strictness()
    max_attempts: int = 0


class Turn(Struct, frozen=True, kw_only=True):
    """What one turn did; `later` is in how many milliseconds rows come that wait for another attempt."""

    rows: int = 0
    changes: int = 0
    documents: int = 0
    statuses: Mapping[Status, int] = {}
    moved: bool = False
    later: int | None = None


class Judged(Struct, frozen=True):
    """What was said of a document: how its rows end, and which of them come again, with the reason."""

    said: Mapping[int, Outcome]
    again: Mapping[int, Outcome]


class Consumer:
    """Publishes one output of a log."""

    def __init__(
        self,
        journal: Journal,
        output: Output,
        decider: Decider,
        settings: Settings,
        *,
        catalog: Catalog | None = None,
        confirm: Callable[[], None] = lambda: None,
    ) -> None:
        self.output = output
        self._journal = journal
        self._decider = decider
        self._settings = settings
        self._catalog = catalog
        self._identities = Identities(catalog)
        self._confirm = confirm
        self._tenure: Tenure | None = None
        self._resolved = False
        self._after = ""
        self._unreadable: dict[str, tuple[int, str]] = {}
        self._statuses: Counter[Status] = Counter()

    @property
    def name(self) -> str:
        return self.output.name

    def turn(self, tenure: Tenure) -> Turn:
        """Gives the output what comes next. After any error nothing that was known of its target counts."""
        self._statuses.clear()
        try:
            return replace(self._step(tenure), statuses=dict(self._statuses))
        except HoldsChanged:
            self._forget()
            return Turn(moved=True)
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        self._resolved = False
        self._journal.forget_memory()

    def _step(self, tenure: Tenure) -> Turn:
        if self._journal.output(self.name).paused:
            return Turn()
        if self._tenure != tenure:
            self.output.sink.open(tenure)
            self._tenure = tenure
            self._resolved = False
        if not self._resolved:
            self._resolve()
            self._resolved = True
        now = self._journal.now()
        with self._journal.transaction():
            on_the_way = self._journal.planned(self.name)  # only of a target that cannot be asked
            if on_the_way and self.output.sink.capabilities.resolves:
                said = f"Somebody else publishes to {self.name}: it has a plan that this publisher did not make."
                raise Replaced(said)
            again = any(one.due <= now for one in on_the_way)
            taken = None if again else self._taken(on_the_way, now)
            soonest = self._journal.soonest(self.name) if taken is not None and taken.is_empty else None
        if taken is None:
            return self._hand_over(on_the_way, now)
        if taken.is_empty:
            return Turn(later=None if soonest is None else max(0, soonest - now))
        return self._publish(taken, now)

    def _taken(self, on_the_way: Sequence[Planned], now: int) -> Take:
        """What the output may be given now; nothing where a receiver's answer stops everything."""
        if self._settings.strictness.on_retry == "stop":
            until = max([self._journal.retried_until(self.name), *(one.due for one in on_the_way)])
            if until > now:
                return Take(stamp=self._journal.stamp())
        return take(
            self._journal,
            self.name,
            now=now,
            limit=self._settings.limit,
            identities=self._identities,
            on_the_way=on_the_way,
            unreadable=self._unreadable,
        )

    # --- what is new -------------------------------------------------------------------------------------------------

    def _publish(self, taken: Take, now: int) -> Turn:
        row = self._journal.output(self.name)
        encoded = self._encoded(taken, row.told)
        again = self._parked_again(taken, encoded, now)
        planned = self._planned(taken, encoded, {one.record for one in again}, row.plans + 1)
        if planned:
            self.output.sink.prepare(planned[0].plan, encoded.documents)
        records = {event.position[0] for event in taken.events}
        in_documents = Stretches(part for one in planned for part in one.records.parts)
        over = records.difference(in_documents, (one.record for one in again))
        ended = _worst_by_number(encoded.said.values())
        plan = Plan(
            stamp=taken.stamp,
            passed=taken.batches,
            unparked=taken.unparked,
            documents=planned,
            parked=[*taken.parked, *again],
            said={number: ended[number] for number in over if number in ended},
            over=over,
            gone=taken.gone,
        )
        self._statuses.update(self._journal.plan(self.name, plan))
        turn = Turn(rows=len(taken.events), changes=encoded.changes, moved=True)
        if not planned:
            return turn
        if not self.output.sink.capabilities.resolves:
            sent = self._hand_over(planned, now)
            return replace(sent, rows=turn.rows, changes=turn.changes)
        self._confirm()
        outcomes = self.output.sink.commit(planned[0].plan, encoded.documents)
        self._after = encoded.documents[-1].id
        self._finish(planned, by_position(outcomes), now, has=planned[0].plan)
        return replace(turn, documents=len(planned))

    def _encoded(self, taken: Take, told: Mapping[int, int]) -> Encoded:
        """What the output gets of a take. What was left for it once is decided by itself, as it was then."""
        left_before = {one.record for one in taken.unparked if one.reason == Reason.GOES_ON.value}
        groups: list[list[Event]] = [[], []]
        for event in taken.events:
            groups[event.position[0] not in left_before].append(event)
        going_on = None
        if self.output.format.counts and taken.events:
            going_on = self._journal.going_on(taken.events)
        return encode(
            self.output,
            self._decider.decide(taken, [group for group in groups if group] or [[]], self._journal.moment),
            self._catalog,
            after=self._after,
            told=told,
            going_on=going_on,
            may_leave=bool(groups[1]),
        )

    def _parked_again(self, taken: Take, encoded: Encoded, now: int) -> list[Parked]:
        """The rows of a take that wait, because the rules say so: nothing behind them is in a document either."""
        waiting = waits(encoded.said, encoded.left)
        if not waiting:
            return []
        parking = Parking(self.name)
        attempts = taken.attempts
        for event in sorted(taken.events, key=lambda one: one.position):
            number, outcome = event.position[0], waiting.get(event.position)
            if outcome is None:
                continue
            due = 0
            if outcome.reason is Reason.NO_RIGHT:
                due = now + self._delay(attempts.get(number, 0) + 1)
                if event.table is not None:
                    self._unreadable[event.table] = (due, outcome.note or "")
            if outcome.reason is Reason.NOT_DUE:
                due = now + self._delay(1)
            parking.add(
                number, taken.objects[number], outcome.reason.value, due, outcome.note, attempts.get(number, 0) + 1
            )
        return parking.rows

    def _planned(self, taken: Take, encoded: Encoded, again: AbstractSet[int], count: int) -> list[Planned]:
        """The documents as the journal keeps them; with each the rows that end with it, because it superseded them."""
        losers: dict[Position, list[Outcome]] = {}
        for outcome in encoded.said.values():
            if outcome.winner is not None and outcome.position[0] not in again:
                losers.setdefault(outcome.winner, []).append(outcome)
        plan = f"{count:012d}-{secrets.token_hex(4)}"
        resolves = self.output.sink.capabilities.resolves
        attempts = taken.attempts
        found: list[Planned] = []
        for place, document in enumerate(encoded.documents):
            objects: dict[str, list[int]] = {}
            said: list[Outcome] = []
            for position in (position for several in document.covers.values() for position in several):
                for one in (position, *(loser.position for loser in losers.get(position, ()))):
                    objects.setdefault(taken.objects[one[0]], []).append(one[0])
                    if one in encoded.said:
                        said.append(encoded.said[one])
            found.append(
                Planned(
                    plan=plan,
                    place=place,
                    document=document.id,
                    objects=objects,
                    records=Stretches.of(record for records in objects.values() for record in records),
                    said=_worst_by_number(said),
                    cut=document.cut,
                    covers=None if resolves else document.covers,
                    body=None if resolves else document.body.decode(),
                    route=document.route,
                    attempts=max([attempts.get(n, 0) for several in objects.values() for n in several], default=0)
                    if attempts
                    else 0,
                )
            )
        return found

    # --- answers -----------------------------------------------------------------------------------------------------

    def _finish(
        self,
        planned: Sequence[Planned],
        said: Mapping[Position, Outcome],
        now: int,
        *,
        has: str | None = None,
        freed: Sequence[Planned] = (),
    ) -> None:
        """Enters what was said of documents. Those that were `freed` come again, for something before them does."""
        ended: dict[int, Outcome] = {}
        parking = Parking(self.name)
        for one in planned:
            judged = self._judge(one, said)
            ended.update(judged.said)
            delay = self._delay(one.attempts + 1) if judged.again else 0
            for name, records in one.objects.items():
                for record in sorted(records):
                    outcome = judged.again.get(record)
                    if outcome is not None and record in one.records:
                        parking.add(
                            record, name, outcome.reason.value, now + delay, outcome.note, one.attempts + 1
                        )
        for one in freed:
            for name, records in one.objects.items():
                for record in sorted(records):
                    if record in one.records:
                        parking.add(record, name, BEHIND, now, None, one.attempts)
        row = self._journal.output(self.name)
        told = told_after(row.told, [part for one in planned for part in one.cut])
        done = Done(documents=[*planned, *freed], said=ended, again=parking.rows, has=has, told=told)
        self._statuses.update(self._journal.done(self.name, done))

    def _judge(self, one: Planned, said: Mapping[Position, Outcome]) -> Judged:
        """What was said of a document, change by change: all events of a change end alike, and silence is success.

        What the receiver took of an object behind a change that it did not take comes again: only a repeat leaves the
        right state there.
        """
        ended: dict[int, Outcome] = dict(one.said)
        again: dict[int, Outcome] = {}
        answers = _worst_by_number(said.values()) if said else {}
        changes = [[position[0] for position in covered] for covered in (one.covers or {}).values()]
        changes = changes or [[record] for records in one.objects.values() for record in records]
        objects = {record: name for name, records in one.objects.items() for record in records}
        blocked: set[str] = set()
        for records in changes:
            spoken = [answers[record] for record in records if record in answers]
            worst = max(spoken, key=lambda outcome: SEVERITY[outcome.status], default=None)
            names = {objects[record] for record in records}
            if worst is not None and worst.status is Status.NEW:
                worst = self._given_up(worst, one.attempts)
            if (worst is not None and worst.status is Status.NEW) or names & blocked:
                waiting = worst or Outcome(position=(records[0],), status=Status.NEW, reason=Reason.HELD)
                again.update({record: waiting for record in records})
                blocked |= names
            elif worst is not None:
                for record in records:
                    former = ended.get(record)
                    if former is None or SEVERITY[worst.status] > SEVERITY[former.status]:
                        ended[record] = replace(worst, position=(record,))
        if again:  # what a row superseded waits with it
            winners = {outcome.winner[0]: record for record, outcome in one.said.items() if outcome.winner}
            for winner, loser in winners.items():
                if winner in again:
                    again[loser] = again[winner]
        return Judged({record: outcome for record, outcome in ended.items() if record not in again}, again)

    def _given_up(self, outcome: Outcome, attempts: int) -> Outcome:
        most = self._settings.max_attempts
        if not most or attempts + 1 < most:
            return outcome
        note = f"Given up after {most} attempts. {outcome.note or ''}".rstrip()
        return replace(outcome, status=Status.ERROR, reason=Reason.REFUSED, note=note)

    def _delay(self, attempts: int) -> int:
        backoff: Backoff = self._journal.settings.backoff
        return int(backoff.delay(attempts, secrets.SystemRandom().random()) * 1000)

    # --- a target that cannot be asked -------------------------------------------------------------------------------

    def _hand_over(self, waiting: Sequence[Planned], now: int) -> Turn:
        """Sends documents whose turn it is, in order. A readable answer ends with the document; without one it keeps its
        plan, id and body, and nothing of its objects passes it.
        """
        sending = Sending(
            self.output.sink,
            waiting,
            now=now,
            stops=self._settings.strictness.on_retry == "stop",
            confirm=self._confirm,
            enter=lambda over, freed, answers: self._finish(over, answers, now, freed=freed),
        )
        try:
            sending.run()
        finally:
            sending.enter_answers()
            if unread := sending.unread:
                due = now + self._delay(max(one.attempts for one in unread) + 1)
                self._journal.later(self.name, unread, due)
        return Turn(documents=sending.answered, moved=sending.answered > 0)

    # --- what is in doubt --------------------------------------------------------------------------------------------

    def _resolve(self) -> None:
        """Learns what the target has. What it does not have of an open plan goes back, and is decided anew."""
        sink = self.output.sink
        row, waiting = self._journal.output(self.name), self._journal.planned(self.name)
        plan = waiting[-1].plan if waiting else ""
        if not sink.capabilities.resolves:
            self._after = sink.last()
            return
        found = sink.resolve(plan)
        self._after = sink.last()
        warning = None
        if found.last not in (row.has, plan):
            side = "behind the journal" if found.last < row.has else "ahead of the journal"
            warning = f"The target is {side}: it has plan {found.last or 'none'}, and {row.has or 'none'} was done."
        if warning != row.warning:
            self._journal.warn(self.name, warning)
        if not waiting:
            return
        there = [one for one in waiting if one.document in found.documents]
        missing = [one for one in waiting if one.document not in found.documents]
        now = self._journal.now()
        self._finish(there, by_position(found.answers), now, has=found.last or None, freed=missing)


def _worst_by_number(outcomes: Iterable[Outcome]) -> dict[int, Outcome]:
    """The worst that was said of the rows with each number; what a database cannot tell apart ends alike."""
    found: dict[int, Outcome] = {}
    for outcome in outcomes:
        former = found.get(outcome.position[0])
        if former is None or SEVERITY[outcome.status] > SEVERITY[former.status]:
            found[outcome.position[0]] = outcome
    return found
