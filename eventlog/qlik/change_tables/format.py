"""The change-tables format: changes in, blocks of finished rows out, numbered by change_seq across all tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from msgspec import Struct

from eventlog.core.model import Change, Document, Refusal
from eventlog.core.schema import Catalog
from eventlog.qlik.change_seq import Sequencer
from eventlog.qlik.change_tables.gathering import Gathered
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.change_tables.tables import ChangeTable, ChangeTables, finished, refusal_note

__all__ = [
    "ROWS_OF_A_DOCUMENT",
    "ChangeTable",
    "ChangeTableFormat",
    "ChangeTables",
    "Gathered",
    "finished",
    "refusal_note",
]

ROWS_OF_A_DOCUMENT: Final = 50_000
"""Each document is made durable by itself, and the disk takes as long for a small one."""
CHANGES_AT_ONCE: Final = 4_096
"""So many are looked at together; more would be no faster, and take more memory."""


class ChangeTableFormat(Struct, frozen=True, kw_only=True):
    """Writes the rows of change tables."""

    settings: ChangeTableSettings = ChangeTableSettings()
    rows_of_a_document: int = ROWS_OF_A_DOCUMENT

    @property
    def suffix(self) -> str:
        """How files with its rows end, where nobody chose another form."""
        return ".parquet"

    def encode(
        self, changes: Iterable[Change], catalog: Catalog | None, after: str = ""
    ) -> Iterator[Document | Refusal]:
        """Documents of many rows each; the id of one is the change_seq of its last change."""
        tables = ChangeTables(self.settings, catalog)
        sequencer = Sequencer(after)
        gathered = Gathered(tables)
        source, size = iter(changes), self.rows_of_a_document
        while run := list(islice(source, _surely(size - gathered.count))):
            if not gathered.take(run, sequencer):
                yield from gathered.take_each(run, sequencer)
            if gathered.count >= size:
                yield gathered.document()
                gathered = Gathered(tables)
        if gathered.count:
            yield gathered.document()


def _surely(rows: int) -> int:
    """How many changes cannot have more rows than that, but for the last; no more than stay small in memory."""
    return min((rows + 1) // 2, CHANGES_AT_ONCE)
