"""From the rows of a take to the documents of one output: the rules, the output's own policies, counting, encoding.

Outputs that take the same batches share what the rules decide.
"""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate, chain, count, groupby, pairwise
from operator import itemgetter
from threading import Lock
from time import monotonic
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.counting import MOST_LEFT_EVENTS, Told, counted, left_over
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
from eventlog.core.rules.definitions import DefinitionSpan, FormerRows
from eventlog.core.rules.meaning import ended, together
from eventlog.core.rules.round import place_of
from eventlog.core.rules.screen import Identities, in_order
from eventlog.core.schema import Catalog
from eventlog.core.seams import former_names_of
from eventlog.delivery.answers import keep_worse
from eventlog.delivery.output import Output
from eventlog.publisher.tables import Detail, OnTheWay
from eventlog.publisher.take import Take
from eventlog.publisher.whole import GoingOn, in_transactions
from eventlog.sources.marks import Stretches

AGAIN_SECONDS: Final = 30.0
"""Seconds for which a look holds: reading what every table looks like may take seconds where there are thousands."""

Cause = tuple[str | None, str | None]
"""The table_name and the column_name of a row that could not be read."""


class Looks:
    """When tables were looked at because of what."""

    def __init__(self) -> None:
        self._at: dict[Cause, float] = {}

    def cover(self, causes: AbstractSet[Cause]) -> bool:
        """Whether there was a look because of each of these not long ago: what they name is not there."""
        since = monotonic() - AGAIN_SECONDS
        return bool(causes) and all(self._at.get(cause, since) > since for cause in causes)

    def note(self, causes: AbstractSet[Cause]) -> None:
        """Tables are looked at now because of these."""
        now = monotonic()
        self._at = {cause: at for cause, at in self._at.items() if at > now - AGAIN_SECONDS} | dict.fromkeys(
            causes, now
        )


def causes_of(events: Sequence[Event], outcomes: Sequence[Outcome]) -> frozenset[Cause]:
    """What the rows name that could not be read."""
    invalid = {outcome.position for outcome in exceptional(outcomes) if outcome.reason is Reason.INVALID}
    if not invalid:
        return frozenset()
    return frozenset((event.table, event.column) for event in events if event.position in invalid)


KEPT_BATCHES: Final = 2
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
    complaint: str | None = None
    """Why the last change was refused that does not go out as an error."""


class Part(Struct, frozen=True, kw_only=True):
    """What rows amount to, as far as every table looks the same. The outcomes are those of all parts of a group."""

    decision: Decision
    span: DefinitionSpan


def parts_of(asked: Round, groups: Sequence[Sequence[Event]]) -> list[Part]:
    """What groups amount to, each by itself; rows of an object that were written under other definitions are decided apart."""
    catalog = Catalog() if asked.catalog is None else asked.catalog
    former = catalog.former
    if former is None or not any(former.concerns(group) for group in groups):
        decision = together(asked.decide_groups(groups))
        return [Part(decision=decision, span=DefinitionSpan(events=(), catalog=catalog))]
    parts: list[Part] = []
    place = place_of(asked.options)
    for group in groups:
        spans = former.spans(in_order(group, asked.options))
        decisions = [_decided(asked, span) for span in spans]
        told = [(span, change) for span, one in zip(spans, decisions, strict=True) for change in one.changes]
        told.sort(key=lambda one: place(one[1]))
        outcomes = together(decisions).outcomes
        for span, changes in former.pieces(told):
            parts.append(Part(decision=Decision(changes, outcomes), span=span))
            outcomes = Outcomes((), {})
    return parts


def _decided(asked: Round, span: DefinitionSpan) -> Decision:
    """What the events of a span amount to: by the tables of their time, read back by what these are called today."""
    reader = asked.reader
    if span.former and reader is not None:
        reader = FormerRows(reader, span)
    return replace(asked, catalog=span.catalog, reader=reader).decide(span.events)


