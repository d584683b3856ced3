"""What was said of one output's changes, and what that stops: nothing, an object, or everything
that is still to be sent.

Law: no later change of an object overtakes one that its receiver wants to get again.

How events end: what the rules decided, together with what formats and receivers said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import (
    SEVERITY,
    Change,
    Document,
    Op,
    Outcome,
    Position,
    Reason,
    Refusal,
    RowId,
    Status,
    exceptional,
)
from eventlog.core.rules.meaning import ended
from eventlog.sources.notes import Planned, write_positions


class Strictness(Struct, frozen=True, kw_only=True):
    """What an answer that is no success stops: everything, or only the object that it speaks of."""

    on_retry: Literal["stop", "object"] = "stop"
    on_error: Literal["continue", "halt"] = "continue"

    def ends(self, status: Status) -> bool:
        """Whether nothing more may be sent after an answer with this status."""
        return status is Status.FATAL or (status is Status.ERROR and self.on_error == "halt")


class Answers:
    """The answers for one output's share of a batch, of whose documents each has a number, from 0.

    What stands in `answers`, `done` and `waiting` is true at any moment.
    """

    def __init__(
        self, answers: Iterable[Outcome], strictness: Strictness, changes: Sequence[Sequence[Change]] = ()
    ) -> None:
        self.answers: dict[Position, Outcome] = {answer.position: answer for answer in answers}
        self.done: list[Position] = []
        self._waiting: dict[int, Planned] = {}
        self.strictness = strictness
        self._changes = changes
        self._blocked: set[RowId] = set()
        self.ended = False
        """Nothing more is sent at all."""
        self._rows: dict[Position, RowId] | None = None

    @property
    def stopping(self) -> bool:
        """Whether anything is held because of what was said."""
        return self.ended or bool(self._blocked)

    @property
    def waiting(self) -> list[Planned]:
        """The documents that are still to be sent, in their order, and the events in them that were not taken."""
        return [planned for _, planned in sorted(self._waiting.items())]

    @property
    def complaint(self) -> str | None:
        """The last that the output or its format had against a change of this batch."""
        bad = (Status.ERROR, Status.FATAL)
        said = [one for one in self.answers.values() if one.status in bad or one.reason is Reason.RETRY]
        if said:
            return said[-1].note or str(said[-1].reason)
        return None

    def refuse(self, refusal: Refusal) -> None:
        """The format cannot express a change, or a value of it."""
        for position in refusal.positions:
            keep_worse(self.answers, ended(position, refusal))

    def objects(self, document: Document) -> frozenset[RowId]:
        """The objects that a document speaks of; none when it speaks of a whole table, or nobody knows."""
        rows = [self._row(position) for position in covered(document)]
        if None in rows:
            return frozenset()
        return frozenset(row for row in rows if row is not None)

    def holds(self, number: int, document: Document, plan: str) -> bool:
        """Whether a document has to wait, and everything of its objects behind it.

        What waits for its object only stays planned, because others go on: were it forgotten when
        one of them fails, those of its object that were planned behind it would come before it.
        """
        if not self.stopping:
            return False
        objects = self.objects(document)
        if not self.ended and objects and objects.isdisjoint(self._blocked):
            return False
        self._block(objects)
        self._hold(covered(document))
        if not self.ended:
            self._waiting[number] = Planned(document.id, write_positions(covered(document)), plan)
        return True

    def judge(self, number: int, document: Document, plan: str, said: Mapping[Position, Outcome]) -> None:
        """Takes in what was said of a document, change by change; silence is success."""
        again: list[Position] = []
        for positions in document.covers.values():
            answers = [answer for position in positions if (answer := said.get(position)) is not None]
            if not self._settles(positions, answers):
                again.extend(positions)
            else:
                self.done.extend(positions)
            if answers:  # all events of a change end alike
                worst = max(answers, key=lambda answer: SEVERITY[answer.status])
                for position in positions:
                    keep_worse(self.answers, replace(worst, position=position))
        if again:
            self._waiting[number] = Planned(document.id, write_positions(again), plan)

    def _settles(self, positions: Sequence[Position], answers: Sequence[Outcome]) -> bool:
        """Whether these answers are the last word about a change; notes what they stop."""
        row = self._row(positions[0])
        statuses = {answer.status for answer in answers}
        if any(map(self.strictness.ends, statuses)):
            self.ended = True
        if Status.NEW in statuses:
            self._block(() if row is None else (row,))
            self.ended = self.ended or self.strictness.on_retry == "stop"
            return False
        if row in self._blocked:
            # The receiver took it before an earlier change of the object: only a repeat leaves the
            # right state there.
            self._hold(positions)
            return False
        return True

    def _block(self, objects: Iterable[RowId]) -> None:
        """Nothing of these objects is sent any more; without any, nothing at all."""
        blocked = set(objects)
        self._blocked |= blocked
        self.ended = self.ended or not blocked

    def _hold(self, positions: Iterable[Position]) -> None:
        for position in positions:
            keep_worse(
                self.answers,
                Outcome(
                    position=position, status=Status.NEW, reason=Reason.HELD, note="an earlier change comes first."
                ),
            )

    def _row(self, position: Position) -> RowId | None:
        """The object of a change; looked up only once somebody has to know."""
        if self._rows is None:
            self._rows = {}
            for change in chain.from_iterable(self._changes):
                if change.op is not Op.TRUNCATE:
                    self._rows.update(dict.fromkeys(change.positions, change.row))
        return self._rows.get(position)


def keep_worse(answers: dict[Position, Outcome], outcome: Outcome) -> None:
    """Adds an answer unless a worse one is there."""
    earlier = answers.get(outcome.position)
    if earlier is None or SEVERITY[outcome.status] > SEVERITY[earlier.status]:
        answers[outcome.position] = outcome


def filtered_by_all(answers: Sequence[Mapping[Position, Outcome]]) -> Iterator[Outcome]:
    """The answers of all outputs, without what the policy of one left out and another one was told."""
    for position, answer in chain.from_iterable(said.items() for said in answers):
        if answer.reason is not Reason.FILTERED or all(position in said for said in answers):
            yield answer


def covered(document: Document) -> Iterator[Position]:
    return chain.from_iterable(document.covers.values())


def counted(outcomes: Sequence[Outcome]) -> Mapping[Status, int]:
    """How many events end with each letter."""
    found = Counter(outcome.status for outcome in exceptional(outcomes))
    found[Status.SUCCESS] += len(outcomes) - found.total()
    return +found


def settled_outcomes(decided: Sequence[Outcome], answers: Mapping[Position, Outcome]) -> Sequence[Outcome]:
    """The rules' outcomes with what formats and receivers said."""
    if answers:
        return [answers.get(outcome.position, outcome) for outcome in decided]
    return decided


def given_up(outcomes: Sequence[Outcome], attempts: Mapping[Position, int], most: int) -> Sequence[Outcome]:
    """The outcomes, with errors for what was offered often enough."""
    if not most or all(outcome.reason is not Reason.RETRY for outcome in exceptional(outcomes)):
        return outcomes
    return [
        _given_up(outcome, most)
        if outcome.reason is Reason.RETRY and attempts.get(outcome.position, 0) + 1 >= most
        else outcome
        for outcome in outcomes
    ]


def _given_up(outcome: Outcome, most: int) -> Outcome:
    note = f"Given up after {most} attempts. {outcome.note or ''}".rstrip()
    return replace(outcome, status=Status.ERROR, reason=Reason.REFUSED, note=note)
