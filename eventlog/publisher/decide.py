"""From the rows of a take to the documents of one output: rules, policies, counting, encoding.

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
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.counting import MOST_LEFT_EVENTS, TransactionCounts, counted, left_over
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
from eventlog.core.rules.round import publishing_order
from eventlog.core.rules.screen import Identities, in_order
from eventlog.core.schema import Catalog
from eventlog.core.seams import former_names_of
from eventlog.delivery.answers import keep_worse
from eventlog.delivery.output import Output
from eventlog.publisher.tables import Detail, OnTheWay
from eventlog.publisher.take import Take
from eventlog.publisher.whole import GoingOn, in_transactions
from eventlog.sources.marks import Stretches

if TYPE_CHECKING:
    from eventlog.publisher.memory import Memory

AGAIN_SECONDS: Final = 30.0
"""Seconds for which a look holds: to look at thousands of tables may take seconds."""

Cause = tuple[str | None, str | None]
"""The table_name and the column_name of a row that could not be read."""


class Looks:
    """When tables were looked at because of what."""

    def __init__(self) -> None:
        self._at: dict[Cause, float] = {}

    def cover(self, causes: AbstractSet[Cause]) -> bool:
        """Whether there was a look because of each of these not long ago: they are not there."""
        since = monotonic() - AGAIN_SECONDS
        return bool(causes) and all(self._at.get(cause, since) > since for cause in causes)

    def note(self, causes: AbstractSet[Cause]) -> None:
        """Tables are looked at now because of these."""
        now = monotonic()
        recent = {cause: at for cause, at in self._at.items() if at > now - AGAIN_SECONDS}
        self._at = recent | dict.fromkeys(causes, now)


def causes_of(events: Sequence[Event], outcomes: Sequence[Outcome]) -> frozenset[Cause]:
    """What the rows name that could not be read."""
    reasons = exceptional(outcomes)
    invalid = {outcome.position for outcome in reasons if outcome.reason is Reason.INVALID}
    if not invalid:
        return frozenset()
    return frozenset((event.table, event.column) for event in events if event.position in invalid)


KEPT_BATCHES: Final = 2
"""So many decisions are kept for outputs that take the same batches a moment later."""


class Numbers(Protocol):
    """The rows of images, which outputs know by their positions in a stream."""

    def of_rows(self, outcomes: Iterable[Outcome]) -> list[Outcome]:
        """The outcomes of images as those of their rows."""

    def going_on(self, going_on: GoingOn) -> GoingOn:
        """The transactions that go on, as images call them."""

    def encoded(self, encoded: Encoded, *, asked: bool) -> Encoded:
        """The same of rows; only a target that cannot be `asked` names those of each event."""


class Encoded(Struct, frozen=True, kw_only=True):
    """What an output gets: documents in order, and the outcomes of events that are in none.

    `left` are events that come with the next take, as their transactions go on. `counts` is how
    much of each unfinished transaction is published when all documents are there.
    """

    documents: Sequence[Document] = ()
    outcomes: Mapping[Position, Outcome] = {}
    left: frozenset[Position] = frozenset()
    counts: TransactionCounts = {}
    changes: int = 0
    complaint: str | None = None
    """Why the last change was refused that does not go out as an error."""
    outgoing: Sequence[Document] = ()
    """The same as the target gets them: of a stream they cover images, and no rows."""
    numbers: Numbers | None = None
    """The rows of these images."""


class Part(Struct, frozen=True, kw_only=True):
    """What rows amount to, as far as every table looks the same."""

    decision: Decision
    """Its outcomes are those of all parts of a group, and stand at the first of them."""
    span: DefinitionSpan
    numbers: Numbers | None = None
    """The rows of what was decided, where that are images."""


def parts_of(asked: Round, groups: Sequence[Sequence[Event]]) -> list[Part]:
    """What groups amount to, each by itself."""
    catalog = Catalog() if asked.catalog is None else asked.catalog
    former = catalog.former
    if former is None or not any(map(former.concerns, groups)):
        decision = together(asked.decide_groups(groups))
        return [Part(decision=decision, span=DefinitionSpan(events=(), catalog=catalog))]
    # Rows of an object that were written under other definitions are decided apart.
    parts: list[Part] = []
    order = publishing_order(asked.options)
    for group in groups:
        decided: list[tuple[DefinitionSpan, Change]] = []
        decisions: list[Decision] = []
        for span in former.spans(in_order(group, asked.options)):
            decision = _decided(asked, span)
            decisions.append(decision)
            decided += [(span, change) for change in decision.changes]
        decided.sort(key=lambda of_span: order(of_span[1]))
        outcomes = together(decisions).outcomes
        for span, changes in former.pieces(decided):
            parts.append(Part(decision=Decision(changes, outcomes), span=span))
            outcomes = Outcomes((), {})
    return parts


def _decided(asked: Round, span: DefinitionSpan) -> Decision:
    """What a span amounts to: by the tables of its time, read back by their names of today."""
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

    It goes by the tables as they looked once. `tracked` is what the mark of that name was before,
    and `stamp` how many versions the history of tables had. `looks` are those of the former one.
    """

    def __init__(
        self,
        round_: Round,
        tracked: str | None = None,
        looks: Looks | None = None,
        stamp: int | None = None,
    ) -> None:
        self.round = round_
        self.identities = Identities(round_.catalog)
        self.tracked = tracked
        self.stamp = stamp
        self.looks = looks or Looks()
        self._kept: deque[_Kept] = deque(maxlen=KEPT_BATCHES)
        # Numbers and no times, for only their order counts.
        self._moments = count(1)
        self._latest: dict[str, int] = {}
        """When what each output got last was read, in beginnings and ends of decisions."""
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
        """What the rows amount to for an output, of so many `outputs`.

        `groups` are decided each by itself, because they were so once. `moment` is the database's
        clock.
        """
        # Others may take the same rows a moment later. Not where rows of a take wait or have gone:
        # then another output's take is another one.
        shared = outputs > 1 and len(groups) == 1
        shared = shared and not (taken.unparked or taken.parked or taken.gone)
        if shared and (known := self._known(output, taken)) is not None:
            return known
        asked, began = self.round, next(self._moments)
        # Where events may take effect later the clock counts. It is asked after the rows were read,
        # so that none of them is ahead of it.
        if asked.options.future:
            asked = replace(asked, options=replace(asked.options, now=moment()))
        parts = self._parts(asked, groups)
        with self._one_at_a_time:
            ended = self._latest[output] = next(self._moments)
            if shared:
                kept = _Kept(taken.records, taken.stamp, parts, began, ended, outputs - 1)
                self._kept.append(kept)
        return parts

    def of_rows(self, events: Sequence[Event], answers: Sequence[Outcome]) -> Sequence[Outcome]:
        """What a target has answered for these rows."""
        return answers

    def _parts(self, asked: Round, groups: Sequence[Sequence[Event]]) -> list[Part]:
        return parts_of(asked, groups)

    def knows_tables(self, memory: Memory, ask: Callable[[str], Sequence[Sequence[Any]]]) -> bool:
        """Whether it goes by the tables as they are. `ask` answers a query about the log.

        To be asked after the rows: who sees one that was written after DDL sees what that DDL has
        entered. The other way round DDL could come between the two looks.
        """
        if self.tracked is not None and self.tracked != memory.tracked:
            return False
        return self.stamp is None or int(ask("history_stamp")[0][0]) == self.stamp

    def _known(self, output: str, taken: Take) -> Sequence[Part] | None:
        """What was decided of the same rows for another output."""
        with self._one_at_a_time:
            for kept in self._kept:
                if kept.records == taken.records and kept.stamp == taken.stamp:
                    kept.takers -= 1
                    # Let go when all have it: it is as large as the rows.
                    if not kept.takers:
                        self._kept.remove(kept)
                    # This output has had a later reading: what it would get now of a row that
                    # is read back is older than what it got before.
                    if kept.began < self._latest.get(output, 0):
                        return None
                    self._latest[output] = kept.ended
                    return kept.parts
        return None


