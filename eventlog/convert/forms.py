"""Forms: what a format wrote of changes, on its way to part files or to documents.

Each change is written by the format's own `writer`, wherever that may be, and travels as a row of
Arrow whose first column is its position. In some forms each change is numbered: `stamp`, the 16
digits of its time, is then another column, and numbers are given out when parts are written, from
what is known of all changes before: how many there are, and the latest of their times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import pyarrow as pa
from msgspec import Struct

from eventlog.convert.settings import (
    ChangeRows,
    Conversion,
    MessageFiles,
    SentMessages,
    SentTables,
    TableFiles,
)
from eventlog.core.model import Change, Document, Outcome, Position, Refusal
from eventlog.core.rules.definitions import DefinitionSpan
from eventlog.core.rules.meaning import end_event
from eventlog.core.schema import Catalog, Table
from eventlog.core.seams import FormerNames, Writer
from eventlog.sql.names import TRANSACTION

if TYPE_CHECKING:
    from eventlog.policies.bound import Policy
    from eventlog.publisher.whole_transactions import Ends

STAMP: Final = "stamp"
ROUTE: Final = "route"
"""Where a change goes, if not where all go."""
COVERS: Final = "covers"
"""Where the outcomes stand of a change's events, in forms whose changes are sent: who takes them
may yet refuse some.
"""


COUNTED: Final = "counted"
TOGETHER: Final = "together"
ENDS: Final = pa.schema([(name, pa.int64()) for name in (TRANSACTION, "position", COUNTED, TOGETHER)])
"""How far some changes of a transaction reach, how many are counted, and how many were written."""

PART: Final = "part"
"""The part of a change, where a part has whole transactions."""


TableNumbers = Mapping[tuple[str | None, str], int]
"""By which numbers what was written names its tables, by their schemas and names."""


class Parts(Struct, frozen=True, kw_only=True):
    """Which parts are written: change number `first` of all (from 0) begins part number `first` ÷
    `part_events`. Where transactions are whole, the part before may have some more, and `before` is
    how many changes are in parts before.

    `stamp` is the latest time of all changes before it, in forms that number them; they go on from
    `start`.
    """

    first: int
    before: int
    part_events: int
    stamp: str = ""
    start: str = ""

    @property
    def after(self) -> str:
        """Return the change_seq of the change before the first one."""
        from eventlog.qlik.change_seq import ChangeSeq

        return ChangeSeq.parse(self.start).later(self.before, self.stamp).text


class Form(Protocol):
    """How changes are written."""

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of rendered rows; the first is `position`."""

    def rendering(self, catalog: Catalog | None, numbers: TableNumbers | None = None) -> Rendering:
        """Make the renderer of single changes; tables have these `numbers`, or count from 0."""


@runtime_checkable
class FileForm(Form, Protocol):
    """How changes are written to files."""

    def write(self, folder: Path, rendered: Iterable[pa.RecordBatch], parts: Parts) -> int:
        """Write parts of changes, given in the order of their positions; return how many."""


@runtime_checkable
class SentForm(Form, Protocol):
    """How changes are sent to where something is already."""

    def documents(self, rendered: Iterable[pa.RecordBatch], after: str) -> Iterator[Document]:
        """Make documents of changes in order of position; continue numbers `after` the last."""


