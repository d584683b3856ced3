"""One batch, all the way round: read, decide, encode, write, settle.

`settle` comes after `write`: a crash between the two repeats the batch, and every sink recognises a repeated document.
Nothing is settled that is not durable at every sink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import MachineError, OccupiedError
from eventlog.core.model import (
    Captured,
    Outcome,
    Outcomes,
    Position,
    Reason,
    Status,
    exceptional,
)
from eventlog.core.rules import Decision, Options, Round
from eventlog.core.schema import Catalog
from eventlog.core.seams import Batch, RowReader, Source
from eventlog.delivery.answers import counted, given_up, settled_outcomes
from eventlog.delivery.output import SEVERITY, Delivery, Output, Piece, Strictness, keep_worse, nothing
from eventlog.sources.log.rows import failed_tables
from eventlog.sources.notes import (
    DECIDED,
    Decided,
    Progress,
    decided,
    noted_events,
    parts,
    read_decided,
    read_positions,
    read_progress,
    write_note,
    write_positions,
)

__all__ = ["SEVERITY", "Output", "Pipeline", "Report"]

WAITING = frozenset({Reason.RETRY, Reason.HELD})
"""Why events stay that were offered, or that must not overtake one that was."""

AGAIN = frozenset({Reason.NO_ROOM, Reason.NO_RIGHT})
"""Why events stay that others can go without."""


class Report(Struct, frozen=True, kw_only=True):
    """What one round did. `later` is in how many seconds events come that wait for another attempt."""

    events: int = 0
    changes: int = 0
    documents: int = 0
    statuses: Mapping[Status, int] = {}
    stale: bool = False
    """Nothing was done: rows could not be read, which may be because the tables have changed since they were looked at."""
    later: float | None = None
    loopback: int = 0
    """Events that the publisher's own user made, which are not published."""
    unread: Mapping[str, str] = {}
    """Tables that may not be read, and what the database said of them."""
    again: bool = False
    """There are rows that wait and could not be published with these; the next round has others, or them."""

    @property
    def fatal(self) -> bool:
        return Status.FATAL in self.statuses

    @property
    def errors(self) -> int:
        """Events that ended as errors."""
        return self.statuses.get(Status.ERROR, 0)

    @property
    def settled(self) -> int:
        """Events that will not be offered again."""
        return self.events - self.statuses.get(Status.NEW, 0)


class Work(Struct, frozen=True, kw_only=True):
    """A batch in the making: what was decided, what outputs get, and what became of each event by the rules alone."""

    batch: Batch
    deliveries: Sequence[Delivery]
    outcomes: Sequence[Outcome]
    decided: Decided
    changes: int


