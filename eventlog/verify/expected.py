"""What an output is to hold of each source table: its rows as they are, or what the output's policy
makes of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, product
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.compare.columns import columns_of, selection_of
from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Compared, ComparedSide, Key
from eventlog.compare.streamed import StreamedSide
from eventlog.compare.tables import TableSide, log_text
from eventlog.compare.texts import read_cell, write_several
from eventlog.core.errors import DataError, UsageError
from eventlog.core.model import (
    ABSENT,
    TABLE_FAULTS,
    Cell,
    Change,
    Edit,
    Op,
    ReadBack,
    Reason,
    Refusal,
    RowId,
    Unreadable,
)
from eventlog.core.references import LooseReferences, Reference
from eventlog.core.rules.round import add_called, list_named
from eventlog.core.schema import Attribute, Column, Table
from eventlog.core.seams import RowReader
from eventlog.core.sql_types import Category
from eventlog.core.tablekey import format_parts, parse
from eventlog.policies.bound import Policy
from eventlog.policies.columns import Places
from eventlog.policies.shape import Shape
from eventlog.qlik.readings import reading_of
from eventlog.qlik.values import NEVER, RowBuilder
from eventlog.sources.compare.queries import QuerySide

BATCH_ROWS: Final = 500
"""Rows that go through a policy together: what it looks up in other tables is read for all of them
at once.
"""

_scale = re.compile(r"\(\s*\d+\s*,\s*(\d+)\s*\)").search


class VerifiedTable(Struct, frozen=True, kw_only=True):
    """A captured table, and how the log knows it: under which name, and the condition of its
    triggers.

    With a `query` its rows are what that gives.
    """

    table: Table
    called: str
    when: tuple[str, ...] = ()
    query: str | None = None


class Expected(Struct, frozen=True, kw_only=True):
    """What an output is to hold of a table: columns under the names that it has there, and the
    rows.

    `table` is what the table looks like to the output, and `keyed` gives the log's key for one of
    its rows, in each way in which it may be written.
    """

    source: VerifiedTable
    table: Table
    compared: Compared
    side: ComparedSide
    keyed: Callable[[Key], tuple[str, ...]]


def plain(
    engine: Engine,
    source: VerifiedTable,
    there: frozenset[str] | None = None,
    padded: frozenset[str] = frozenset(),
) -> Expected:
    """Expect the rows of a table as they are; the database hashes those that are no query's."""
    table = source.table
    selection, compared = selection_of(table, there, padded, source.when, source.query)
    rows = TableSide(engine, selection, compared)
    side: ComparedSide = rows
    if source.query is not None:
        side = QuerySide(rows, table.name, compared)
    keyed = KeyWriter(table)
    return Expected(source=source, table=table, compared=compared, side=side, keyed=keyed)


class KeyWriter:
    """Writes the key of a row as the log has it, in each way in which a database may have written
    it; the usual one first.
    """

    def __init__(self, table: Table) -> None:
        self._columns = table.key_columns

    def __call__(self, key: Key) -> tuple[str, ...]:
        parts = zip(self._columns, key, strict=True)
        spellings = [_spellings(column, text or "") for column, text in parts]
        names = [column.name for column in self._columns]
        # Every part in each of its spellings, the usual ones of all parts first.
        keys = [format_parts(zip(names, texts, strict=True)) for texts in product(*spellings)]
        return tuple(dict.fromkeys(keys))


def _spellings(column: Column, text: str) -> list[str]:
    """List the forms of a value in a key: a time with nine digits of a second, a number with all of its
    scale.
    """
    if column.category is Category.TIMESTAMP:
        return [log_text("timestamp", text), text]
    if column.category is Category.DATE:
        # Oracle's DATE has a time of day.
        return [text, log_text("timestamp", text)]
    if column.category is not Category.NUMBER:
        return [text]
    scale = _scale(column.type)
    if scale is None:
        return [text]
    whole, _, fraction = text.partition(".")
    with_scale = f"{whole}.{fraction.ljust(int(scale[1]), '0')}"
    return list(dict.fromkeys([with_scale, text]))


class SpelledReferences(Struct, frozen=True):
    """References whose values an output has as the rows are called that they name: by the table, and by the attribute
    that the output gets.
    """

    named: LooseReferences = {}
    sent: Mapping[str, Reference] = {}


