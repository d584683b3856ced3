"""Rows of change tables on their way into one document, numbered as they come."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, Final

from eventlog.core.errors import DataError
from eventlog.core.model import Change, Position, Refusal
from eventlog.qlik.change_seq import Sequencer
from eventlog.qlik.change_tables.columnwise import Laid
from eventlog.qlik.change_tables.partitions import Partition
from eventlog.qlik.change_tables.rows import ChangeRow, Growing, RowBlock, RowsDocument
from eventlog.qlik.change_tables.tables import ChangeTable, ChangeTables, finished, refusal_note

WORTHWHILE: Final = 8
"""Fewer changes than that are as quick one by one."""
Piece = tuple[ChangeTable, Partition | None, Sequence[Sequence[Any]], list[Any]]
"""Rows of one block, column by column, and the positions behind each of them."""
_row, _positions = attrgetter("row"), attrgetter("positions")


class Gathered:
    """Rows on their way into one document."""

    def __init__(self, tables: ChangeTables) -> None:
        self.count = 0
        self._tables = tables
        self._partitions = tables.partitions
        self._table: ChangeTable | None = None
        self._partition: Partition | None = None
        self._growing: Growing
        self._covers: dict[str, tuple[Position, ...]] = {}
        self._blocks: dict[tuple[ChangeTable, Partition | None], Growing] = {}

    def add(
        self, table: ChangeTable, rows: tuple[ChangeRow, ...], change_seq: str, positions: tuple[Position, ...]
    ) -> int:
        """Takes the rows of one change, and says how many there are now."""
        partition = None if self._partitions is None else self._partitions.of(change_seq)
        if table is not self._table or partition is not self._partition:
            self._table, self._partition = table, partition
            self._growing = self._block(table, partition)
        plain = partition is None and table.sequenced
        append, stand = self._growing.append, self._growing.stand
        for row in rows:
            append((change_seq, *row) if plain else finished(row, change_seq, table, partition))
            stand(positions)
        self.count += len(rows)
        self._covers[change_seq] = positions
        return self.count

    def take_each(self, changes: Iterable[Change], sequencer: Sequencer) -> Iterator[Refusal]:
        """Takes the rows of changes one by one, and says which changes cannot have any."""
        of, add = self._tables.of, self.add
        for change in changes:
            try:
                table = of(change)
                rows = table.rows(change) if table is not None else ()
            except DataError as error:
                yield Refusal(positions=change.positions, note=refusal_note(change, error))
                continue
            if rows and table is not None:
                add(table, rows, sequencer.next(change), change.positions)

    def take(self, changes: Sequence[Change], sequencer: Sequencer) -> bool:
        """Takes the rows of all changes column by column, or nothing where one of the changes does not allow that."""
        if len(changes) < WORTHWHILE:
            return False
        found: list[tuple[ChangeTable, Sequence[int], Laid]] = []
        for places in by_table(changes):
            try:
                table = self._tables.of(changes[places[0]])
            except DataError:
                return False
            if table is None:
                continue
            laid = table.laid(changes if len(places) == len(changes) else [changes[place] for place in places])
            if laid is None:
                return False
            all_there = len(places) == len(laid.places)
            found.append((table, places if all_there else [places[place] for place in laid.places], laid))
        for table, partition, cells, positions in self._numbered(changes, found, sequencer):
            self._block(table, partition).extend(cells, positions)
            self.count += len(positions)
        return True

    def document(self) -> RowsDocument:
        """What was gathered; changes are called by their change_seq there."""
        last = next(reversed(self._covers))
        return RowsDocument(
            id=last, body=b"", covers=self._covers, blocks=tuple([one.block() for one in self._blocks.values()])
        )

    def _numbered(
        self, changes: Sequence[Change], found: Sequence[tuple[ChangeTable, Sequence[int], Laid]], sequencer: Sequencer
    ) -> list[Piece]:
        """Gives the changes of all tables their change_seq, in the order in which they came."""
        order = sorted(chain.from_iterable([places for _, places, _ in found]))
        numbered = [changes[place] for place in order]
        sequences, positions = sequencer.many(numbered), list(map(_positions, numbered))
        self._covers.update(zip(sequences, positions, strict=True))
        pieces: list[tuple[str, Piece]] = []
        for table, places, laid in found:
            told, behind = sequences, positions
            if len(places) < len(order):
                own = [bisect_left(order, place) for place in places]
                told, behind = [sequences[place] for place in own], [positions[place] for place in own]
            pieces += self._pieces(table, laid, laid.spread(told), laid.spread(behind))
        pieces.sort(key=itemgetter(0))
        return [piece for _, piece in pieces]

    def _pieces(
        self, table: ChangeTable, laid: Laid, sequences: list[str], positions: list[Any]
    ) -> Iterator[tuple[str, Piece]]:
        """The rows of each partition, after the first change_seq among them."""
        cells: list[Sequence[Any]] = [sequences, *laid.cells] if table.sequenced else [*laid.cells]
        if self._partitions is None:
            if sequences:
                yield sequences[0], (table, None, cells, positions)
            return
        start = 0
        for partition, rows in groupby(sequences, self._partitions.of):
            end = start + len(list(rows))
            part = [column[start:end] for column in cells]
            part.insert(table.offset - 1, [partition.name] * (end - start))
            yield sequences[start], (table, partition, part, positions[start:end])
            start = end

    def _block(self, table: ChangeTable, partition: Partition | None) -> Growing:
        found = self._blocks.get((table, partition))
        if found is None:
            found = self._blocks[table, partition] = Growing(
                RowBlock(
                    table=table.table,
                    target=table.target,
                    columns=table.columns,
                    cells=tuple([[] for _ in table.columns]),
                    positions=[],
                    partition=partition,
                )
            )
        return found


def by_table(changes: Sequence[Change]) -> list[Sequence[int]]:
    """The places of the changes of each table."""
    rows = list(map(_row, changes))
    if len({row.table for row in rows}) == 1 == len({row.schema for row in rows}):
        return [range(len(changes))]
    found: dict[tuple[str | None, str], list[int]] = {}
    for place, row in enumerate(rows):
        found.setdefault((row.schema, row.table), []).append(place)
    return [*found.values()]
