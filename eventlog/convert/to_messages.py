"""Messages: each change one, for part files (JSON lines or Avro's object containers, a folder a
topic) or for a Kafka.

Files have neither keys nor tombstones: the topic is the folder, and a row's key stands in its data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pyarrow as pa
from msgspec import Struct

from eventlog.convert.folders import cannot_write
from eventlog.convert.forms import (
    COVERS,
    ROUTE,
    STAMP,
    Parts,
    Rendering,
    TableNumbers,
    in_parts,
    list_covered,
    table_numbers,
)
from eventlog.convert.settings import MessageFiles, SentMessages
from eventlog.convert.transactions import LAST, PLACE
from eventlog.convert.writing import OpenFiles
from eventlog.core.errors import ExpressionError
from eventlog.core.model import format_position as position_text
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
    pa.field("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.large_binary())]))),
    pa.field(COVERS, pa.list_(pa.int64())),
]
SENT: Final = pa.schema([*SCHEMA, *KEYED])


class PackedMessages:
    """Packs what was written, and takes it out again; `tables` are by the numbers that it has for
    them.

    Each change keeps the places of its events, for a message may be refused where it is sent to.
    `open_` messages of known transactions get their numbers among those of these when they are
    taken out.
    """

    schema = SENT

    def __init__(
        self,
        settings: MessageSettings,
        tables: Mapping[int, Table],
        *,
        open_: bool = False,
        free: bool = False,
        headed: bool = False,
    ) -> None:
        self._form = MessageFormat(settings=settings, body=False, free=free, headed=headed)
        self._tables = tables
        self._open = open_
        self._made: dict[int, TableRenderer] = {}

    def rendering(self, catalog: Catalog | None, numbers: TableNumbers | None = None) -> Rendering:
        number_of = table_numbers(catalog) if numbers is None else numbers
        has_key = "key" in self.schema.names

        def cells(written: WrittenMessage) -> tuple[object, ...]:
            table = written.table.shape.table
            number = number_of[table.schema, table.name]
            pieces = (written.head, written.tail) if self._open else written.close()
            row = (written.stamp, number, *pieces, written.route)
            if has_key:
                headers = [{"key": name, "value": value} for name, value in written.headers]
                return (*row, written.key, written.deleted, headers or None)
            return row

        return Rendering(self.schema, self._form.writer(catalog), cells, counts=True)

    def written(self, rendered: pa.RecordBatch) -> Iterator[WrittenMessage]:
        """Make messages of rows to send; columns no longer needed may be missing."""
        columns = {name: rendered.column(name).to_pylist() for name in rendered.schema.names}
        names = ("table", "key", "head", "tail", "deleted", COVERS, ROUTE, "headers")
        counts = _counts_in(rendered)
        rows = zip(columns[STAMP], counts, *[columns[name] for name in names], strict=True)
        for stamp, (transaction, ordinal, last), *cells in rows:
            number, key, head, tail, deleted, covers, route, headers = cells
            positions = list_covered(covers)
            # By position, which is quicker than by name, for each message.
            message = WrittenMessage(
                position_text(positions[-1]),
                positions,
                stamp,
                self._table(number),
                key,
                head,
                tail,
                deleted,
                transaction,
                ordinal,
            )
            pairs = tuple([(header["key"], header["value"]) for header in headers or ()])
            yield message._replace(last=last, route=route, headers=pairs)

    def closed(self, rendered: pa.RecordBatch) -> tuple[Sequence[bytes], Sequence[bytes | None]]:
        """Write the bytes before and behind the changeSequence of open messages, with their numbers
        in their transactions.
        """
        names = ("table", "head", "tail")
        tables, heads, tails = (rendered.column(name).to_pylist() for name in names)
        pieces = []
        messages = zip(tables, heads, tails, _counts_in(rendered), strict=True)
        for table, head, tail, (mark, ordinal, last) in messages:
            # Without a tail it is a row of a full load, which is in no transaction.
            if tail is None or mark is None:
                pieces.append((head, tail))
            else:
                pieces.append(self._table(table).close(head, tail, ordinal, last))
        return tuple(zip(*pieces, strict=True))  # type: ignore[return-value]  # pairs: two columns

    def _table(self, number: int) -> TableRenderer:
        renderer = self._made.get(number)
        if renderer is None:
            renderer = writer_of(self._tables[number], self._form.settings, free=self._form.free)
            assert renderer is not None, "what cannot be written was refused"
            self._made[number] = renderer
        return renderer


class MessageForm(PackedMessages):
    """Part files of messages."""

    schema = SCHEMA

    def __init__(
        self,
        target: MessageFiles,
        tables: Mapping[int, Table],
        *,
        open_: bool = False,
        streamed: bool = False,
    ) -> None:
        super().__init__(target.settings, tables, open_=open_, free=True)
        self._settings = target.settings
        self._streamed = streamed
        self._renderers: dict[int, TableRenderer] = {}
        for number, table in tables.items():
            renderer = writer_of(table, target.settings, free=True)
            if renderer is not None:
                self._renderers[number] = renderer

    def write(self, folder: Path, rendered: Iterable[pa.RecordBatch], parts: Parts) -> int:
        part = parts.first // parts.part_events - 1
        numbers = Sequencer(parts.after)
        files = PartFiles(folder, self._settings.encoding == "avro", {})
        try:
            for begins, run in in_parts(rendered, parts.part_events):
                columns = [run.column(name).to_pylist() for name in SCHEMA.names[1:]]
                stamps, tables, heads, tails, routes = columns
                if self._open:
                    heads, tails = self.closed(run)
                sequences = list(map(numbers.step, stamps))
                if begins:
                    files.close()
                    part += 1
                    files = PartFiles(folder, files.avro, self._places(part))
                    if part == 0:
                        self._describe(folder, sequences[0])
                rows = zip(sequences, tables, heads, tails, routes, strict=True)
                for sequence, table, head, tail, route in rows:
                    message = head
                    if tail is not None:
                        message = b"".join((head, sequence.encode(), tail))
                    files.add(table, message, route)
            files.close()
        except OSError as error:
            raise cannot_write(folder, error) from error
        return part + 1 - parts.first // parts.part_events

    def _places(self, part: int) -> dict[int, MessageFile]:
        """Choose the file for each table's messages in this part: one a topic and schema."""
        stem = f"part-{part:05d}"
        if self._settings.encoding != "avro":
            name = f"{stem}.jsonl"
            return {
                table: MessageFile(topic=renderer.shape.topic, name=name, routed=name)
                for table, renderer in self._renderers.items()
            }
        # Schemas are numbered twice: within each topic, and among all. Any table may be sent to a
        # topic by a route, and in a topic that a route names as well as a table, a file of the one
        # must not be that of the other.
        within_topic: dict[str, dict[str, int]] = {}
        among_all: dict[str, int] = {}
        for renderer in self._renderers.values():
            schema = container_schema(renderer.shape)
            numbers = within_topic.setdefault(renderer.shape.topic, {})
            numbers.setdefault(schema, len(numbers))
            among_all.setdefault(schema, len(among_all))
        files = {}
        for table, renderer in self._renderers.items():
            topic, schema = renderer.shape.topic, container_schema(renderer.shape)
            number = within_topic[topic][schema]
            name = f"{stem}.avro"
            # Today's messages of a log have no number. In a stream no schema is that of today, so
            # all have one where there are several.
            if number or (self._streamed and len(within_topic[topic]) > 1):
                name = f"{stem}-{number}.avro"
            routed = f"{stem}-to-{among_all[schema]}.avro"
            files[table] = MessageFile(topic=topic, name=name, schema=schema, routed=routed)
        return files

    def _describe(self, folder: Path, sequence: str) -> None:
        """Write the metadata of every table, before the first message."""
        structures: dict[str, Structure] = {}
        for renderer in self._renderers.values():
            if renderer.structure is not None:
                structures.setdefault(renderer.structure.schema_id, renderer.structure)
        if not structures:
            return
        avro = self._settings.encoding == "avro"
        name, schema = "part-00000.jsonl", None
        if avro:
            name, schema = "part-00000.avro", text_of(ENVELOPE)
        topic = self._settings.metadata_topic
        file = MessageFile(topic=topic, name=name, routed=name, schema=schema)
        files = PartFiles(folder, avro, {0: file})
        for structure in structures.values():
            files.add(0, structure.message(structure.version, sequence_time(sequence)))
        files.close()