def encode(
    output: Output,
    parts: Sequence[Part],
    *,
    after: str,
    counts: TransactionCounts,
    going_on: GoingOn | None = None,
    may_leave: bool = True,
    most_left: int = 0,
) -> Encoded:
    """The documents of one output. A document has changes of one part only.

    With `going_on` formats that count number each change in its transaction. Of whole
    transactions those that go on soon are left for then, if they have at most `most_left` rows.
    """
    outcomes: dict[Position, Outcome] = {}
    groups: list[tuple[int, list[Change]]] = []
    for number, part in enumerate(parts):
        groups.append((number, _own(output, part.decision, outcomes)))
    left: set[Position] = set()
    if output.whole and going_on is not None:
        placed = [(number, change) for number, changes in groups for change in changes]
        soon = going_on.soon if may_leave else ()
        placed, left = in_transactions(placed, soon, most_left)
        left |= _losers_of(left, parts)
        # Sorted by transactions now: a part may come several times, and each time in a piece of its
        # own, because its tables may look another way than those before.
        groups = []
        for number, of_part in groupby(placed, key=itemgetter(0)):
            groups.append((number, [change for _, change in of_part]))
    made = _written(output, parts, groups, outcomes)
    pieces = made.pieces
    if output.format.counts and going_on is not None:
        written = list(chain.from_iterable(pieces))
        last: set[Position] = set()
        if may_leave:
            last = _left(made.changes, written, going_on.soon, parts)
        later = {item.transaction for item in written if item.positions[-1] in last}
        later.discard(None)
        kept = [[item for item in piece if item.positions[-1] not in last] for piece in pieces]
        left |= last
        # All pieces are numbered as one, and taken apart again.
        items = list(chain.from_iterable(kept))
        numbered, counts = counted(items, counts, going_on.every | later)
        ends = accumulate(map(len, kept), initial=0)
        pieces = [numbered[start:end] for start, end in pairwise(ends)]
    documents: list[Document] = []
    for piece in filter(None, pieces):
        former = documents[-1].id if documents else after
        documents += output.format.bind(piece, former)
    return Encoded(
        documents=documents,
        outgoing=documents,
        outcomes=outcomes,
        left=frozenset(left),
        counts=counts,
        changes=len(made.changes),
        complaint=made.complaint,
    )