class Rendering:
    """Has a format write changes, and keeps each as a row: its place, `cells` of what was written,
    and what it covers.

    `changes` are those of the rows that `rendered` gives out next. Changes of a stream, whose
    transactions come one after the other, are counted by `in_turn`, where the format counts them.
    """

    def __init__(
        self,
        schema: pa.Schema,
        write: Writer,
        cells: Callable[[Any], tuple[object, ...]],
        *,
        counts: bool = False,
    ) -> None:
        self.refused: list[Refusal] = []
        self.changes: list[Change] = []
        self.in_turn: InTurn | None = None
        self.counts = counts
        self._schema = schema
        self._write = write
        self._cells = cells
        self._apply: Callable[[Change], Change | Refusal] | None = None
        self._then: tuple[DefinitionSpan, FormerNames] | None = None
        self._covering = COVERS in schema.names
        self._ends: Ends | None = None
        self._note_end: Callable[[Ends, Change], None] = lambda _ends, _change: None
        self._counted, self._together = Counter[int](), Counter[int]()
        self._rows: list[tuple[object, ...]] = []

    def behind(self, policy: Policy | None) -> Rendering:
        """Apply a policy to changes from now on; return this rendering."""
        self._apply = policy.apply if policy else None
        return self

    def of_then(self, span: DefinitionSpan, names: FormerNames) -> Rendering:
        """Render changes under the tables of a former span from now on; return this rendering."""
        self._then = (span, names) if span.former else None
        return self

    def in_transactions(self) -> Rendering:
        """Add transactions to rows from now on, and collect `ended`; return this rendering."""
        from eventlog.publisher.whole_transactions import note_end

        self._ends, self._note_end = {}, note_end
        return self

    def take(self, change: Change, image_number: int | None = None) -> Refusal | None:
        """Render a change at `image_number`, else at its last event; return a refusal, if any.

        A refused value is a refusal too.
        """
        if self._ends is not None:
            # What is refused counts too, as it does for a publisher.
            self._note_end(self._ends, change)
        refusal: Refusal | None = None
        if self._then is not None:
            refused_before = len(self.refused)
            now = self._then[0].change_by_names(change, self._then[1], self.refused)
            if len(self.refused) > refused_before:
                refusal = self.refused[-1]
            if now is None:
                return refusal
            # A value of it may be refused, and the change is written all the same.
            change = now
        if self._apply is not None:
            transformed = self._apply(change)
            if isinstance(transformed, Refusal):
                self.refused.append(transformed)
                return transformed
            change = transformed
        # One by one: what is written must stay beside the change it is of.
        for item in self._write((change,)):
            if isinstance(item, Refusal):
                self.refused.append(item)
                refusal = item
                continue
            if self.in_turn is None:
                self.keep(change, self.row(item, image_number))
            else:
                self.in_turn.take(self, change, item, image_number)
        return refusal

    def row(self, item: Any, image_number: int | None) -> tuple[object, ...]:
        """Make the row of a change."""
        positions = item.positions
        if image_number is not None:
            row = (image_number, *self._cells(item))
            return (*row, [image_number]) if self._covering else row
        row = (positions[-1][0], *self._cells(item))
        if not self._covering:
            return row
        return (*row, [position[0] for position in positions])

    def keep(self, change: Change, row: tuple[object, ...]) -> None:
        """Add a row to those of the next `rendered`."""
        self._rows.append(row)
        self.changes.append(change)

    def rendered(self) -> pa.RecordBatch:
        """Return the rows rendered since the last call."""
        # Without a row `zip` says nothing of how many columns there are.
        nothing: list[Sequence[object]] = [()] * len(self._schema)
        columns: list[Sequence[object]] = list(zip(*self._rows, strict=True)) or nothing
        fields = zip(columns, self._schema, strict=True)
        arrays = [pa.array(column, field.type) for column, field in fields]
        schema = self._schema
        if self._ends is not None:
            marks: list[int | None] = []
            for change in self.changes:
                mark = None if change.transaction is None else change.transaction.mark
                marks.append(mark)
                if mark is not None:
                    self._together[mark] += 1
                    # A row of a full load is not counted.
                    if not change.refresh:
                        self._counted[mark] += 1
            arrays.append(pa.array(marks, pa.int64()))
            schema = with_transaction(schema)
        self._rows, self.changes = [], []
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def ended(self) -> pa.RecordBatch:
        """Return the ends of transactions seen since the last call (ENDS)."""
        ends = self._ends or {}
        columns = [
            list(ends),
            [position[0] for position in ends.values()],
            [self._counted[mark] for mark in ends],
            [self._together[mark] for mark in ends],
        ]
        if self._ends is not None:
            self._ends, self._counted, self._together = {}, Counter(), Counter()
        arrays = [pa.array(column, pa.int64()) for column in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=ENDS)