class _Kept(Struct, eq=False):
    """A decision, when it was made, and how many other outputs may ask for it."""

    records: Stretches
    stamp: str
    parts: Sequence[Part]
    began: int
    ended: int
    takers: int


class Decider:
    """Asks the rules what rows amount to, once for all outputs that take the same.

    It goes by the tables as they looked once. `tracked` is what the mark of that name said before; `looks`
    are those of the former one, when tables were looked at because of rows that could not be read. `stamp` is how many
    versions the history of tables had before they were looked at.
    """

    def __init__(
        self, round_: Round, tracked: str | None = None, looks: Looks | None = None, stamp: int | None = None
    ) -> None:
        self.round = round_
        self.identities = Identities(round_.catalog)
        self.tracked = tracked
        self.stamp = stamp
        self.looks = looks or Looks()
        self._kept: deque[_Kept] = deque(maxlen=KEPT_BATCHES)
        self._moments = count(1)
        self._latest: dict[str, int] = {}
        """When what each output was told last was read, counted in beginnings and ends of decisions."""
        self._one_at_a_time = Lock()

    def decide(
        self,
        taken: Take,
        groups: Sequence[Sequence[Event]],
        moment: Callable[[], dt.datetime],
        *,
        output: str,
        outputs: int = 1,
    ) -> Sequence[Part]:
        """What the rows amount to for an output; `groups` are decided each by itself, because they were once, and so are rows that
        were written under other definitions.

        `moment` is the database's clock, which is asked where events may take effect later. Of so many `outputs` the
        others may take the same rows, and what is kept for them is let go when all have: it is as large as the rows.
        """
        shared = outputs > 1 and len(groups) == 1 and not (taken.unparked or taken.parked or taken.gone)
        if shared and (known := self._known(output, taken)) is not None:
            return known
        asked, began = self.round, next(self._moments)
        if asked.options.future:  # after the rows were read, so that none of them is ahead of it
            asked = replace(asked, options=replace(asked.options, now=moment()))
        parts = self._parts(asked, groups)
        with self._one_at_a_time:
            ended = self._latest[output] = next(self._moments)
            if shared:
                self._kept.append(_Kept(taken.records, taken.stamp, parts, began, ended, outputs - 1))
        return parts

    def _parts(self, asked: Round, groups: Sequence[Sequence[Event]]) -> list[Part]:
        return parts_of(asked, groups)

    def _known(self, output: str, taken: Take) -> Sequence[Part] | None:
        """What was decided of the same rows for another output, unless this one has had a later reading: what it is told
        of a row that is read back would be older than what it was told before.
        """
        with self._one_at_a_time:
            for one in self._kept:
                if one.records == taken.records and one.stamp == taken.stamp:
                    one.takers -= 1
                    if not one.takers:
                        self._kept.remove(one)
                    if one.began < self._latest.get(output, 0):
                        return None
                    self._latest[output] = one.ended
                    return one.parts
        return None


