"""One batch of a stream, all the way round: read, decide, encode, write, settle.

`settle` comes after `write`: a crash between the two repeats the batch, and every sink recognises a
repeated document. Nothing is settled that is not durable at every sink.

Outputs of a log have a consumer each instead, see `eventlog.publisher`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter
from time import monotonic

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.counting import MOST_LEFT_EVENTS, left_over
from eventlog.core.errors import MachineError, OccupiedError
from eventlog.core.model import (
    Captured,
    Change,
    Outcome,
    Outcomes,
    Position,
    Reason,
    Status,
    exceptional,
)
from eventlog.core.rules import Decision, Options, Round
from eventlog.core.rules.meaning import together
from eventlog.core.seams import Batch, Source
from eventlog.core.tracing import Span, batch_span, end, step, timed, times_of
from eventlog.delivery.answers import counted, filtered_by_all, given_up, settled_outcomes
from eventlog.delivery.output import Delivery, Output, Piece, Strictness, keep_worse, nothing
from eventlog.sources.marks import as_text
from eventlog.sources.notes import (
    Counted,
    Positions,
    Progress,
    parts,
    read_counted,
    read_positions,
    read_progress,
    told_before,
    write_counted,
    write_positions,
)

__all__ = ["Output", "Pipeline", "Report"]

WAITING = frozenset({Reason.RETRY, Reason.HELD})
"""Why events stay that were offered, or that must not overtake one that was."""


class Report(Struct, frozen=True, kw_only=True):
    """What one round did. `later` is in how many seconds events come that wait for another attempt."""

    events: int = 0
    changes: int = 0
    documents: int = 0
    statuses: Mapping[Status, int] = {}
    tables: Mapping[str, int] = {}
    """Rows that will not be offered again, by the table that they name."""
    later: float | None = None
    loopback: int = 0
    """Events that the publisher's own user made, which are not published."""
    unread: Mapping[str, str] = {}
    """Tables that may not be read, and what the database said of them."""
    left: int = 0
    """Events that come again with the next batch, because their transaction goes on."""
    again: bool = False
    """There are rows that wait and could not be published with these; the next round has others, or them."""
    moved: bool = False
    """Something was done, so that there may be more to do."""
    ended: Status | None = None
    """A receiver has said so to a row that other outputs do not have yet: nothing more may be sent."""
    paused: bool = False
    """Somebody has paused the output."""

    @property
    def fatal(self) -> bool:
        return Status.FATAL in self.statuses or self.ended is Status.FATAL

    @property
    def errors(self) -> int:
        return self.statuses.get(Status.ERROR, 0)

    @property
    def settled(self) -> int:
        """Events that will not be offered again."""
        return sum(self.statuses.values()) - self.statuses.get(Status.NEW, 0)


class Work(Struct, frozen=True, kw_only=True):
    """A batch in the making: what outputs get, and what became of each event by the rules alone.

    `left` are the changes that are left for the next batch, because their transaction goes on, each
    by its events.
    """

    batch: Batch
    deliveries: Sequence[Delivery]
    outcomes: Sequence[Outcome]
    changes: int
    left: tuple[Positions, ...] = ()
    span: Span | None = None
    """That of the batch, where it is traced; its deliveries have it too."""

    @property
    def left_events(self) -> set[Position]:
        return {position for one in self.left for position in read_positions(one)}

    @property
    def counted(self) -> Counted:
        """What is to be known of it with the next batch."""
        away = read_counted(self.batch.counted).without(self.batch.events)[-MOST_LEFT_EVENTS:]
        return Counted(told={one.output.name: one.told for one in self.deliveries}, left=self.left, away=away)