class InTurn:
    """Counts the changes of transactions that come one after the other: what a change is shows when
    the next one comes.
    """

    def __init__(self) -> None:
        self._held: tuple[Rendering, Change, Any, int | None] | None = None
        self._counted = 0

    def take(self, rendering: Rendering, change: Change, item: Any, image_number: int | None) -> None:
        """Hold a change, and keep the one held before here, even if another has rendered it."""
        self.end(rendering, item.transaction)
        self._held = (rendering, change, item, image_number)

    def end(self, rendering: Rendering, following: int | None = None) -> None:
        """Keep the held change here; the next, if any, is of the `following` transaction."""
        if self._held is None:
            return
        writer, change, item, image_number = self._held
        self._held = None
        if item.transaction is not None:
            last = item.transaction != following
            item = item.counted(self._counted + 1, last)
            self._counted = 0 if last else self._counted + 1
        rendering.keep(change, writer.row(item, image_number))


def with_transaction(schema: pa.Schema) -> pa.Schema:
    """Add the transaction of each change to the columns of rendered rows."""
    return schema.append(ENDS.field(TRANSACTION))


def outcomes_of(refused: Iterable[Refusal]) -> dict[Position, Outcome]:
    """Make the outcomes of the events of refused changes."""
    return {position: end_event(position, refusal) for refusal in refused for position in refusal.positions}


def table_numbers(catalog: Catalog | None, first: int = 0) -> TableNumbers:
    """Number the tables from `first`, by schema and name: rendered rows name tables so."""
    return {(table.schema, table.name): number for number, table in enumerate(catalog or (), first)}


def list_covered(positions: Iterable[int]) -> tuple[Position, ...]:
    """Make positions of numbers, as sinks answer by."""
    return tuple([(number,) for number in positions])


def in_parts(rendered: Iterable[pa.RecordBatch], part_events: int) -> Iterator[tuple[bool, pa.RecordBatch]]:
    """Cut rendered rows into runs within parts; each comes with True if it begins a part."""
    room, last = 0, -1
    for batch in rendered:
        # Where transactions are whole, each change has its part.
        if PART in batch.schema.names:
            start = 0
            for part, rows in groupby(batch.column(PART).to_pylist()):
                count = len(list(rows))
                yield part != last, batch.slice(start, count)
                start, last = start + count, part
            continue
        start = 0
        while start < len(batch):
            begins = not room
            room = room or part_events
            run = batch.slice(start, room)
            yield begins, run
            start += len(run)
            room -= len(run)


def form_of(conversion: Conversion, tables: Mapping[int, Table] | None = None) -> Form:
    """Make the form of the ordered target. `tables` are a stream's, by number."""
    target = conversion.format
    # A stream names tables as it goes; everybody else knows them before.
    streamed = tables is not None
    if tables is None:
        tables = conversion.output_tables
    if isinstance(target, TableFiles):
        from eventlog.convert.to_change_tables import TableForm

        return TableForm(target, tables, streamed=streamed)
    if isinstance(target, MessageFiles):
        from eventlog.convert.to_messages import MessageForm

        return MessageForm(target, tables, open_=conversion.counts, streamed=streamed)
    if isinstance(target, SentTables):
        from eventlog.convert.to_change_tables import TableDocuments

        return TableDocuments(target, tables)
    if isinstance(target, SentMessages):
        from eventlog.convert.to_messages import MessageDocuments

        return MessageDocuments(target, tables, open_=conversion.counts)
    if isinstance(target, ChangeRows):
        from eventlog.convert.to_changes import ChangeForm

        return ChangeForm()
    from eventlog.convert.to_xds import TextForm

    return TextForm(target)
