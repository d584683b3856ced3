"""From the rows of a take to the documents of one output: the rules, the output's own policies, counting, encoding.

Outputs that take the same batches share what the rules decide.
"""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.counting import Told, counted, left_over
from eventlog.core.model import (
    Change,
    Document,
    Event,
    Outcome,
    Outcomes,
    Position,
    Reason,
    Refusal,
    Status,
    exceptional,
)
from eventlog.core.rules import Decision, Round
from eventlog.core.rules.meaning import ended
from eventlog.core.schema import Catalog
from eventlog.delivery.answers import keep_worse
from eventlog.delivery.output import Output
from eventlog.publisher.take import Take
from eventlog.sources.marks import Stretches

MOST_LEFT_EVENTS: Final = 1_000
"""So many events at most are left for the next take because their transactions go on, or as many as a take has."""

KEPT_BATCHES: Final = 4
"""So many decisions are kept for outputs that take the same batches a moment later."""


class Encoded(Struct, frozen=True, kw_only=True):
    """What an output gets: documents in order, and what is said of events that are in none, or not wholly.

    `left` are events whose transactions go on: they come with the next take. `told` is how much of each unfinished
    transaction is told when all documents are there.
    """

    documents: Sequence[Document] = ()
    said: Mapping[Position, Outcome] = {}
    left: frozenset[Position] = frozenset()
    told: Told = {}
    changes: int = 0


class Decider:
    """Asks the rules what rows amount to, once for all outputs that take the same."""

    def __init__(self, round_: Round) -> None:
        self.round = round_
        self._kept: deque[tuple[Stretches, str, Decision]] = deque(maxlen=KEPT_BATCHES)

    def decide(self, taken: Take, groups: Sequence[Sequence[Event]], moment: Callable[[], dt.datetime]) -> Decision:
        """What the rows amount to; `groups` are decided each by itself, because they were once.

        `moment` is the database's clock, which is asked where events may take effect later.
        """
        shared = len(groups) == 1 and not (taken.unparked or taken.parked or taken.gone)
        for records, stamp, decision in self._kept:
            if shared and records == taken.records and stamp == taken.stamp:
                return decision
        asked = self.round
        if asked.options.future:  # after the rows were read, so that none of them is ahead of it
            asked = replace(asked, options=replace(asked.options, now=moment()))
        decision = together(asked.decide_groups(groups))
        if shared:
            self._kept.append((taken.records, taken.stamp, decision))
        return decision


def together(decisions: Sequence[Decision]) -> Decision:
    """What several groups of events amount to, one after the other."""
    if len(decisions) == 1:
        return decisions[0]
    others = {one.position: one for made in decisions for one in exceptional(made.outcomes)}
    positions = [position for made in decisions for position in made.outcomes.positions]
    return Decision([change for made in decisions for change in made.changes], Outcomes(positions, others))


def encode(
    output: Output,
    decision: Decision,
    catalog: Catalog | None,
    *,
    after: str,
    told: Told,
    going_on: frozenset[int] | None = None,
    may_leave: bool = True,
) -> Encoded:
    """The documents of one output. With `going_on` those that count say which change of its transaction each is."""
    said: dict[Position, Outcome] = {outcome.position: outcome for outcome in exceptional(decision.outcomes)}
    changes = list(_own(output, decision.changes, said))
    written: list[Any] = []
    for item in output.format.writer(catalog)(changes):
        refused = _refused(output, item)
        if refused is None:
            written.append(item)
        else:
            _refuse(said, refused)
    left: set[Position] = set()
    if output.format.counts and going_on is not None:
        if may_leave:
            left = _left(changes, written, going_on, decision)
        later = {one.transaction for one in written if one.positions[-1] in left and one.transaction is not None}
        written = [one for one in written if one.positions[-1] not in left]
        written, told = counted(written, told, going_on | later)
    return Encoded(
        documents=list(output.format.bind(written, after)),
        said=said,
        left=frozenset(left),
        told=told,
        changes=len(changes),
    )


def _own(output: Output, changes: Iterable[Change], said: dict[Position, Outcome]) -> Iterable[Change]:
    """The changes without those that another output alone is told of."""
    names = ("", output.name, *output.former_names)
    for change in changes:
        if change.only in names:
            yield change
        else:
            note = f"only the output {change.only} gets it."
            _refuse(said, Refusal(positions=change.positions, note=note, filtered=True))


def _refused(output: Output, item: Any) -> Refusal | None:
    """Why something that was written goes nowhere, or what was left out of it."""
    if isinstance(item, Refusal):
        return item
    refuses = output.sink.capabilities.refuses
    note = None if refuses is None else refuses(item)
    return None if note is None else Refusal(positions=item.positions, note=note)


def _refuse(said: dict[Position, Outcome], refusal: Refusal) -> None:
    for position in refusal.positions:
        keep_worse(said, ended(position, refusal))


def _left(
    changes: Sequence[Change], written: Sequence[Any], going_on: frozenset[int], decision: Decision
) -> set[Position]:
    """The events of the last told change of each transaction that goes on, and of what comes after it."""
    positions = set(chain.from_iterable(one.positions for one in left_over(changes, [written], going_on)))
    positions |= {
        one.position for one in exceptional(decision.outcomes) if one.winner is not None and one.winner in positions
    }
    most = max(MOST_LEFT_EVENTS, len(decision.outcomes))
    return positions if len(positions) <= most else set()


def waits(said: Mapping[Position, Outcome], left: Collection[Position]) -> dict[Position, Outcome]:
    """The events that have to come again, each with the reason; one that was superseded waits with its winner."""
    found = {position: outcome for position, outcome in said.items() if outcome.status is Status.NEW}
    for position in left:
        found[position] = Outcome(position=position, status=Status.NEW, reason=Reason.GOES_ON)
    for position, outcome in said.items():
        if outcome.winner is not None and outcome.winner in found and position not in found:
            found[position] = replace(found[outcome.winner], position=position)
    return found
