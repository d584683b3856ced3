"""Changes that are sent: to change tables of a database, or to the topics of a Kafka, in documents as the daemon's.

Each change keeps the places of its events, for a row or a message may be refused where it arrives.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from eventlog.convert.forms import COVERS, STAMP, Cells, table_numbers
from eventlog.convert.messageform import SCHEMA as MESSAGES
from eventlog.convert.messageform import writer_of
from eventlog.convert.rowform import SCHEMA as ROWS
from eventlog.convert.rowform import rows_of
from eventlog.convert.settings import SentMessages, SentTables
from eventlog.core.model import Change, Document, Op, Position
from eventlog.core.schema import Catalog, Table
from eventlog.qlik.change_seq import Sequencer, time_digits, time_of
from eventlog.qlik.change_tables import format as changetable
from eventlog.qlik.change_tables.format import ROWS_OF_A_DOCUMENT, ChangeTable, ChangeTables, Gathered
from eventlog.qlik.messages import write as messages
from eventlog.qlik.messages.document import Message, MessagesDocument
from eventlog.qlik.messages.render import Renderer, TableRenderer

COVERED: Final = pa.field(COVERS, pa.list_(pa.int64()))
KEYED: Final = [pa.field("key", pa.large_binary()), pa.field("deleted", pa.bool_())]
LAID: Final = pa.schema([("sequence", pa.string()), *list(MESSAGES)[2:], *KEYED, COVERED])
"""Messages that have their numbers already, in place of position and time."""


class TableDocuments:
    """Rows of change tables, as a database takes them."""

    schema = pa.schema([*ROWS, COVERED])

    def __init__(self, target: SentTables, tables: Mapping[int, Table]) -> None:
        self._settings = target.settings
        self._tables = tables
        self._made: dict[int, ChangeTable] = {}

    def rendering(self, catalog: Catalog | None, first: int = 0) -> Cells:
        """What writes changes one by one."""
        places = table_numbers(catalog, first)
        tables = ChangeTables(self._settings, catalog)

        def write(change: Change) -> tuple[object, ...] | None:
            rows = rows_of(tables.of(change), change)
            if not rows:
                return None
            return time_digits(time_of(change)), places[change.row.schema, change.row.table], pickle.dumps(rows, 5)

        return Cells(self.schema, write, changetable.refusal_note)

    def documents(self, rendered: Iterable[pa.RecordBatch], after: str) -> Iterator[Document]:
        """Documents of some thousand rows."""
        tables = ChangeTables(self._settings, None)
        gathered = Gathered(tables)
        for sequence, place, content, covers in _numbered(rendered, after):
            rows = pickle.loads(content)  # noqa: S301  # a stage of this conversion wrote them
            if gathered.add(self._table(place), rows, sequence, covers) >= ROWS_OF_A_DOCUMENT:
                yield gathered.document()
                gathered = Gathered(tables)
        if gathered.count:
            yield gathered.document()

    def _table(self, place: int) -> ChangeTable:
        found = self._made.get(place)
        if found is None:
            found = self._made[place] = ChangeTable(self._tables[place], self._settings)
        return found


class MessageDocuments:
    """Messages with their keys, as a broker takes them; without metadata where those were `told` before."""

    schema = pa.schema([*MESSAGES, *KEYED, COVERED])

    def __init__(self, target: SentMessages, tables: Mapping[int, Table], *, told: bool = False) -> None:
        self._settings = target.settings
        self._tables = tables
        self._told = told
        self._made: dict[int, TableRenderer] = {}

    def rendering(self, catalog: Catalog | None, first: int = 0) -> Cells:
        """What writes changes one by one."""
        places = table_numbers(catalog, first)
        renderer = Renderer(self._settings, catalog)

        def write(change: Change) -> tuple[object, ...] | None:
            pieces = renderer.of_table(change.row).pieces(change)
            if pieces is None:
                return None
            key, head, tail = pieces
            place = places[change.row.schema, change.row.table]
            return time_digits(time_of(change)), place, head, tail, key, change.op is Op.DELETE

        return Cells(self.schema, write, messages.refusal_note)

    def documents(self, rendered: Iterable[pa.RecordBatch], after: str) -> Iterator[Document]:
        """Documents of as many messages as a document of the daemon's has."""
        return self._documents(_numbered(rendered, after))

    def laid(self, numbered: Iterable[pa.RecordBatch]) -> Iterator[Document]:
        """The same of messages that have their numbers."""
        return self._documents(_cells(numbered))

    def _documents(self, cells: Iterable[tuple[Any, ...]]) -> Iterator[Document]:
        held: list[Message] = []
        covers: dict[str, tuple[Position, ...]] = {}
        for sequence, place, head, tail, key, deleted, positions in cells:
            value = head if tail is None else b"".join((head, sequence.encode(), tail))
            held.append(self._table(place).message(key, value, positions))
            covers[sequence] = positions
            if deleted and key is not None and self._settings.tombstones:
                held.append(replace(held[-1], value=None, value_schema=None))
            if len(held) >= self._settings.batch_size:
                yield MessagesDocument(id=sequence, body=b"", covers=covers, messages=tuple(held))
                held, covers = [], {}
        if held:
            yield MessagesDocument(id=next(reversed(covers)), body=b"", covers=covers, messages=tuple(held))

    def _table(self, place: int) -> TableRenderer:
        found = self._made.get(place)
        if found is None:
            writer = writer_of(self._tables[place], self._settings)
            assert writer is not None, "what cannot be written was refused"
            if self._told:
                writer.structure = None
            found = self._made[place] = writer
        return found


def _numbered(rendered: Iterable[pa.RecordBatch], after: str) -> Iterator[tuple[Any, ...]]:
    """Each change with its change_seq in place of its time, and with the positions that sinks answer by."""
    numbers = Sequencer(after)
    for batch in rendered:
        sequences = numbers.stamped(batch.column(STAMP).to_pylist())
        yield from _positioned([sequences, *[column.to_pylist() for column in batch.columns[2:]]])


def _cells(numbered: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in numbered:
        yield from _positioned([column.to_pylist() for column in batch.columns])


def _positioned(columns: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    for *cells, covers in zip(*columns, strict=True):
        yield *cells, tuple([(place,) for place in covers])
