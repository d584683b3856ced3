"""From what the rules decided to the documents of one output: policies, counting, encoding."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate, chain, groupby, pairwise
from operator import attrgetter, itemgetter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.counting import MOST_LEFT_EVENTS, TransactionCounts, count_written, find_left_over
from eventlog.core.errors import value_shown
from eventlog.core.model import (
    ABSENT,
    Change,
    Document,
    Edit,
    Op,
    Outcome,
    Position,
    ReadBack,
    Reason,
    Refusal,
    RowId,
    Status,
    Unreadable,
    exceptional,
)
from eventlog.core.rules import Decision
from eventlog.core.rules.definitions import DefinitionSpan
from eventlog.core.rules.meaning import end_event
from eventlog.core.schema import Catalog
from eventlog.core.seams import Format, RowReader, Writer, former_names_of
from eventlog.delivery.answers import keep_worse
from eventlog.delivery.blame import blame, describe_error, refuse_fault
from eventlog.delivery.output import Output
from eventlog.publisher.selection import Take
from eventlog.publisher.tables import Detail, OnTheWay
from eventlog.publisher.whole_transactions import GoingOn, in_transactions


class Encoded(Struct, frozen=True, kw_only=True):
    """What an output gets: documents in order, and the outcomes of events that are in none.

    `left` are events that come with the next take, as their transactions go on.
    """

    documents: Sequence[Document] = ()
    outcomes: Mapping[Position, Outcome] = {}
    left: frozenset[Position] = frozenset()
    changes: int = 0
    complaint: str | None = None
    """Why the last change was refused that does not go out as an error."""


class Part(Struct, frozen=True, kw_only=True):
    """What rows amount to, as far as every table looks the same."""

    decision: Decision
    """Its outcomes are those of all parts of a group, and stand at the first of them."""
    span: DefinitionSpan


def encode(
    output: Output,
    parts: Sequence[Part],
    *,
    after: str,
    counts: TransactionCounts,
    going_on: GoingOn | None = None,
    may_leave: bool = True,
    most_left: int = 0,
    reader: RowReader | None = None,
    writer: KeptWriter | None = None,
) -> Encoded:
    """Write the documents of one output. A document has changes of one part only.

    Read a row back by `reader` where the output lacks something of it.

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
    made = _write_parts(output, writer or KeptWriter(output.format), parts, groups, outcomes, reader)
    pieces = made.pieces
    if output.format.counts and going_on is not None:
        written = list(chain.from_iterable(pieces))
        last: set[Position] = set()
        if may_leave:
            last = _find_left(made.changes, written, going_on.soon, parts)
        later = {item.transaction for item in written if item.positions[-1] in last}
        later.discard(None)
        kept = [[item for item in piece if item.positions[-1] not in last] for piece in pieces]
        left |= last
        # All pieces are numbered as one, and taken apart again.
        items = list(chain.from_iterable(kept))
        numbered, _ = count_written(items, counts, going_on.every | later)
        ends = accumulate(map(len, kept), initial=0)
        pieces = [numbered[start:end] for start, end in pairwise(ends)]
    documents: list[Document] = []
    for piece in filter(None, pieces):
        former = documents[-1].id if documents else after
        documents += bind_written(output.format, piece, former, outcomes)
    return Encoded(
        documents=documents,
        outcomes=outcomes,
        left=frozenset(left),
        changes=len(made.changes),
        complaint=made.complaint,
    )


KEPT_CHANGES: Final = 100_000
"""So many changes are written by one writer: what it keeps of names that rows bring must not grow for ever."""


