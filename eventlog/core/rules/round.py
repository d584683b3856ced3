"""One round: the one way from events to a decision, for the daemon, conversions, Spark and
`eventlog explain`.

    screen   order, set aside what takes no part, gather by object
    wanted   which objects and attributes must be read back, by the round's reader
    judge    object by object, lifetime by lifetime: precedence and merging, with what was found
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import (
    ABSENT,
    TABLE_FAULTS,
    Change,
    Event,
    Outcome,
    Outcomes,
    ReadBack,
    Reason,
    Row,
    RowId,
    Unreadable,
)
from eventlog.core.references import LooseReferences, Reference, find_loose_references
from eventlog.core.rules.lifetimes import (
    ROW_BACK,
    as_created,
    begins,
    call_lifetime,
    ending,
    inserts,
    join,
    lifetimes,
    list_wanted,
    spell_as_row,
)
from eventlog.core.rules.meaning import STATUS, Decision, Options
from eventlog.core.rules.prefer import NOBODY_READS, prefer
from eventlog.core.rules.screen import Screened, Subject, due, screen
from eventlog.core.schema import Catalog
from eventlog.core.seams import RowReader

AGAIN: Final = TABLE_FAULTS | {Reason.NO_ROOM}
"""Why a row that cannot be read now may be read later."""

Merge = Callable[[Screened, Subject, list[Event], Row | None], list[Change]]

Looks = Callable[[Change], Mapping[str, tuple[RowId, str]]]


class Round(Struct, frozen=True, kw_only=True):
    """What a round goes by. Without a `reader` nobody can answer read-backs."""

    catalog: Catalog | None = None
    reader: RowReader | None = None
    options: Options = Options()
    by_object: bool = False
    """Events come object by object, each object's in their order; so do the changes."""
    needs: Callable[[Change], frozenset[str]] | None = None
    """What policies must know of a change's object beside what the change brings."""
    looks: Looks | None = None
    """What policies must know of rows of other tables, by the names of `Change.looked`."""
    reads_others: bool = True
    """The reader knows rows of all tables, and not only those of the objects that are decided."""

    def decide(self, events: Sequence[Event]) -> Decision:
        """Decide events in any order."""
        [decision] = self.decide_groups([events])
        return decision

    def decide_groups(self, groups: Iterable[Sequence[Event]]) -> list[Decision]:
        """Decide groups of events, each by itself; read rows back once for all."""
        screened: list[Screened] = []
        asked: dict[RowId, frozenset[str]] = {}
        for events in groups:
            group = screen(events, self.catalog, self.options, by_object=self.by_object)
            screened.append(group)
            for row, columns in list_wanted(group).items():
                asked[row] = asked.get(row, columns) | columns
        rows = self.read_back(asked)
        by_object = self.by_object
        decisions = [judge(group, rows, self.options, by_object=by_object) for group in screened]
        return self._complete(decisions)

    def _complete(self, decisions: list[Decision]) -> list[Decision]:
        """Add the values policies need beside the changes.

        If a row cannot be read yet, all changes of its object wait.
        """
        if self.needs is not None:
            needs = self.needs
            wanted = [[(change, needs(change)) for change in decision.changes] for decision in decisions]
            # One query a table for all groups, however many they are.
            asked: dict[RowId, frozenset[str]] = {}
            for change, columns in chain.from_iterable(wanted):
                if columns:
                    asked[change.row] = asked.get(change.row, columns) | columns
            if asked:
                rows = self.read_back(asked) or {}
                unread = {row: back for row, back in rows.items() if isinstance(back, Unreadable)}
                waiting = {row: back for row, back in unread.items() if back.reason in AGAIN}
                pairs = zip(decisions, wanted, strict=True)
                decisions = [_beside(decision, of_changes, rows, waiting) for decision, of_changes in pairs]
        if self.looks is not None:
            decisions = [self._with_looked(decision, self.looks) for decision in decisions]
        return self._with_called(decisions) if self.references else decisions

    @property
    def references(self) -> LooseReferences:
        """Return the attributes that name objects of whose key several texts are one value, as far as their rows can
        be asked how they are called.
        """
        if self.catalog is None or self.reader is None or not self.reads_others:
            return {}
        return find_loose_references(self.catalog)

    def _with_called(self, decisions: list[Decision]) -> list[Decision]:
        """Add how the objects that values name are called in their tables."""
        references = self.references
        named = [[list_named(change, references) for change in decision.changes] for decision in decisions]
        asked = {row: of.table.loose_key for of_decision in named for rows in of_decision for row, of in rows.items()}
        if not asked:
            return decisions
        found = self.read_back(asked)
        completed: list[Decision] = []
        for decision, of_decision in zip(decisions, named, strict=True):
            waiting = dict[RowId, Unreadable]()
            for change, rows in zip(decision.changes, of_decision, strict=True):
                for row in rows:
                    back = row_back_of(row, found)
                    if isinstance(back, Unreadable) and back.reason in AGAIN:
                        waiting[change.row] = back
            changes = [add_called(*of, found) for of in zip(decision.changes, of_decision, strict=True)]
            completed.append(_without_waiting(Decision(changes, decision.outcomes), waiting))
        return completed

    def _with_looked(self, decision: Decision, looks: Looks) -> Decision:
        """Add the values policies look up in other tables."""
        changes = decision.changes
        waiting: dict[RowId, Unreadable] = {}
        # Until nobody asks any more: what was found in one row may say which row to look into next.
        while places := [looks(change) for change in changes]:
            asked: dict[RowId, frozenset[str]] = {}
            for of_change in places:
                for row, column in of_change.values():
                    asked[row] = asked.get(row, frozenset()) | {column}
            if not asked:
                break
            rows = self.read_back(asked)
            completed: list[Change] = []
            for change, of_change in zip(changes, places, strict=True):
                for row, _ in of_change.values():
                    row_back = row_back_of(row, rows)
                    if isinstance(row_back, Unreadable) and row_back.reason in AGAIN:
                        waiting[change.row] = row_back
                completed.append(add_looked_up(change, of_change, rows))
            changes = completed
        return _without_waiting(Decision(changes, decision.outcomes), waiting)

    def read_back(self, asked: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack] | None:
        """Read current rows; None where there is no reader."""
        if self.reader is None:
            return None
        if not asked:
            return {}
        return self.reader.rows(asked)


