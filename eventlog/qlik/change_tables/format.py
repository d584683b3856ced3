"""The change-tables format: changes in, blocks of finished rows out, numbered as they come by
change_seq across all tables.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, Final

from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.limits import ColumnLimits
from eventlog.core.model import Change, Position, Refusal
from eventlog.core.schema import Catalog
from eventlog.core.seams import FormerNames, OnValue, Writer
from eventlog.qlik.change_seq import Sequencer, Stamps
from eventlog.qlik.change_tables.columnwise import LaidRows
from eventlog.qlik.change_tables.partitions import Partition, Partitions
from eventlog.qlik.change_tables.rows import ChangeRow, Growing, RowBlock, RowsDocument
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.change_tables.tables import ChangeTable, ChangeTables, finish_row

DOCUMENT_ROWS: Final = 50_000
"""Each document is made durable by itself, and the disk takes as long for a small one."""
BLOCK_CHANGES: Final = 4_096
"""So many are looked at together; more would be no faster, and take more memory."""


class ChangeTableFormat(Struct, frozen=True, kw_only=True):
    """Writes the rows of change tables."""

    settings: ChangeTableSettings = ChangeTableSettings()
    rows_of_a_document: int = DOCUMENT_ROWS
    loads: bool = False
    """Rows of a full load go into tables of their own."""
    limits: ColumnLimits | None = None
    """What the columns of the target hold; None where they hold all."""

    who: bool = False
    """Header columns say who is behind a change."""

    suffix: ClassVar[str] = ".parquet"
    """How files with its rows end, where nobody chose another form."""
    former_names: ClassVar[FormerNames] = FormerNames.OWN
    counts: ClassVar[bool] = False
    """The rows of a transaction are not counted."""

    @property
    def on_value(self) -> OnValue:
        """Return what becomes of a value that cannot be written."""
        return self.settings.on_value

    def writer(self, catalog: Catalog | None = None) -> Writer:
        """Writes the rows of changes, of many at once where they are alike."""
        tables = ChangeTables(self.settings, catalog, loads=self.loads, limits=self.limits, who=self.who)
        size = self.rows_of_a_document
        stamp_of = Stamps()

        def write(changes: Iterable[Change]) -> Iterator[WrittenRows | WrittenColumns | Refusal]:
            source, count = iter(changes), 0
            # A change has two rows at most, so that half as many changes surely fit, but for the
            # last; and no more than stay small in memory.
            while run := list(islice(source, min((size - count + 1) // 2, BLOCK_CHANGES))):
                columns = lay_out(tables, run)
                if columns is not None:
                    count += columns.count
                    yield columns
                else:
                    written, rows = rows_of(tables, run, stamp_of)
                    count += rows
                    yield from written
                if count >= size:
                    count = 0

        return write

    def bind(
        self, written: Iterable[WrittenRows | WrittenColumns], after: str = "", whole: bool = False
    ) -> Iterator[RowsDocument]:
        """Join rows to documents of many; a document's id is the change_seq of its last change."""
        partitions, sequencer = ChangeTables(self.settings, None).partitions, Sequencer(after)
        gathered = Gathered(partitions)
        for item in written:
            if isinstance(item, WrittenRows):
                gathered.take_rows(item, sequencer.step(item.stamp))
            else:
                gathered.take_columns(item, sequencer)
            if gathered.count >= self.rows_of_a_document and not whole:
                yield gathered.document()
                gathered = Gathered(partitions)
        if gathered.count:
            yield gathered.document()

    def heartbeat(self) -> None:
        """Return None: there is none."""


WORTHWHILE_CHANGES: Final = 8
"""Fewer changes than that are as quick one by one."""
Piece = tuple[ChangeTable, Partition | None, Sequence[Sequence[Any]], list[Any]]
"""Rows of one block, column by column, and the positions behind each of them."""
_row, _positions, _routed = attrgetter("row"), attrgetter("positions"), attrgetter("route")


class WrittenRows(Struct, frozen=True, gc=False):
    """The rows of one change, without change_seq; `stamp` are the 16 digits of its time."""

    table: ChangeTable
    positions: tuple[Position, ...]
    stamp: str
    rows: tuple[ChangeRow, ...]


class WrittenColumns(Struct, frozen=True, gc=False):
    """The rows of many changes column by column: each table with the indexes of its changes among
    all of them.
    """

    changes: Sequence[Change]
    tables: Sequence[tuple[ChangeTable, Sequence[int], LaidRows]]
    count: int


def rows_of(
    tables: ChangeTables, changes: Iterable[Change], stamp_of: Stamps
) -> tuple[list[WrittenRows | Refusal], int]:
    """Make the rows of changes one by one, or a refusal.

    Return also the number of rows.
    """
    written: list[WrittenRows | Refusal] = []
    count = 0
    for change in changes:
        table = None
        try:
            table = tables.of(change)
            rows = table.rows(change) if table is not None else ()
        except DataError as error:
            # A refusal stands before the rows that the change has without the value.
            refusal, rows = tables.otherwise(change, error, table)
            written.append(refusal)
        if rows and table is not None:
            written.append(WrittenRows(table, change.positions, stamp_of(change), rows))
            count += len(rows)
    return written, count