def encode(
    output: Output,
    parts: Sequence[Part],
    *,
    after: str,
    told: Told,
    going_on: GoingOn | None = None,
    may_leave: bool = True,
    most_left: int = 0,
) -> Encoded:
    """The documents of one output. With `going_on` those that count say which change of its transaction each is; where
    transactions are to be whole, those that go on soon are left for then, as long as they have no more than `most_left` rows.

    A document has changes of one part only: their tables look the same all through it.
    """
    said: dict[Position, Outcome] = {}
    groups: list[tuple[int, list[Change]]] = []
    for number, part in enumerate(parts):
        said.update((outcome.position, outcome) for outcome in exceptional(part.decision.outcomes))
        groups.append((number, list(_own(output, part.decision.changes, said))))
    left: set[Position] = set()
    if output.whole and going_on is not None:
        placed = [(number, change) for number, changes in groups for change in changes]
        placed, left = in_transactions(placed, going_on.soon if may_leave else (), most_left)
        left |= _losers_of(left, parts)
        groups = [(number, [change for _, change in group]) for number, group in groupby(placed, key=itemgetter(0))]
    made = _written(output, parts, groups, said)
    pieces = made.pieces
    if output.format.counts and going_on is not None:
        written = list(chain.from_iterable(pieces))
        last = _left(made.changes, written, going_on.soon, parts) if may_leave else set[Position]()
        later = {one.transaction for one in written if one.positions[-1] in last and one.transaction is not None}
        pieces = [[one for one in piece if one.positions[-1] not in last] for piece in pieces]
        left |= last
        numbered, told = counted(list(chain.from_iterable(pieces)), told, going_on.every | later)
        ends = [*accumulate(map(len, pieces), initial=0)]
        pieces = [numbered[start:end] for start, end in pairwise(ends)]
    documents: list[Document] = []
    for piece in filter(None, pieces):
        documents += output.format.bind(piece, documents[-1].id if documents else after)
    return Encoded(
        documents=documents,
        said=said,
        left=frozenset(left),
        told=told,
        changes=len(made.changes),
        complaint=made.complaint,
    )


class _Written(Struct):
    """What a format has written, in pieces of one part each, and of which changes; why the last was refused."""

    changes: list[Change] = []
    pieces: list[list[Any]] = []
    complaint: str | None = None


def _written(
    output: Output, parts: Sequence[Part], groups: Iterable[tuple[int, list[Change]]], said: dict[Position, Outcome]
) -> _Written:
    made = _Written()
    for number, of_part in groups:
        own, catalog, missing = parts[number].span.told(of_part, former_names_of(output.format))
        for refusal in missing:
            _refuse(said, refusal)
        made.changes += own
        made.pieces.append([])
        for item in output.format.writer(catalog)(own):
            refused = _refused(output, item)
            if refused is None:
                made.pieces[-1].append(item)
            else:
                _refuse(said, refused)
                if refused.reason is Reason.REFUSED:
                    made.complaint = refused.note
    return made


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
    changes: Sequence[Change], written: Sequence[Any], going_on: frozenset[int], parts: Sequence[Part]
) -> set[Position]:
    """The events of the last told change of each transaction that goes on, and of what is told after it of its object.

    What is refused is not left with it: it would be decided together with what was told alone.
    """
    told_ends = {one.positions[-1] for one in written}
    told = [change for change in changes if change.positions[-1] in told_ends]
    positions = set(chain.from_iterable(one.positions for one in left_over(told, [written], going_on)))
    positions |= _losers_of(positions, parts)
    most = max(MOST_LEFT_EVENTS, sum(len(part.decision.outcomes) for part in parts))
    return positions if len(positions) <= most else set()


def _losers_of(positions: set[Position], parts: Sequence[Part]) -> set[Position]:
    """The events that these have superseded."""
    others = chain.from_iterable(exceptional(part.decision.outcomes) for part in parts)
    return {one.position for one in others if one.winner is not None and one.winner in positions}


def waits(said: Mapping[Position, Outcome], left: Collection[Position]) -> dict[Position, Outcome]:
    """The events that have to come again, each with the reason; one that was superseded waits with its winner."""
    found = {position: outcome for position, outcome in said.items() if outcome.status is Status.NEW}
    for position in left:
        found[position] = Outcome(position=position, status=Status.NEW, reason=Reason.GOES_ON)
    for position, outcome in said.items():
        if outcome.winner is not None and outcome.winner in found and position not in found:
            found[position] = replace(found[outcome.winner], position=position)
    return found


def planned_documents(
    plan: str, taken: Take, encoded: Encoded, again: AbstractSet[int], *, asked: bool
) -> list[OnTheWay]:
    """The documents as the journal keeps them, with the rows that each has superseded. A target that can be `asked` has
    one entry a plan.
    """
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
    if asked:
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