class MessageDocuments(PackedMessages):
    """Messages as a broker takes them."""

    def __init__(
        self,
        target: SentMessages,
        tables: Mapping[int, Table],
        *,
        open_: bool = False,
    ) -> None:
        super().__init__(target.settings, tables, open_=open_, headed=target.who)

    def documents(self, rendered: Iterable[pa.RecordBatch], after: str) -> Iterator[MessagesDocument]:
        """Make documents of as many messages as one of the daemon's has."""
        return self._form.bind(chain.from_iterable(map(self.written, rendered)), after)


def _counts_in(rendered: pa.RecordBatch) -> list[tuple[int | None, int | None, bool | None]]:
    """Read transaction, number there and last flag of each counted message; None for others."""
    if PLACE not in rendered.schema.names:
        return [(None, None, None)] * len(rendered)
    names = (TRANSACTION, PLACE, LAST)
    marks, places, lasts = (rendered.column(name).to_pylist() for name in names)
    counts = zip(marks, places, lasts, strict=True)
    # A row of a full load has a transaction too, and no place in it.
    return [(None if ordinal is None else mark, ordinal, last) for mark, ordinal, last in counts]


def writer_of(table: Table, settings: MessageSettings, *, free: bool = False) -> TableRenderer | None:
    """Make the writer of a table's messages; None if its changes were refused."""
    try:
        return TableRenderer(shape_of(table, settings, free=free))
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
        file = self._places[table]
        if route:
            path = self._folder / route / file.routed
        else:
            path = self._folder / quote(file.topic, safe="") / file.name
        if file.schema is None:
            self._files.write(path, value + b"\n")
            return
        container = self._containers.get(path)
        if container is None:
            container = self._containers[path] = Container(path, file.schema, self._files)
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
        """Write the collected messages as a block."""
        self._files.write(self._path, container_block(self._values, self._schema))
        self._values, self._size = [], 0
