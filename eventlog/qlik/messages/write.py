"""The messages format: changes in, documents of messages out, numbered in one sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import ExpressionError
from eventlog.core.model import Change, Op, Position, Refusal, RowId
from eventlog.core.schema import Catalog
from eventlog.qlik.change_seq import Sequencer
from eventlog.qlik.messages.document import Message, MessagesDocument, lines
from eventlog.qlik.messages.render import Renderer, TableRenderer
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.readings import shown

FIRST_VERSION: Final = 1


class MessageFormat(Struct, frozen=True, kw_only=True):
    """Writes documents of messages. With `body` a document is text too, one line a message, for files and streams.

    Only sinks that take messages know what they were told of a table before; a body tells it in every document anew.
    """

    settings: MessageSettings = MessageSettings()
    body: bool = True

    @property
    def suffix(self) -> str:
        return ".jsonl"

    def encode(
        self, changes: Iterable[Change], catalog: Catalog | None = None, after: str = ""
    ) -> Iterator[MessagesDocument | Refusal]:
        """Documents in the order of the changes, and refusals as they are met; what is refused takes no number."""
        sequencer = Sequencer(after)
        size, tombstones = self.settings.batch_size, self.settings.tombstones
        writer_of = _Writers(Renderer(self.settings, catalog))
        messages: list[Message] = []
        covers: dict[str, tuple[Position, ...]] = {}
        for change in changes:
            positions = change.positions
            alone = len(positions) == 1
            event_id = str(positions[0][0]) if alone and len(positions[0]) == 1 else change.event_id
            try:
                writer = writer_of(change.row)
                pieces = writer.pieces(change, event_id if alone else None)
            except ExpressionError as error:
                yield Refusal(positions=positions, note=refusal_note(change, error))
                continue
            if pieces is None:
                continue
            key, head, tail = pieces
            sequence = sequencer.next(change).encode()  # a row of a full load tells none, but its document's id does
            value = head if tail is None else b"".join((head, sequence, tail))
            messages.append(writer.message(key, value, positions))
            covers[event_id] = positions
            if tombstones and change.op is Op.DELETE and key is not None:
                messages.append(replace(messages[-1], value=None, value_schema=None))
            if len(messages) >= size:
                yield self._document(sequencer.last, messages, covers)
                messages, covers = [], {}
        if messages:
            yield self._document(sequencer.last, messages, covers)

    def _document(
        self, last: str, messages: list[Message], covers: dict[str, tuple[Position, ...]]
    ) -> MessagesDocument:
        body = lines(with_metadata(messages, last)) if self.body else b""
        return MessagesDocument(id=last, body=body, covers=covers, messages=tuple(messages))


class _Writers:
    """Finds the writer of a row's table; neighbours are of one table mostly, and name it with the very same text."""

    __slots__ = ("_found", "_renderer", "_schema", "_table")

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._table: str | None = None
        self._schema: str | None = None
        self._found: TableRenderer | None = None

    def __call__(self, row: RowId) -> TableRenderer:
        if row.table is self._table and row.schema is self._schema and self._found is not None:
            return self._found
        self._found = self._renderer.of_table(row)
        self._table, self._schema = row.table, row.schema
        return self._found


def with_metadata(messages: Iterable[Message], last: str) -> Iterator[Message]:
    """The messages, each table's metadata before its first one; their time is the document's, for formats have no clock."""
    known: set[str] = set()
    for one in messages:
        structure = one.structure
        if structure is not None and structure.schema_id not in known:
            known.add(structure.schema_id)
            yield Message(topic=structure.topic, key=None, value=structure.told(FIRST_VERSION, sequence_time(last)))
        yield one


def sequence_time(sequence: str) -> str:
    """The time in a changeSequence, as messages write times."""
    year, rest = sequence[:4], [sequence[place : place + 2] for place in range(4, 16, 2)]
    return "{}-{}-{}T{}:{}:{}.{}0".format(year, *rest)


def refusal_note(change: Change, error: ExpressionError) -> str:
    """Why a change is not told, of which object."""
    return f"{shown(change.row.table)} {shown(change.row.key)}: {error}."