class Pipeline(Struct, frozen=True, kw_only=True):
    """A source, what its tables look like, the rules' options, and the outputs.

    After `max_attempts` a change that its receiver does not take ends as an error; 0 tries for ever. `pulse` is called
    whenever documents were written, `told` when an output has had its share of a batch, with what broke it off.
    `confirm` is called before documents are handed over, and fails when somebody else publishes by now.
    """

    source: Source
    reader: RowReader | None
    catalog: Catalog | None
    outputs: Sequence[Output]
    options: Options
    limit: int = 10_000
    strictness: Strictness = Strictness()
    max_attempts: int = 0
    pulse: Callable[[], None] = nothing
    confirm: Callable[[], None] = nothing
    told: Callable[[Delivery, MachineError | None], None] = lambda _delivery, _error: None
    fresh: bool = True
    """The catalog was read just now, so what it does not know is unknown."""

    def go_round(self) -> Report:
        """Publishes one batch and settles it."""
        batch = self.source.read(self.limit)
        return self.finish(self.decided(batch)) if batch.events else Report(later=batch.later)

    def decided(self, batch: Batch, after: Work | None = None) -> Work:
        """What outputs get of the batch; `after` is what they get before it and may not have yet."""
        return self._repeated(batch) if batch.notes else self._first(batch, after)

    def finish(self, work: Work, following: Callable[[], Batch | None] = lambda: None) -> Report:
        """Delivers and settles a batch; when nothing of it stays, `following` is in hand after it."""
        batch = work.batch
        if not self.fresh and any(outcome.reason is Reason.INVALID for outcome in exceptional(work.outcomes)):
            return Report(stale=True)
        self._deliver(work)
        answers: dict[Position, Outcome] = {}
        for delivery in work.deliveries:
            for answer in delivery.answers.values():
                keep_worse(answers, answer)
        outcomes = given_up(settled_outcomes(work.outcomes, answers), batch.attempts, self.max_attempts)
        report = Report(
            events=len(batch.events),
            changes=work.changes,
            documents=sum(delivery.documents for delivery in work.deliveries),
            statuses=counted(outcomes),
            loopback=sum(outcome.reason is Reason.LOOPBACK for outcome in exceptional(outcomes)),
            later=batch.later,
            unread=failed_tables(batch.events, outcomes),
            again=not AGAIN.isdisjoint([outcome.reason for outcome in exceptional(outcomes)]),
        )
        then = following() if self.goes_on(report) else None
        self.source.settle(batch, outcomes, self._kept_notes(batch, work, outcomes), then)
        return report

    def goes_on(self, report: Report) -> bool:
        """Whether nothing of the batch stays, and nothing in it forbids another one."""
        halted = self.strictness.on_error == "halt" and report.errors > 0
        return not (report.stale or report.fatal or halted or Status.NEW in report.statuses)

    def decide(self, batch: Batch) -> Decision:
        """What the batch amounts to, with rows read back where events ask for them."""
        [decision] = self._decide([batch.events], batch)
        return decision

    def _decide(self, groups: Iterable[Sequence[Captured]], batch: Batch) -> list[Decision]:
        """What groups of events amount to, each by itself; rows are read back once for all of them."""
        options = replace(self.options, now=batch.now)
        return Round(catalog=self._catalog_of(batch), reader=self.reader, options=options).decide_groups(groups)

    def _catalog_of(self, batch: Batch) -> Catalog | None:
        """What the tables look like: as the batch says, where its source knows."""
        return self.catalog if batch.catalog is None else batch.catalog

    def _first(self, batch: Batch, after: Work | None) -> Work:
        """A batch that no output has seen anything of."""
        decision = self.decide(batch)
        return Work(
            batch=batch,
            deliveries=self._deliveries([Piece(changes=decision.changes)], after),
            outcomes=decision.outcomes,
            decided=decided(decision.outcomes),
            changes=len(decision.changes),
        )

    def _deliveries(self, pieces: Sequence[Piece], after: Work | None) -> list[Delivery]:
        """What outputs get of a batch that they have not seen; it follows what they get `after`."""
        before = [None] * len(self.outputs) if after is None else [delivery.end for delivery in after.deliveries]
        return [
            Delivery(output, pieces, Progress(), self.strictness, after=end)
            for output, end in zip(self.outputs, before, strict=True)
        ]

    def _repeated(self, batch: Batch) -> Work:
        """A batch that outputs have parts of already: each gets what it lacks, in the documents that were planned."""
        known = read_decided(batch.notes)
        again: dict[Position, Outcome] = {}
        deliveries: list[Delivery] = []
        changes = 0
        for output in self.outputs:
            former = read_progress(batch.notes, output.name)
            groups = parts(batch.events, former, known)
            decisions = self._decide([group.events for group in groups], batch)
            pieces = [
                Piece(planned=group.planned, changes=made.changes)
                for group, made in zip(groups, decisions, strict=True)
            ]
            deliveries.append(Delivery(output, pieces, former, self.strictness))
            for outcome in (outcome for made in decisions for outcome in exceptional(made.outcomes)):
                keep_worse(again, outcome)
            changes = max(changes, sum(len(made.changes) for made in decisions))
        # What was decided anew counts: an event may have another winner, because the former one is held or gone.
        found = {outcome.position: outcome for outcome in known.outcomes()} | again
        positions = [event.position for event in batch.events]
        outcomes = Outcomes(positions, {position: found[position] for position in positions if position in found})
        news = decided(outcomes)
        return Work(
            batch=batch,
            deliveries=deliveries,
            outcomes=outcomes,
            decided=Decided(
                vanished=tuple(dict.fromkeys((*known.vanished, *news.vanished))),
                superseded=tuple(dict.fromkeys((*known.superseded, *news.superseded))),
            ),
            changes=changes,
        )

    def _deliver(self, work: Work) -> None:
        """Gives every output its share; when one fails the others still get theirs, and what they have is noted."""

        def note() -> None:
            notes = {delivery.output.name: write_note(delivery.progress()) for delivery in work.deliveries}
            known = {} if work.decided == Decided() else {DECIDED: write_note(work.decided)}
            self.source.note({**known, **notes})

        failures: list[MachineError] = []
        for delivery in work.deliveries:
            try:
                delivery.run(self._catalog_of(work.batch), note, self.pulse, self.confirm)
            except OccupiedError:
                raise  # whoever publishes now does all of this, for every output
            except MachineError as error:
                failures.append(error)
                self.told(delivery, error)
            else:
                self.told(delivery, None)
        if failures:
            note()
            raise min(failures, key=lambda error: error.may_pass)

    def _kept_notes(self, batch: Batch, work: Work, outcomes: Sequence[Outcome]) -> dict[str, str]:
        """What must still be known of the events that stay, and of those that wait and were not in this batch."""
        waiting = [outcome for outcome in exceptional(outcomes) if outcome.status is Status.NEW]
        staying = {outcome.position for outcome in waiting if outcome.reason in WAITING}
        if not staying and not batch.notes:
            return {}
        gone = {outcome.position for outcome in outcomes}.difference(outcome.position for outcome in waiting)
        kept = {delivery.output.name: self._kept_progress(delivery, gone) for delivery in work.deliveries}
        if not staying and not any(progress.done or progress.planned for progress in kept.values()):
            return {}
        notes = {name: write_note(progress) for name, progress in kept.items()}
        return {DECIDED: write_note(work.decided.of(staying, noted_events(notes), gone)), **notes}

    def _kept_progress(self, delivery: Delivery, gone: set[Position]) -> Progress:
        """What an output's next note must say of events that are not `gone`, whether they were in the batch or not."""
        progress = delivery.progress()
        # By object, a change comes again together with what was logged after it, in another document.
        planned = progress.planned if self.strictness.on_retry == "stop" else delivery.away
        return Progress(
            done=write_positions(p for p in read_positions(progress.done) if p not in gone),
            planned=tuple([one for one in planned if not gone.issuperset(read_positions(one.positions))]),
            answers=tuple([answer for answer in progress.answers if answer.position not in gone]),
            after=progress.after,
        )
