"""Messages: each change one, for part files (JSON lines or Avro's object containers, a folder a
topic) or for a Kafka.

Files have neither keys nor tombstones: the topic is the folder, and a row's key stands in its data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
from msgspec import Struct

from eventlog.convert.commit import cannot_write
from eventlog.convert.forms import (
    COVERS,
    ROUTE,
    STAMP,
    Parts,
    Rendering,
    TableNumbers,
    covered,
    in_parts,
    table_numbers,
)
from eventlog.convert.settings import MessageFiles, SentMessages
from eventlog.convert.transactions import LAST, PLACE
from eventlog.convert.writing import OpenFiles
from eventlog.core.errors import ExpressionError
from eventlog.core.model import written as position_text
from eventlog.core.schema import Catalog, Table
from eventlog.qlik.change_seq import Sequencer
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.metadata import Structure
from eventlog.qlik.messages.render import TableRenderer
from eventlog.qlik.messages.schemas import ENVELOPE, text_of
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import shape_of
from eventlog.qlik.messages.write import (
    MessageFormat,
    WrittenMessage,
    container_block,
    container_head,
    container_schema,
    sequence_time,
)
from eventlog.sql.names import TRANSACTION

SCHEMA: Final = pa.schema(
    [
        ("position", pa.int64()),
        (STAMP, pa.string()),
        ("table", pa.int32()),
        ("head", pa.large_binary()),
        ("tail", pa.large_binary()),
        (ROUTE, pa.string()),
    ]
)
KEYED: Final = [
    pa.field("key", pa.large_binary()),
    pa.field("deleted", pa.bool_()),
    pa.field(COVERS, pa.list_(pa.int64())),
]
SENT: Final = pa.schema([*SCHEMA, *KEYED])
LAID: Final = pa.schema([("sequence", pa.string()), *list(SCHEMA)[2:], *KEYED])
"""Messages that have their numbers already, in place of position and time."""


class PackedMessages:
    """Packs what was written, and takes it out again; `tables` are by the numbers that it has for
    them.

    Each change keeps the places of its events, for a message may be refused where it is sent to.
    `open_` messages of known transactions get their numbers among those of these when they are
    taken out.
    """

    schema = SENT

    def __init__(
        self, settings: MessageSettings, tables: Mapping[int, Table], *, told: bool = False, open_: bool = False
    ) -> None:
        self._form = MessageFormat(settings=settings, body=False)
        self._tables = tables
        self._told = told
        self._open = open_
        self._made: dict[int, TableRenderer] = {}

    def rendering(self, catalog: Catalog | None, numbers: TableNumbers | None = None) -> Rendering:
        places = table_numbers(catalog) if numbers is None else numbers
        keyed = "key" in self.schema.names

        def cells(written: WrittenMessage) -> tuple[object, ...]:
            table = written.table.shape.table
            pieces = (written.head, written.tail) if self._open else written.closed()
            found = (written.stamp, places[table.schema, table.name], *pieces, written.route)
            return (*found, written.key, written.deleted) if keyed else found

        return Rendering(self.schema, self._form.writer(catalog), cells, counts=True)

    def written(self, rendered: pa.RecordBatch) -> Iterator[WrittenMessage]:
        """The messages in rows that are sent; what they need no more may be missing."""
        columns = {name: rendered.column(name).to_pylist() for name in rendered.schema.names}
        stamps = columns["sequence" if "sequence" in columns else STAMP]
        names = ("table", "key", "head", "tail", "deleted", COVERS, ROUTE)
        counts = _counts_in(rendered)
        for stamp, (transaction, place, last), *cells in zip(
            stamps, counts, *[columns[name] for name in names], strict=True
        ):
            number, key, head, tail, deleted, behind, route = cells
            positions = covered(behind)
            event_id = position_text(positions[-1])
            table = self._table(number)
            message = WrittenMessage(event_id, positions, stamp, table, key, head, tail, deleted, transaction, place)
            yield message._replace(last=last, route=route)

    def closed(self, rendered: pa.RecordBatch) -> tuple[Sequence[bytes], Sequence[bytes | None]]:
        """What stands before and behind the changeSequence of open messages, with their numbers in
        their transactions.
        """
        tables, heads, tails = (rendered.column(name).to_pylist() for name in ("table", "head", "tail"))
        pieces = [
            (head, tail) if tail is None or mark is None else self._table(table).closed(head, tail, place, last)
            for table, head, tail, (mark, place, last) in zip(tables, heads, tails, _counts_in(rendered), strict=True)
        ]
        return tuple(zip(*pieces, strict=True))  # type: ignore[return-value]  # pairs become two columns

    def _table(self, place: int) -> TableRenderer:
        found = self._made.get(place)
        if found is None:
            writer = writer_of(self._tables[place], self._form.settings)
            assert writer is not None, "what cannot be written was refused"
            if self._told:
                writer.structure = None
            found = self._made[place] = writer
        return found


class MessageForm(PackedMessages):
    """Part files of messages."""

    schema = SCHEMA

    def __init__(
        self, target: MessageFiles, tables: Mapping[int, Table], *, open_: bool = False, streamed: bool = False
    ) -> None:
        super().__init__(target.settings, tables, open_=open_)
        self._settings = target.settings
        self._streamed = streamed
        self._written = {
            place: writer for place, table in tables.items() if (writer := writer_of(table, target.settings))
        }

    def write(self, folder: Path, rendered: Iterable[pa.RecordBatch], parts: Parts) -> int:
        part = parts.first // parts.part_events - 1
        numbers = Sequencer(parts.after)
        files = PartFiles(folder, self._settings.encoding == "avro", {})
        try:
            for begins, run in in_parts(rendered, parts.part_events):
                stamps, tables, heads, tails, routes = (run.column(name).to_pylist() for name in SCHEMA.names[1:])
                if self._open:
                    heads, tails = self.closed(run)
                sequences = list(map(numbers.step, stamps))
                if begins:
                    files.close()
                    part += 1
                    files = PartFiles(folder, files.avro, self._places(part))
                    if part == 0:
                        self._describe(folder, sequences[0])
                for sequence, table, head, tail, route in zip(sequences, tables, heads, tails, routes, strict=True):
                    files.add(table, head if tail is None else b"".join((head, sequence.encode(), tail)), route)
            files.close()
        except OSError as error:
            raise cannot_write(folder, error) from error
        return part + 1 - parts.first // parts.part_events

    def _places(self, part: int) -> dict[int, MessageFile]:
        """Where the messages of each table stand in this part; a topic of several schemas has a
        container for each.
        """
        writers, stem = self._written, f"part-{part:05d}"
        if self._settings.encoding != "avro":
            name = f"{stem}.jsonl"
            return {n: MessageFile(topic=one.shape.topic, name=name, routed=name) for n, one in writers.items()}
        # Any table may be sent to a topic by a route, and in a topic that a route names as well as
        # a table, a file of
        # the one must not be that of the other.
        schemas = {place: (one.shape.topic, container_schema(one.shape)) for place, one in writers.items()}
        every = {schema: number for number, schema in enumerate(dict.fromkeys([one for _, one in schemas.values()]))}
        several: dict[str, dict[str, int]] = {}
        for topic, schema in schemas.values():
            numbers = several.setdefault(topic, {})
            numbers.setdefault(schema, len(numbers))
        found = {}
        for place, (topic, schema) in schemas.items():
            number = several[topic][schema]
            numbered = number or (self._streamed and len(several[topic]) > 1)
            # Today's messages of a log have no number.
            name = f"{stem}-{number}.avro" if numbered else f"{stem}.avro"
            found[place] = MessageFile(topic=topic, name=name, schema=schema, routed=f"{stem}-to-{every[schema]}.avro")
        return found

    def _describe(self, folder: Path, sequence: str) -> None:
        """Writes the metadata of every table, before the first message."""
        structures: dict[str, Structure] = {}
        for one in self._written.values():
            if one.structure is not None:
                structures.setdefault(one.structure.schema_id, one.structure)
        if not structures:
            return
        avro = self._settings.encoding == "avro"
        name = f"part-00000.{'avro' if avro else 'jsonl'}"
        schema = text_of(ENVELOPE) if avro else None
        place = MessageFile(topic=self._settings.metadata_topic, name=name, routed=name, schema=schema)
        files = PartFiles(folder, avro, {0: place})
        for structure in structures.values():
            files.add(0, structure.told(structure.version, sequence_time(sequence)))
        files.close()


class MessageDocuments(PackedMessages):
    """Messages as a broker takes them, without metadata where those were `told` before."""

    def __init__(
        self, target: SentMessages, tables: Mapping[int, Table], *, told: bool = False, open_: bool = False
    ) -> None:
        super().__init__(target.settings, tables, told=told, open_=open_)

    def documents(self, rendered: Iterable[pa.RecordBatch], after: str) -> Iterator[MessagesDocument]:
        """Documents of as many messages as a document of the daemon's has."""
        return self._form.bind(chain.from_iterable(map(self.written, rendered)), after)

    def laid(self, numbered: Iterable[pa.RecordBatch]) -> Iterator[MessagesDocument]:
        """The same of messages that have their numbers."""
        return self._form.bind_numbered(chain.from_iterable(map(self.written, numbered)))


