"""The change-tables format: changes in, blocks of finished rows out, numbered by change_seq across all tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from msgspec import Struct

from eventlog.core.model import Change, Refusal
from eventlog.core.schema import Catalog
from eventlog.core.seams import Writer
from eventlog.qlik.change_seq import Sequencer, Stamps
from eventlog.qlik.change_tables.gathering import Gathered, WrittenColumns, WrittenRows, laid, rows_of
from eventlog.qlik.change_tables.rows import RowsDocument
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.change_tables.tables import ChangeTable, ChangeTables, refusal_note

__all__ = ["DOCUMENT_ROWS", "ChangeTable", "ChangeTableFormat", "ChangeTables", "WrittenRows", "refusal_note"]

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

    @property
    def suffix(self) -> str:
        """How files with its rows end, where nobody chose another form."""
        return ".parquet"

    @property
    def counts(self) -> bool:
        """The rows of a transaction are not counted."""
        return False

    def writer(self, catalog: Catalog | None = None) -> Writer:
        """Writes the rows of changes, of many at once where they are alike."""
        tables, size = ChangeTables(self.settings, catalog, loads=self.loads), self.rows_of_a_document
        stamp_of = Stamps()

        def write(changes: Iterable[Change]) -> Iterator[WrittenRows | WrittenColumns | Refusal]:
            source, count = iter(changes), 0
            while run := list(islice(source, _surely(size - count))):
                columns = laid(tables, run)
                if columns is not None:
                    count += columns.count
                    yield columns
                else:
                    found, rows = rows_of(tables, run, stamp_of)
                    count += rows
                    yield from found
                count = 0 if count >= size else count

        return write

    def bind(
        self, written: Iterable[WrittenRows | WrittenColumns], after: str = "", whole: bool = False
    ) -> Iterator[RowsDocument]:
        """Documents of many rows each; the id of one is the change_seq of its last change."""
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
        """There is none."""


def _surely(rows: int) -> int:
    """How many changes cannot have more rows than that, but for the last; no more than stay small in memory."""
    return min((rows + 1) // 2, BLOCK_CHANGES)