class ObjectSide(StreamedSide):
    """The objects of a table, with their values in child tables, as a policy changes them where there is one."""

    def __init__(
        self,
        table: TableSide,
        source: VerifiedTable,
        changed: Table,
        policy: Policy | None,
        reader: RowReader,
        there: frozenset[str],
        several: Sequence[Attribute],
        padded: frozenset[str],
        references: SpelledReferences,
    ) -> None:
        self._references = references
        self._values, columns, compared = columns_of(changed, there, padded)
        super().__init__(_with_several(compared, several), self._transform_rows)
        self._table = table
        self._source = source.table
        self._policy = policy
        self._reader = reader
        self._several = several
        # A policy may compute any of them from any other one.
        of_children = (name for name, attribute in source.table.attributes.items() if attribute.child is not None)
        self._of_children = frozenset(of_children if several else ())
        names = list(self._values.names)
        self._order = [names.index(column.name) for column in columns]
        readers = []
        for column in self._values.columns:
            # A value that is none of its type stays as it is, and differs then.
            read = partial(read_cell, reading_of(column.type))
            readers.append((NEVER, read))
        self._builder = RowBuilder(self._values, readers, None)

    def source_key(self, key: Key) -> str | None:
        """Find the source's key for a published one, where the policy made another one of it."""
        return self.fill().find_note(key)

    def _transform_rows(self, scratch: ScratchSide) -> Iterator[tuple[Any, ...]]:
        width = len(self._compared.key)
        rows = self._table.every()
        while batch := [self._change(row) for row in islice(rows, BATCH_ROWS)]:
            for change in self._add_called(self._look_up(self._add_children(batch))):
                transformed = change if self._policy is None else self._policy.apply(change)
                # What the policy leaves out, or cannot make, no output has.
                if isinstance(transformed, Refusal):
                    continue
                if transformed.route:
                    problem = f"The policy sends rows of {self._source.whole} to several places."
                    raise UsageError(problem, hint="verify compares one place; leave that table out.")
                transformed = self._spell(transformed)
                row = self._builder.row(transformed, new=True)[0]
                cells = (*(row[index] for index in self._order), *self._write_several(transformed))
                if transformed.row.key != change.row.key:
                    scratch.note(cells[:width], change.row.key)
                yield cells

    def _change(self, row: Sequence[Any]) -> Change:
        """Make a change of a row as the rules do."""
        source = self._source
        width = len(source.key)
        texts = tuple([None if cell is None else str(cell) for cell in row[:width]])
        usual_key = KeyWriter(source)(texts)[0]
        names = [
            name for name, attribute in source.attributes.items() if attribute.child is None and not attribute.multiple
        ]
        cells = zip(names, row[width:], strict=True)
        return Change(
            row=RowId(source.schema, source.name, usual_key),
            op=Op.ADD,
            edits=tuple([Edit(column=name, new=cell) for name, cell in cells]),
            # No row of the log is behind it, but a change has a position.
            positions=((0,),),
        )

    def _add_children(self, changes: list[Change]) -> list[Change]:
        """Add the values that the objects have in child tables."""
        if not self._of_children:
            return changes
        rows = self._rows({change.row: self._of_children for change in changes})
        read = []
        for change in changes:
            values = _require(rows.get(change.row)) or {}
            edits = tuple([Edit(column=name, new=values.get(name, ())) for name in sorted(self._of_children)])
            read.append(replace(change, edits=(*change.edits, *edits)))
        return read

    def _write_several(self, change: Change) -> Iterator[str | None]:
        """Write the values of each attribute that has several."""
        values = {edit.column: edit.new for edit in change.edits}
        for attribute in self._several:
            cell = values.get(attribute.name)
            yield write_several(attribute.column.type, cell if isinstance(cell, tuple) else ())

    def _look_up(self, changes: list[Change]) -> list[Change]:
        """Add the values the policy looks up in other tables."""
        # Again and again: what a step looks up may say where the next one looks.
        while self._policy is not None and self._policy.is_looking:
            places = [self._policy.looks(change) for change in changes]
            if not any(places):
                break
            asked: dict[RowId, frozenset[str]] = {}
            for row, column in chain.from_iterable(wanted.values() for wanted in places):
                asked[row] = asked.get(row, frozenset()) | {column}
            rows = self._rows(asked)
            pairs = zip(changes, places, strict=True)
            changes = [_with_looked(change, wanted, rows) for change, wanted in pairs]
        return changes

    def _add_called(self, changes: list[Change]) -> list[Change]:
        """Add how the rows are called that values name, where these may be spelled in several ways."""
        if not self._references.sent:
            return changes
        named = [list_named(change, self._references.named) for change in changes]
        asked = {row: reference.table.loose_key for of_change in named for row, reference in of_change.items()}
        rows = self._rows(asked) if asked else {}
        return [add_called(change, of_change, rows) for change, of_change in zip(changes, named, strict=True)]

    def _spell(self, change: Change) -> Change:
        """Spell references as the output has them: as the rows that they name."""
        called = change.called
        if not called:
            return change

        def spell(reference: Reference, cell: Any) -> Any:
            if isinstance(cell, tuple):
                return tuple(str(spell(reference, one)) for one in cell)
            if not isinstance(cell, str) or (key := called.get(reference.row(cell))) is None:
                return cell
            return parse(key).parts[0][1]

        sent = self._references.sent
        edits = [
            replace(edit, new=spell(sent[edit.column], edit.new)) if edit.column in sent else edit
            for edit in change.edits
        ]
        return replace(change, edits=tuple(edits))

    def _rows(self, asked: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
        """Read the rows; those left out for lack of space are read afterwards."""
        rows: dict[RowId, ReadBack] = {}
        while asked:
            rows.update(self._reader.rows(asked))
            late = [row for row in asked if _has_no_room(rows.get(row))]
            # The first of them always has room.
            asked = {row: asked[row] for row in late} if len(late) < len(asked) else {}
        return rows


def _has_no_room(values: ReadBack | None) -> bool:
    return isinstance(values, Unreadable) and values.reason is Reason.NO_ROOM


def _with_looked(change: Change, places: Places, rows: Mapping[RowId, ReadBack]) -> Change:
    looked = dict(change.looked or {})
    for name, (row, column) in places.items():
        values = _require(rows.get(row))
        looked[name] = None if values is None else values.get(column, ABSENT)
    return replace(change, looked=looked)


def _require(values: ReadBack | None) -> Mapping[str, Cell] | None:
    """Return what was read of a row; raise DataError where nobody could."""
    if not isinstance(values, Unreadable):
        return values
    # As if the row were not there, all of it would differ.
    if values.reason in TABLE_FAULTS or values.reason is Reason.NO_ROOM:
        raise DataError(values.note)
    # Some of its columns could be read all the same.
    return values.row


def _with_several(compared: Compared, several: Sequence[Attribute]) -> Compared:
    """Compare the values of attributes that have several, too, each as one text."""
    names = (*compared.names, *(attribute.name for attribute in several))
    return replace(compared, names=names, types=(*compared.types, *("text" for _ in several)))


def shape_of(source: VerifiedTable, policy: Policy) -> Shape | None:
    """Describe a table behind a policy; None if the policy leaves it out."""
    name = source.table.schema, source.table.name
    for shape in policy.shapes:
        if (shape.source.schema, shape.source.name) == name:
            return None if shape.left_out else shape
    return None


def read_objects(
    engine: Engine,
    source: VerifiedTable,
    changed: Table,
    policy: Policy | None,
    reader: RowReader,
    there: frozenset[str],
    several: Sequence[Attribute] = (),
    padded: frozenset[str] = frozenset(),
    references: SpelledReferences | None = None,
) -> Expected:
    """Expect a table's objects as a policy, if there is one, changes them: it makes the table `changed`."""
    table = TableSide(engine, *selection_of(source.table, when=source.when, query=source.query))
    side = ObjectSide(table, source, changed, policy, reader, there, several, padded, references or SpelledReferences())
    usual = KeyWriter(source.table)

    def map_key(key: Key) -> tuple[str, ...]:
        # The output has another key of it where the policy made one.
        known = side.source_key(key)
        if known is None:
            return usual(key)
        return (known,)

    return Expected(source=source, table=changed, compared=side.compared, side=side, keyed=map_key)