class KeptWriter:
    """Writes changes in a format. What it has made of the tables it keeps, for they are nearly always the same."""

    def __init__(self, form: Format) -> None:
        self._form = form
        self._catalog: Catalog | None = None
        self._writer: Writer | None = None
        self._room = 0

    def write(self, catalog: Catalog | None, changes: Sequence[Change]) -> list[Any]:
        """Write changes; one the format fails on is refused, and the others are written.

        OutputError if it fails on all of them, even without their values.
        """
        writer = self._writer
        if writer is None or catalog is not self._catalog or self._room <= 0:
            try:
                self._writer = writer = self._form.writer(catalog)
            except Exception as error:
                raise blame(error) from error
            self._catalog, self._room = catalog, KEPT_CHANGES
        self._room -= len(changes)
        try:
            return list(writer(changes))
        except Exception as error:  # noqa: BLE001  # a format may come from anywhere
            refuse_fault(error)
        return _write_one_by_one(writer, changes)


def _write_one_by_one(writer: Writer, changes: Sequence[Change]) -> list[Any]:
    written: list[Any] = []
    failed = 0
    for change in changes:
        try:
            written += writer([change])
        except Exception as error:  # noqa: BLE001  # as above
            refuse_fault(error)
            failed += 1
            note = f"{value_shown(change.row.table)} {value_shown(change.row.key)}: {describe_error(error)}"
            written.append(Refusal(positions=change.positions, note=note))
    if failed == len(changes):
        try:
            list(writer([replace(changes[0], edits=())]))
        except Exception as error:
            raise blame(error) from error
    return written


def _write_whole(
    output: Output,
    writer: KeptWriter,
    catalog: Catalog,
    changes: Sequence[Change],
    written: list[Any],
    reader: RowReader,
) -> list[Any]:
    """Write again, as whole rows, changes of which a receiver lacks a part."""
    lacking = {item.positions for item in written if isinstance(item, Refusal) and item.lacks}
    if output.refuses_objects:
        lacking |= {change.positions for change in changes if _may_correct(change)}
    if not lacking:
        return written
    whole = writer.write(catalog, _add_rows(reader, catalog, changes, lacking))
    # What the row has now may be refused again, which is no fault of this change.
    refused = {item.positions for item in whole if isinstance(item, Refusal) and item.reason is Reason.REFUSED}
    if refused.isdisjoint(lacking):
        return whole
    return writer.write(catalog, _add_rows(reader, catalog, changes, lacking - refused))


def _may_correct(change: Change) -> bool:
    """Say whether a change may follow one that was refused, and does not show it: it has no former value."""
    return change.op is Op.MODIFY and any(edit.reset and edit.old is ABSENT for edit in change.edits)


def _add_rows(
    reader: RowReader, catalog: Catalog, changes: Sequence[Change], lacking: AbstractSet[tuple[Position, ...]]
) -> list[Change]:
    """Add the row's present values to changes without them."""
    tables = {(table.schema, table.name): table for table in catalog}
    wanted: dict[RowId, frozenset[str]] = {}
    for change in changes:
        table = tables.get((change.row.schema, change.row.table))
        if change.positions not in lacking or change.whole or table is None:
            continue
        if not table.attribute_names.issubset(edit.column for edit in change.edits):
            wanted[change.row] = table.attribute_names
    rows = reader.rows(wanted) if wanted else {}
    return [_add_row(change, rows.get(change.row)) if change.positions in lacking else change for change in changes]


def _add_row(change: Change, row: ReadBack | None) -> Change:
    """Complete a change with the other attributes of its row."""
    if row is None or isinstance(row, Unreadable):
        return change  # it is gone, which a later change tells, or cannot be read now
    known = {edit.column for edit in change.edits}
    more = [Edit(column=name, new=value, reset=True) for name, value in row.items() if name not in known]
    return replace(change, edits=(*change.edits, *more))


def bind_written(form: Format, written: Sequence[Any], after: str, outcomes: dict[Position, Outcome]) -> list[Document]:
    """Bind written changes into documents; refuse those the format fails on."""
    try:
        return list(form.bind(written, after))
    except Exception as error:  # noqa: BLE001  # as above
        refuse_fault(error)
    bound: list[Any] = []
    for item in written:
        try:
            list(form.bind([item], after))
        except Exception as error:  # noqa: BLE001  # as above
            refuse_fault(error)
            _refuse(outcomes, Refusal(positions=item.positions, note=describe_error(error)))
        else:
            bound.append(item)
    try:
        # One of a document's items is enough for a format that fails with all of them.
        return list(form.bind(bound or written, after))
    except Exception as error:
        raise blame(error) from error


