"""The consumer: one output of a log, turn by turn, the same whether it is in step with the others or far behind.

A turn, when nothing is in doubt: take rows, decide, prepare documents at the sink, plan them in the journal, commit
them at the sink, done in the journal. After a crash, and after any error, `resolve` asks the sink which plan it has;
a target that cannot be asked gets its planned documents again as they were: same plan, same id, same body.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.counting import told_after
from eventlog.core.model import SEVERITY, CutTransaction, Event, Outcome, Position, Reason, Status
from eventlog.core.rules.screen import Identities
from eventlog.core.schema import Catalog
from eventlog.core.seams import Tenure
from eventlog.delivery.answers import Strictness
from eventlog.delivery.output import Output
from eventlog.publisher.decide import Decider, Encoded, encode, waits
from eventlog.publisher.journal import Done, HoldsChangedError, Journal, TakePlan
from eventlog.publisher.letters import by_number, by_position
from eventlog.publisher.reader import ReplacedError
from eventlog.publisher.sending import HandOver
from eventlog.publisher.tables import Detail, JournalRow, OnTheWay, Parked
from eventlog.publisher.take import BEHIND, Parking, Take, take

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from eventlog.core.backoff import Backoff


class ConsumerSettings(Struct, frozen=True, kw_only=True):
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
        settings: ConsumerSettings,
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
        except HoldsChangedError:
            self._resolved = False
            return Turn(moved=True)
        except BaseException:
            self._resolved = False
            raise

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
        with self._journal.reading():
            row = self._journal.output(self.name)
            on_the_way = self._journal.planned(self.name)  # only of a target that cannot be asked
            if on_the_way and self.output.sink.capabilities.resolves:
                said = f"Somebody else publishes to {self.name}: it has a plan that this publisher did not make."
                raise ReplacedError(said)
            again = any(one.due <= now for one in on_the_way)
            taken = None if again else self._taken(on_the_way, now)
            soonest = self._journal.soonest(self.name) if taken is not None and taken.is_empty else None
        if taken is None:
            return self._hand_over(on_the_way, now)
        if taken.is_empty:
            return Turn(later=None if soonest is None else max(0, soonest - now))
        return self._publish(row, taken, now)

    def _taken(self, on_the_way: Sequence[OnTheWay], now: int) -> Take:
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

    def _publish(self, row: JournalRow, taken: Take, now: int) -> Turn:
        """Decides, prepares, plans and commits the rows of a take."""
        encoded = self._encoded(taken, row.told)
        again = self._parked_again(taken, encoded, now)
        plan_id = f"{row.plans + 1:012d}-{secrets.token_hex(4)}"
        planned = self._planned(plan_id, taken, encoded, {one.record for one in again})
        if planned:
            self.output.sink.prepare(plan_id, encoded.documents)
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
        self._statuses.update(self._journal.plan(self.name, plan))
        turn = Turn(rows=len(taken.events), changes=encoded.changes, moved=True)
        if not planned:
            return turn
        if not self.output.sink.capabilities.resolves:
            sent = self._hand_over(planned, now)
            return replace(sent, rows=turn.rows, changes=turn.changes)
        self._confirm()
        outcomes = self.output.sink.commit(plan_id, encoded.documents)
        self._after = encoded.documents[-1].id
        self._finish(planned, by_position(outcomes), now, taken.objects)
        return replace(turn, documents=len(encoded.documents))

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
            due, tried = 0, attempts.get(number, 0)
            if outcome.reason is Reason.NO_RIGHT:
                tried += 1
                due = now + self._delay(tried)
                if event.table is not None:
                    self._unreadable[event.table] = (due, outcome.note or "")
            elif outcome.reason is Reason.NOT_DUE:
                due = now + self._delay(1)
            parking.add(number, taken.objects[number], outcome.reason.value, due, outcome.note, tried)
        return parking.rows

    def _planned(self, plan: str, taken: Take, encoded: Encoded, again: AbstractSet[int]) -> list[OnTheWay]:
        """The documents as the journal keeps them. With each end the rows that it superseded."""
        losers: dict[Position, list[Outcome]] = {}
        for outcome in encoded.said.values():
            if outcome.winner is not None and outcome.position[0] not in again:
                losers.setdefault(outcome.winner, []).append(outcome)
        details: list[Detail] = []
        for document in encoded.documents:
            covered = [position for several in document.covers.values() for position in several]
            if losers:
                covered += [one.position for position in covered for one in losers.get(position, ())]
            said = tuple(encoded.said[one] for one in covered if one in encoded.said) if encoded.said else ()
            records = tuple(dict.fromkeys(position[0] for position in covered))
            details.append(Detail(document.id, records, said, document.cut))
        if not details:
            return []
        attempts = taken.attempts
        if self.output.sink.capabilities.resolves:
            return [OnTheWay(plan=plan, place=0, details=details, attempts=max(attempts.values(), default=0))]
        return [
            OnTheWay(
                plan=plan,
                place=place,
                details=[detail],
                objects=list(dict.fromkeys(taken.objects[record] for record in detail.records)),
                covers=document.covers,
                body=document.body.decode(),
                route=document.route,
                attempts=max((attempts.get(record, 0) for record in detail.records), default=0) if attempts else 0,
            )
            for place, (detail, document) in enumerate(zip(details, encoded.documents, strict=True))
        ]

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
    ) -> None:
        """Enters what was said of documents. Those that were `freed` come again, for something before them does."""
        ended: dict[int, Outcome] = {}
        parking = Parking(self.name)
        cut: list[CutTransaction] = []
        spoken = by_number(answers.values())
        for one in planned:
            for detail in one.details:
                cut.extend(detail.cut)
                if not detail.said and (not spoken or spoken.keys().isdisjoint(detail.records)):
                    continue
                judged = self._judge(one, detail, spoken, objects)
                ended.update(judged.said)
                delay = self._delay(one.attempts + 1) if judged.again else 0
                for record, outcome in sorted(judged.again.items()):
                    reason = outcome.reason.value
                    parking.add(record, objects[record], reason, now + delay, outcome.note, one.attempts + 1)
        for one in freed:
            for record in sorted(record for detail in one.details for record in detail.records):
                if record in objects:  # else somebody has taken the row away, or settled it
                    parking.add(record, objects[record], BEHIND, now, None, one.attempts)
        told = told_after(self._journal.output(self.name).told, cut) if cut else None
        done = Done(planned=[*planned, *freed], said=ended, again=parking.rows, told=told, has=has)
        self._statuses.update(self._journal.done(self.name, done))

    def _judge(
        self, one: OnTheWay, detail: Detail, answers: Mapping[int, Outcome], objects: Mapping[int, str]
    ) -> Judged:
        """What was said of a document, change by change: all events of a change end alike, and silence is success.

        What the receiver took of an object behind a change that it did not take comes again: only a repeat leaves the
        right state there.
        """
        ended = by_number(detail.said)
        again: dict[int, Outcome] = {}
        changes = [[position[0] for position in covered] for covered in (one.covers or {}).values()]
        blocked: set[str] = set()
        for records in changes or [[record] for record in detail.records]:
            spoken = [answers[record] for record in records if record in answers]
            worst = max(spoken, key=lambda outcome: SEVERITY[outcome.status], default=None)
            if worst is not None and worst.status is Status.NEW:
                worst = self._given_up(worst, one.attempts)
            names = {objects[record] for record in records if record in objects}
            if (worst is not None and worst.status is Status.NEW) or names & blocked:
                waiting = worst or Outcome(position=(records[0],), status=Status.NEW, reason=Reason.HELD)
                again.update({record: waiting for record in records if record in objects})
                blocked |= names
            elif worst is not None:
                for record in records:
                    former = ended.get(record)
                    if former is None or SEVERITY[worst.status] > SEVERITY[former.status]:
                        ended[record] = replace(worst, position=(record,))
        for outcome in detail.said:  # what a row superseded waits with it
            loser = outcome.position[0]
            if outcome.winner is not None and outcome.winner[0] in again and loser in objects:
                again[loser] = again[outcome.winner[0]]
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

    def _hand_over(self, waiting: Sequence[OnTheWay], now: int) -> Turn:
        """Sends documents whose turn it is, in order. A readable answer ends with the document; without one it keeps its
        plan, id and body, and nothing of its objects passes it.
        """

        def enter(over: Sequence[OnTheWay], freed: Sequence[OnTheWay], said: Mapping[Position, Outcome]) -> None:
            objects = self._objects([*over, *freed]) if said or freed else {}
            self._finish(over, said, now, objects, freed=freed)

        sending = HandOver(
            self.output.sink,
            waiting,
            now=now,
            stops=self._settings.strictness.on_retry == "stop",
            confirm=self._confirm,
            enter=enter,
        )
        try:
            sending.run()
        finally:
            sending.enter_answers()
            if unread := sending.unread:
                due = now + self._delay(max(one.attempts for one in unread) + 1)
                self._journal.later(self.name, unread, due)
        return Turn(documents=sending.answered, moved=sending.answered > 0)

    def _objects(self, planned: Sequence[OnTheWay]) -> Mapping[int, str]:
        """The objects of the rows behind documents, as far as they still wait."""
        return self._journal.objects([record for one in planned for record in one.records])

    # --- what is in doubt --------------------------------------------------------------------------------------------

    def _resolve(self) -> None:
        """Learns what the target has. What it does not have of an open plan goes back, and is decided anew."""
        sink = self.output.sink
        row, waiting = self._journal.output(self.name), self._journal.planned(self.name)
        plan = row.plan if waiting else ""
        if not sink.capabilities.resolves:
            self._after = sink.last()
            return
        found = sink.resolve(plan)
        self._after = sink.last()
        warning = None
        known = (row.plan, row.has) if waiting else (row.plan,)
        if found.last not in known:
            side = "behind the journal" if found.last < row.plan else "ahead of the journal"
            warning = f"The target is {side}: it has plan {found.last or 'none'}, and {row.plan or 'none'} was made."
        if warning is not None and warning != row.warning:
            self._journal.warn(self.name, warning)
        if not waiting:
            return
        there: list[OnTheWay] = []
        missing: list[OnTheWay] = []
        for one in waiting:
            for is_there, group in ((True, there), (False, missing)):
                details = [detail for detail in one.details if found.has(detail.document) == is_there]
                if details:
                    group.append(replace(one, details=details))
        objects = self._objects(waiting)
        has = found.last if found.last == plan else row.has
        self._finish(there, by_position(found.answers), self._journal.now(), objects, has=has, freed=missing)