def _counts_in(rendered: pa.RecordBatch) -> list[tuple[int | None, int | None, bool | None]]:
    """The transaction of each message that is counted, its number there, and whether it is the
    last.
    """
    if PLACE not in rendered.schema.names:
        return [(None, None, None)] * len(rendered)
    marks, places, lasts = (rendered.column(name).to_pylist() for name in (TRANSACTION, PLACE, LAST))
    found = zip(marks, places, lasts, strict=True)
    return [(None if place is None else mark, place, last) for mark, place, last in found]


def writer_of(table: Table, settings: MessageSettings) -> TableRenderer | None:
    """What writes a table's messages; None where none can be: its changes were refused, each with
    the reason.
    """
    try:
        return TableRenderer(shape_of(table, settings))
    except ExpressionError:
        return None


BLOCK_BYTES: Final = 256_000


class MessageFile(Struct, frozen=True, kw_only=True):
    """The file of messages of one table, in the folder of its topic, and the schema of a
    container's messages.

    `routed` is what it is called in the folder of another topic.
    """

    topic: str
    name: str
    routed: str
    schema: str | None = None


class PartFiles:
    """The files of one part, each begun when it gets its first message."""

    def __init__(self, folder: Path, avro: bool, places: Mapping[int, MessageFile]) -> None:
        self.avro = avro
        self._folder = folder
        self._places = places
        self._files = OpenFiles(buffering=1 << 18)
        self._containers: dict[Path, Container] = {}

    def add(self, table: int, value: bytes, route: str = "") -> None:
        place = self._places[table]
        path = self._folder / route / place.routed if route else self._folder / place.topic / place.name
        if place.schema is None:
            self._files.write(path, value + b"\n")
            return
        container = self._containers.get(path)
        if container is None:
            container = self._containers[path] = Container(path, place.schema, self._files)
        container.add(value)

    def close(self) -> None:
        for container in self._containers.values():
            container.flush()
        self._containers = {}
        self._files.close()


class Container:
    """An object container of Avro, from messages that are encoded already."""

    def __init__(self, path: Path, schema: str, files: OpenFiles) -> None:
        self._path = path
        self._files = files
        self._schema = schema
        self._values: list[bytes] = []
        self._size = 0
        files.write(path, container_head(schema))

    def add(self, value: bytes) -> None:
        self._values.append(value)
        self._size += len(value)
        if self._size >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what came as a block."""
        self._files.write(self._path, container_block(self._values, self._schema))
        self._values, self._size = [], 0