class Pipeline(Struct, frozen=True, kw_only=True):
    """A source, the rules' options, and the outputs. Images are whole, so nothing is read back.

    After `max_attempts` a change that its receiver does not take ends as an error; 0 tries for
    ever. `pulse` is called whenever documents were written, `told` when an output has had its share
    of a batch, with what broke it off. `confirm` is called before documents are handed over, and
    fails when somebody else publishes by now.
    """

    source: Source
    outputs: Sequence[Output]
    options: Options
    limit: int = 10_000
    strictness: Strictness = Strictness()
    max_attempts: int = 0
    pulse: Callable[[], None] = nothing
    confirm: Callable[[], None] = nothing
    told: Callable[[Delivery, MachineError | None], None] = lambda _delivery, _error: None

    def go_round(self) -> Report:
        """Publishes one batch and settles it."""
        batch = read_timed(lambda: self.source.read(self.limit))
        if batch.events:
            return self.finish(self.decided(batch))
        return Report(later=batch.later)

    def decided(self, batch: Batch) -> Work:
        """What outputs get of the batch."""
        span = batch_span(lambda: times_of(batch.events), batch.read, len(batch.events))
        try:
            with step(span, "decide"):
                work = self._repeated(batch) if batch.notes else self._first(batch)
        except BaseException as error:
            end(span, error)
            raise
        if span is None:
            return work
        for delivery in work.deliveries:
            delivery.span = span
        return replace(work, span=span)

    def finish(self, work: Work) -> Report:
        """Delivers and settles a batch."""
        try:
            report = self._finished(work)
        except BaseException as error:
            end(work.span, error)
            raise
        end(work.span, changes=report.changes, documents=report.documents)
        return report

    def _finished(self, work: Work) -> Report:
        batch = work.batch
        self._deliver(work)
        answers: dict[Position, Outcome] = {}
        for answer in filtered_by_all([delivery.said.answers for delivery in work.deliveries]):
            keep_worse(answers, answer)
        for position in work.left_events:
            keep_worse(answers, Outcome(position=position, status=Status.NEW, reason=Reason.GOES_ON))
        outcomes = given_up(settled_outcomes(work.outcomes, answers), batch.attempts, self.max_attempts)
        report = Report(
            events=len(batch.events),
            changes=work.changes,
            documents=sum(delivery.documents for delivery in work.deliveries),
            statuses=counted(outcomes),
            tables=settled_by_table(batch.events, outcomes),
            loopback=sum(outcome.reason is Reason.LOOPBACK for outcome in exceptional(outcomes)),
            later=batch.later,
            left=sum(outcome.reason is Reason.GOES_ON for outcome in exceptional(outcomes)),
            again=any(outcome.reason is Reason.GOES_ON for outcome in exceptional(outcomes)),
        )
        with step(work.span, "settle"):
            self.source.settle(batch, outcomes, self._kept_notes(batch, work, outcomes))
        return report

    def decide(self, batch: Batch) -> Decision:
        """What the batch amounts to."""
        [decision] = self._decide([batch.events], batch)
        return decision

    def _decide(self, groups: Iterable[Sequence[Captured]], batch: Batch) -> list[Decision]:
        """What groups of events amount to, each by itself."""
        each = Round(catalog=batch.catalog, options=self.options).decide_groups
        counted = read_counted(batch.counted)
        if not counted.left and not counted.away:
            return each(groups)
        apart = [counted.apart(group) for group in groups]
        decisions = iter(each(chain.from_iterable(apart)))
        return [together([*islice(decisions, len(several))]) for several in apart]

    def _first(self, batch: Batch) -> Work:
        """A batch that no output has seen anything of."""
        decision = self.decide(batch)
        deliveries = self._deliveries(batch, [Piece(changes=decision.changes)])
        return Work(
            batch=batch,
            deliveries=deliveries,
            outcomes=decision.outcomes,
            changes=len(decision.changes),
            left=self._count(batch, deliveries, [decision.changes] * len(deliveries)),
        )

    def _deliveries(self, batch: Batch, pieces: Sequence[Piece]) -> list[Delivery]:
        """What outputs get of a batch that they have not seen."""
        counted = read_counted(batch.counted)
        return [
            Delivery(
                output,
                pieces,
                Progress(),
                self.strictness,
                told=told_before(counted, {}, output.name, *output.former_names),
            )
            for output in self.outputs
        ]

    def _count(
        self,
        batch: Batch,
        deliveries: Sequence[Delivery],
        news: Sequence[Sequence[Change]],
    ) -> tuple[Positions, ...]:
        """Has outputs count what they tell of transactions; the changes that are left for the next
        batch.

        None are where all would be, once more, or too many: then a transaction may stay without an
        end.
        """
        going_on = batch.going_on
        if going_on is None or not any(output.format.counts for output in self.outputs):
            return ()
        written = [delivery.write(batch.catalog) for delivery in deliveries]
        found: dict[Position, set[Position]] = {}
        for changes in news if batch.notes else news[:1]:
            for change in left_over(changes, written, going_on):
                found[change.positions[-1]] = set(change.positions)
        events = set().union(*found.values())
        nothing_new = read_counted(batch.counted).covers(batch.events)
        if len(events) > max(self.limit, MOST_LEFT_EVENTS) or nothing_new:
            found, events = {}, set()
        for delivery in deliveries:
            delivery.count(events, going_on)
        return tuple(write_positions(one) for _, one in sorted(found.items()))

    def _repeated(self, batch: Batch) -> Work:
        """A batch that outputs have parts of already: each gets what it lacks, in the documents that were planned."""
        again: dict[Position, Outcome] = {}
        deliveries: list[Delivery] = []
        changes = 0
        news: list[Sequence[Change]] = []
        for output in self.outputs:
            former = read_progress(batch.notes, output.name, *output.former_names)
            groups = parts(batch.events, former)
            decisions = self._decide([group.events for group in groups], batch)
            pieces = [
                Piece(planned=group.planned, changes=made.changes)
                for group, made in zip(groups, decisions, strict=True)
            ]
            told = told_before(read_counted(batch.counted), batch.notes, output.name, *output.former_names)
            deliveries.append(Delivery(output, pieces, former, self.strictness, told=told))
            news.append([change for piece in pieces if piece.planned is None for change in piece.changes])
            for outcome in (outcome for made in decisions for outcome in exceptional(made.outcomes)):
                keep_worse(again, outcome)
            changes = max(changes, sum(len(made.changes) for made in decisions))
        positions = [event.position for event in batch.events]
        outcomes = Outcomes(positions, {position: again[position] for position in positions if position in again})
        left = self._count(batch, deliveries, news)
        return Work(batch=batch, deliveries=deliveries, outcomes=outcomes, changes=changes, left=left)

    def _deliver(self, work: Work) -> None:
        """Gives every output its share; when one fails the others still get theirs, and what they have is noted."""

        def note() -> None:
            self.source.note({delivery.output.name: as_text(delivery.progress()) for delivery in work.deliveries})

        failures: list[MachineError] = []
        for delivery in work.deliveries:
            began, failure = monotonic(), None
            delivery.events = work.batch.events
            try:
                delivery.run(work.batch.catalog, note, self.pulse, self.confirm)
            except OccupiedError:
                raise  # whoever publishes now does all of this, for every output
            except MachineError as error:
                failure = error
                failures.append(error)
            delivery.seconds = monotonic() - began
            self.told(delivery, failure)
        if failures:
            note()
            raise min(failures, key=lambda error: error.may_pass)

    def _kept_notes(self, batch: Batch, work: Work, outcomes: Sequence[Outcome]) -> dict[str, str]:
        """What must still be known of the events that stay, and of those that wait and were not in this batch."""
        return self._kept_of_batch(batch, work, outcomes) | write_counted(work.counted)

    def _kept_of_batch(self, batch: Batch, work: Work, outcomes: Sequence[Outcome]) -> dict[str, str]:
        waiting = [outcome for outcome in exceptional(outcomes) if outcome.status is Status.NEW]
        # Of a batch that is repeated another output may have what one leaves for the next.
        reasons = WAITING | {Reason.GOES_ON} if batch.notes else WAITING
        staying = {outcome.position for outcome in waiting if outcome.reason in reasons}
        if not staying and not batch.notes:
            return {}
        gone = {outcome.position for outcome in outcomes}.difference(outcome.position for outcome in waiting)
        kept = {delivery.output.name: self._kept_progress(delivery, gone) for delivery in work.deliveries}
        if not staying and not any(progress.done or progress.planned for progress in kept.values()):
            return {}
        return {name: as_text(progress) for name, progress in kept.items()}

    def _kept_progress(self, delivery: Delivery, gone: set[Position]) -> Progress:
        """What an output's next note must say of events that are not `gone`, whether they were in the batch or not."""
        progress = delivery.progress()
        # By object, a change comes again together with what was logged after it, in another
        # document.
        planned = progress.planned if self.strictness.on_retry == "stop" else delivery.away
        return Progress(
            done=write_positions(p for p in read_positions(progress.done) if p not in gone),
            planned=tuple([one for one in planned if not gone.issuperset(read_positions(one.positions))]),
            answers=tuple([answer for answer in progress.answers if answer.position not in gone]),
            after=progress.after,
            told=delivery.told,
        )


def read_timed(read: Callable[[], Batch]) -> Batch:
    """A batch that says when it was read, where that is traced."""
    batch, interval = timed(read)
    if interval is None:
        return batch
    return replace(batch, read=interval)


def settled_by_table(events: Sequence[Captured], outcomes: Sequence[Outcome]) -> Mapping[str, int]:
    """How many events will not be offered again, by the table that they name."""
    staying = {outcome.position for outcome in exceptional(outcomes) if outcome.status is Status.NEW}
    found = Counter(map(attrgetter("table"), events))
    if staying:
        found.subtract(event.table for event in events if event.position in staying)
    return {table: count for table, count in found.items() if table and count}