class _Written(Struct):
    """What a format has written, in pieces of one part each, and of which changes."""

    changes: list[Change] = []
    pieces: list[list[Any]] = []
    complaint: str | None = None
    """Why the last change was refused."""


def _write_parts(
    output: Output,
    writer: KeptWriter,
    parts: Sequence[Part],
    groups: Iterable[tuple[int, list[Change]]],
    outcomes: dict[Position, Outcome],
    reader: RowReader | None,
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
        items = writer.write(catalog, own)
        any_refused = Refusal in map(type, items)
        if reader is not None and (any_refused or output.refuses_objects):
            items = _write_whole(output, writer, catalog, own, items, reader)
        elif refuses is None and not any_refused:
            piece += items
            continue
        for item in items:
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
    """Return the changes without those for another output alone; enter the rest in `outcomes`."""
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
        keep_worse(outcomes, position, end_event(position, refusal))


def _find_left(
    changes: Sequence[Change],
    written: Sequence[Any],
    going_on: frozenset[int],
    parts: Sequence[Part],
) -> set[Position]:
    """Find the last published change of each open transaction, and later ones of its object."""
    # What is refused is not left with it: it would be decided together with what went out alone.
    written_ends = {item.positions[-1] for item in written}
    published = [change for change in changes if change.positions[-1] in written_ends]
    last = find_left_over(published, [written], going_on)
    positions = set(chain.from_iterable(change.positions for change in last))
    positions |= _losers_of(positions, parts)
    most = max(MOST_LEFT_EVENTS, sum(len(part.decision.outcomes) for part in parts))
    if len(positions) > most:
        return set()
    return positions


def _losers_of(positions: set[Position], parts: Sequence[Part]) -> set[Position]:
    """Find the events superseded by these."""
    others = chain.from_iterable(exceptional(part.decision.outcomes) for part in parts)
    superseded = (outcome for outcome in others if outcome.winner is not None)
    return {outcome.position for outcome in superseded if outcome.winner in positions}


def waits(outcomes: Mapping[Position, Outcome], left: Collection[Position]) -> dict[Position, Outcome]:
    """Find the events to be retried, each with the reason."""
    waiting = {at: outcome for at, outcome in outcomes.items() if outcome.status is Status.NEW}
    for position in left:
        waiting[position] = Outcome(position=position, status=Status.NEW, reason=Reason.GOES_ON)
    # One that was superseded waits with its winner.
    for position, outcome in outcomes.items():
        if outcome.winner is not None and outcome.winner in waiting and position not in waiting:
            waiting[position] = replace(waiting[outcome.winner], position=position)
    return waiting


def plan_documents(plan: str, taken: Take, encoded: Encoded, again: AbstractSet[int], *, asked: bool) -> list[OnTheWay]:
    """Make the documents' entries for the journal, with superseded rows; one entry if `asked`."""
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
        records = tuple(dict.fromkeys(map(itemgetter(0), covered)))
        details.append(Detail(document.id, records, outcomes, document.cut))
    if not details:
        return []
    if asked:
        most = max(map(attrgetter("attempts"), taken.unparked), default=0)
        return [OnTheWay(plan=plan, place=0, details=details, attempts=most)]
    attempts = taken.attempts
    planned: list[OnTheWay] = []
    for index, (detail, document) in enumerate(zip(details, encoded.documents, strict=True)):
        most = 0
        if attempts:
            most = max((attempts.get(record, 0) for record in detail.records), default=0)
        entry = OnTheWay(
            plan=plan,
            place=index,
            details=[detail],
            objects={taken.objects[record]: record for record in sorted(detail.records, reverse=True)},
            covers=document.covers,
            body=document.body.decode(),
            route=document.route,
            attempts=most,
        )
        planned.append(entry)
    return planned