class _Written(Struct):
    """What a format has written, in pieces of one part each, and of which changes."""

    changes: list[Change] = []
    pieces: list[list[Any]] = []
    complaint: str | None = None
    """Why the last change was refused."""


def _written(
    output: Output,
    parts: Sequence[Part],
    groups: Iterable[tuple[int, list[Change]]],
    outcomes: dict[Position, Outcome],
) -> _Written:
    made = _Written()
    names, refuses = former_names_of(output.format), output.sink.capabilities.refuses
    for number, of_part in groups:
        own, catalog, missing = parts[number].span.by_names(of_part, names)
        for refusal in missing:
            _refuse(outcomes, refusal)
        made.changes += own
        piece: list[Any] = []
        made.pieces.append(piece)
        for item in output.format.writer(catalog)(own):
            # What a format cannot express, or the target does not take, is refused with the reason.
            refused = item if isinstance(item, Refusal) else None
            if refused is None and refuses is not None and (note := refuses(item)) is not None:
                refused = Refusal(positions=item.positions, note=note)
            if refused is None:
                piece.append(item)
                continue
            _refuse(outcomes, refused)
            if refused.reason is Reason.REFUSED:
                made.complaint = refused.note
    return made


def _own(output: Output, decision: Decision, outcomes: dict[Position, Outcome]) -> list[Change]:
    """The changes without those that another output alone gets; the rest is in `outcomes`."""
    outcomes.update(decision.outcomes.others)
    names = ("", output.name, *output.former_names)
    own: list[Change] = []
    for change in decision.changes:
        if change.only in names:
            own.append(change)
        else:
            note = f"only the output {change.only} gets it."
            _refuse(outcomes, Refusal(positions=change.positions, note=note, filtered=True))
    return own