def decide(
    events: Iterable[Event],
    rows: Mapping[RowId, ReadBack] | None = None,
    *,
    catalog: Catalog | None = None,
    options: Options | None = None,
) -> Decision:
    """Decide the events: make their changes and outcomes. `rows` answers read-backs; None means no reader."""
    options = options or Options()
    return judge(screen(list(events), catalog, options), rows, options)


def judge(
    screened: Screened,
    rows: Mapping[RowId, ReadBack] | None,
    options: Options,
    *,
    by_object: bool = False,
) -> Decision:
    """Decide screened events with their rows read back.

    The changes come in publishing order, or `by_object`.
    """
    changes: list[Change] = []
    merge_rows: Merge = join
    if options.coalesce:
        from eventlog.core.rules.coalesce import coalesce

        merge_rows = coalesce
    for subject in screened.subjects.values():
        # Rows without a key are not one object, though they come under one name.
        merge = merge_rows if subject.row.key else join
        if subject.table is not None and subject.table.whole_row:
            from eventlog.core.rules.without_key import whole_row_changes

            changes += whole_row_changes(screened, subject, subject.events)
            continue
        if subject.loose:
            changes += _judge_spelled(screened, subject, rows, merge)
            continue
        # By far the most: nothing to prefer, nothing to close.
        if subject.plain:
            changes += merge(screened, subject, subject.events, None)
            continue
        row_back = row_back_of(subject.row, rows)
        row = row_back.row if isinstance(row_back, Unreadable) else row_back
        is_lone = len(subject.events) == 1 and subject.events[0].kind in ROW_BACK
        if is_lone and row is not None and row is row_back:
            # Its row was read back whole: nothing to prefer here either.
            merged = merge(screened, subject, subject.events, row)
            if inserts(subject, subject.events[0]):
                merged = as_created(merged)
            changes += merged
            continue
        for lifetime in lifetimes(subject):
            merged = merge(screened, subject, prefer(screened, lifetime, row_back), row)
            if begins(subject, lifetime, row):
                merged = as_created(merged)
            changes += merged
            changes += ending(screened, subject, lifetime)
    if not by_object:
        changes.sort(key=publishing_order(options))
    # What else became of events, `screened` knows by now.
    positions = list(map(attrgetter("position"), screened.events))
    return Decision(changes, Outcomes(positions, screened.outcomes))