def lay_out(tables: ChangeTables, changes: Sequence[Change]) -> WrittenColumns | None:
    """Lay out the rows of all changes column by column; None where one of them does not allow that."""
    if len(changes) < WORTHWHILE_CHANGES or tables.apart(changes):
        return None
    tables_with_rows: list[tuple[ChangeTable, Sequence[int], LaidRows]] = []
    for indexes in by_table(changes):
        try:
            table = tables.of(changes[indexes[0]])
        except DataError:
            # The long way refuses these changes one by one, and writes the others.
            return None
        if table is None:
            continue
        own = changes
        if len(indexes) < len(changes):
            # Only then, for a list of all of them would be made for nothing.
            own = [changes[index] for index in indexes]
        rows = table.lay_out(own)
        if rows is None:
            return None
        with_rows = indexes
        if len(rows.indexes) < len(indexes):
            with_rows = [indexes[index] for index in rows.indexes]
        tables_with_rows.append((table, with_rows, rows))
    count = sum(sum(rows.shown) for _, _, rows in tables_with_rows)
    return WrittenColumns(changes, tables_with_rows, count)


class Gathered:
    """Rows on their way into one document."""

    def __init__(self, partitions: Partitions | None) -> None:
        self.count = 0
        self._partitions = partitions
        self._table: ChangeTable | None = None
        self._partition: Partition | None = None
        # Set together with `_table`, which no row's table is before the first row.
        self._growing: Growing
        self._covers: dict[str, tuple[Position, ...]] = {}
        self._blocks: dict[tuple[ChangeTable, Partition | None], Growing] = {}

    def take_rows(self, written: WrittenRows, change_seq: str) -> None:
        table, positions, rows = written.table, written.positions, written.rows
        partition = None
        if self._partitions is not None and not table.load:
            partition = self._partitions.of(change_seq)
        # Neighbours mostly go into the same block, so the last one is asked for by nothing but its
        # table.
        if table is not self._table or partition is not self._partition:
            self._table, self._partition = table, partition
            self._growing = self._block(table, partition)
        plain = partition is None and table.sequenced
        append, stand = self._growing.append, self._growing.stand
        for row in rows:
            append((change_seq, *row) if plain else finish_row(row, change_seq, table, partition))
            stand(positions)
        self.count += len(rows)
        self._covers[change_seq] = positions

    def take_columns(self, written: WrittenColumns, sequencer: Sequencer) -> None:
        """Takes the rows of many changes, and numbers them."""
        for table, partition, cells, positions in self._number(written.changes, written.tables, sequencer):
            self._block(table, partition).extend(cells, positions)
            self.count += len(positions)

    def document(self) -> RowsDocument:
        """Make the document; changes are called by their change_seq there."""
        last = next(reversed(self._covers))
        blocks = tuple([growing.block() for growing in self._blocks.values()])
        return RowsDocument(id=last, body=b"", covers=self._covers, blocks=blocks)

    def _number(
        self,
        changes: Sequence[Change],
        tables: Sequence[tuple[ChangeTable, Sequence[int], LaidRows]],
        sequencer: Sequencer,
    ) -> list[Piece]:
        """Gives the changes of all tables their change_seq, in the order in which they came."""
        order = sorted(chain.from_iterable([indexes for _, indexes, _ in tables]))
        numbered = [changes[index] for index in order]
        sequences, positions = sequencer.many(numbered), list(map(_positions, numbered))
        self._covers.update(zip(sequences, positions, strict=True))
        pieces: list[tuple[str, Piece]] = []
        for table, indexes, laid in tables:
            own_sequences, own_positions = sequences, positions
            if len(indexes) < len(order):
                # Both are sorted, so that an index is found by halving and needs no dictionary.
                own = [bisect_left(order, index) for index in indexes]
                own_sequences = [sequences[index] for index in own]
                own_positions = [positions[index] for index in own]
            pieces += self._pieces(table, laid, laid.spread(own_sequences), laid.spread(own_positions))
        # Blocks come in the order of their first rows, as if every row had been taken in its turn.
        pieces.sort(key=itemgetter(0))
        return [piece for _, piece in pieces]

    def _pieces(
        self, table: ChangeTable, laid: LaidRows, sequences: list[str], positions: list[Any]
    ) -> Iterator[tuple[str, Piece]]:
        """Yield the rows of each partition, after the first change_seq among them."""
        cells: list[Sequence[Any]] = [*laid.cells]
        if table.sequenced:
            cells.insert(0, sequences)
        if self._partitions is None:
            if sequences:
                yield sequences[0], (table, None, cells, positions)
            return
        start = 0
        for partition, rows in groupby(sequences, self._partitions.of):
            end = start + len(list(rows))
            part = [column[start:end] for column in cells]
            # partition_name is the last of the header columns.
            part.insert(table.offset - 1, [partition.name] * (end - start))
            yield sequences[start], (table, partition, part, positions[start:end])
            start = end

    def _block(self, table: ChangeTable, partition: Partition | None) -> Growing:
        growing = self._blocks.get((table, partition))
        if growing is None:
            block = RowBlock(
                table=table.table,
                target=table.target,
                columns=table.columns,
                cells=tuple([[] for _ in table.columns]),
                positions=[],
                partition=partition,
                load=table.load,
                route=table.route,
            )
            growing = self._blocks[table, partition] = Growing(block)
        return growing


def by_table(changes: Sequence[Change]) -> list[Sequence[int]]:
    """Group the indexes of changes by table, or by the table that they are sent to."""
    rows = list(map(_row, changes))
    # Chained on purpose: one name, and one schema.
    of_one_table = len({row.table for row in rows}) == 1 == len({row.schema for row in rows})
    if of_one_table and not any(map(_routed, changes)):
        return [range(len(changes))]
    indexes: dict[tuple[str | None, str, str], list[int]] = {}
    for index, change in enumerate(changes):
        indexes.setdefault((change.row.schema, change.row.table, change.route), []).append(index)
    return [*indexes.values()]