def _refuse(outcomes: dict[Position, Outcome], refusal: Refusal) -> None:
    for position in refusal.positions:
        keep_worse(outcomes, position, ended(position, refusal))


def _left(
    changes: Sequence[Change],
    written: Sequence[Any],
    going_on: frozenset[int],
    parts: Sequence[Part],
) -> set[Position]:
    """The last published change of each transaction that goes on, and later ones of its object."""
    # What is refused is not left with it: it would be decided together with what went out alone.
    written_ends = {item.positions[-1] for item in written}
    published = [change for change in changes if change.positions[-1] in written_ends]
    last = left_over(published, [written], going_on)
    positions = set(chain.from_iterable(change.positions for change in last))
    positions |= _losers_of(positions, parts)
    most = max(MOST_LEFT_EVENTS, sum(len(part.decision.outcomes) for part in parts))
    if len(positions) > most:
        return set()
    return positions


def _losers_of(positions: set[Position], parts: Sequence[Part]) -> set[Position]:
    """The events that these have superseded."""
    others = chain.from_iterable(exceptional(part.decision.outcomes) for part in parts)
    superseded = (outcome for outcome in others if outcome.winner is not None)
    return {outcome.position for outcome in superseded if outcome.winner in positions}


def waits(outcomes: Mapping[Position, Outcome], left: Collection[Position]) -> dict[Position, Outcome]:
    """The events that have to come again, each with the reason."""
    waiting = {at: outcome for at, outcome in outcomes.items() if outcome.status is Status.NEW}
    for position in left:
        waiting[position] = Outcome(position=position, status=Status.NEW, reason=Reason.GOES_ON)
    # One that was superseded waits with its winner.
    for position, outcome in outcomes.items():
        if outcome.winner is not None and outcome.winner in waiting and position not in waiting:
            waiting[position] = replace(waiting[outcome.winner], position=position)
    return waiting


def planned_documents(
    plan: str, taken: Take, encoded: Encoded, again: AbstractSet[int], *, asked: bool
) -> list[OnTheWay]:
    """The documents for the journal, with the rows that each superseded; one entry if `asked`."""
    losers: dict[Position, list[Outcome]] = {}
    for outcome in encoded.outcomes.values():
        if outcome.winner is not None and outcome.position[0] not in again:
            losers.setdefault(outcome.winner, []).append(outcome)
    details: list[Detail] = []
    for document in encoded.documents:
        covered = list(chain.from_iterable(document.covers.values()))
        if losers:
            superseded = chain.from_iterable(losers.get(position, ()) for position in covered)
            covered += [outcome.position for outcome in superseded]
        outcomes: tuple[Outcome, ...] = ()
        if encoded.outcomes:
            outcomes = tuple(encoded.outcomes[event] for event in covered if event in encoded.outcomes)
        records = tuple(dict.fromkeys([position[0] for position in covered]))
        details.append(Detail(document.id, records, outcomes, document.cut))
    if not details:
        return []
    attempts = taken.attempts
    if asked:
        most = max(attempts.values(), default=0)
        return [OnTheWay(plan=plan, place=0, details=details, attempts=most)]
    planned: list[OnTheWay] = []
    for index, (detail, document) in enumerate(zip(details, encoded.documents, strict=True)):
        most = 0
        if attempts:
            most = max((attempts.get(record, 0) for record in detail.records), default=0)
        entry = OnTheWay(
            plan=plan,
            place=index,
            details=[detail],
            objects=list(dict.fromkeys(taken.objects[record] for record in detail.records)),
            covers=document.covers,
            body=document.body.decode(),
            route=document.route,
            attempts=most,
        )
        planned.append(entry)
    return planned