def _judge_spelled(
    screened: Screened, subject: Subject, rows: Mapping[RowId, ReadBack] | None, merge: Merge
) -> list[Change]:
    """Decide an object of whose key several texts are one value: it is called as its row is."""
    row_back = row_back_of(subject.row, rows)
    row = row_back.row if isinstance(row_back, Unreadable) else row_back
    changes: list[Change] = []
    for lifetime in lifetimes(subject):
        called = call_lifetime(screened, subject, lifetime, row)
        merged = merge(screened, called, prefer(screened, lifetime, row_back), row)
        if begins(called, lifetime, row):
            merged = as_created(merged)
        changes += merged
        changes += ending(screened, called, lifetime)
    return changes


def publishing_order(options: Options) -> Callable[[Change], Any]:
    """Return the sort key of changes in the order of publishing."""
    if options.future:
        return lambda change: (due(change), change.positions[-1])
    # Where its last contributing event stands.
    return lambda change: change.positions[-1]


def list_named(change: Change, references: LooseReferences) -> dict[RowId, Reference]:
    """List the objects that the values of a change name, of those of which a key has several spellings."""
    own = references.get((change.row.schema, change.row.table))
    if own is None:
        return {}
    named: dict[RowId, Reference] = {}
    for edit in change.edits:
        reference = own.get(edit.column)
        if reference is not None:
            for cell in (edit.old, edit.new):
                texts = cell if isinstance(cell, tuple) else (cell,)
                named.update((reference.row(text), reference) for text in texts if isinstance(text, str))
    return named


def add_called(change: Change, named: Mapping[RowId, Reference], rows: Mapping[RowId, ReadBack] | None) -> Change:
    """Add to a change what the objects are called that its values name; one that is not there as the value says."""
    if not named:
        return change
    called: dict[RowId, str] = {}
    for row, reference in named.items():
        back = row_back_of(row, rows)
        if not isinstance(back, Unreadable):
            called[row] = spell_as_row(row, reference.table, back).key
    return replace(change, called=called)


def row_back_of(row: RowId, rows: Mapping[RowId, ReadBack] | None) -> ReadBack | None:
    """Look up the read-back of an object; None where nothing was found, or asked."""
    if rows is None:
        return NOBODY_READS
    return rows.get(row)


def beside_of(row_back: ReadBack | None, columns: frozenset[str]) -> Row | None:
    """Collect the known values of these attributes: none where the object is gone, None if unreadable."""
    row: Row = {}
    if isinstance(row_back, Unreadable):
        row = row_back.row
    elif row_back is not None:
        row = row_back
    known = {name: row[name] for name in sorted(columns) if name in row}
    if isinstance(row_back, Unreadable) and not known:
        return None
    return known


def _beside(
    decision: Decision,
    wanted: Sequence[tuple[Change, frozenset[str]]],
    rows_back: Mapping[RowId, ReadBack],
    waiting: Mapping[RowId, Unreadable],
) -> Decision:
    """Add to a decision the values read beside its changes."""
    changes: list[Change] = []
    for change, columns in wanted:
        if columns:
            beside = beside_of(rows_back.get(change.row), columns)
            changes.append(replace(change, beside=beside))
        else:
            changes.append(change)
    return _without_waiting(Decision(changes, decision.outcomes), waiting)


def add_looked_up(
    change: Change, places: Mapping[str, tuple[RowId, str]], rows: Mapping[RowId, ReadBack] | None
) -> Change:
    """Add to a change the values found in rows of other tables: NULL where there is no such row."""
    if not places:
        return change
    looked = dict(change.looked or {})
    for name, (row, column) in places.items():
        values = row_back_of(row, rows)
        if isinstance(values, Unreadable):
            values = values.row
        looked[name] = None
        if values is not None:
            looked[name] = values.get(column, ABSENT)
    return replace(change, looked=looked)


def _without_waiting(decision: Decision, waiting: Mapping[RowId, Unreadable]) -> Decision:
    """Drop the changes of objects to be read later from a decision."""
    if not waiting:
        return decision
    others = dict(decision.outcomes.others)
    for change in decision.changes:
        why = waiting.get(change.row)
        if why is not None:
            for position in change.positions:
                others[position] = Outcome(
                    position=position, status=STATUS[why.reason], reason=why.reason, note=why.note
                )
    changes = [change for change in decision.changes if change.row not in waiting]
    return Decision(changes, Outcomes(decision.outcomes.positions, others))
