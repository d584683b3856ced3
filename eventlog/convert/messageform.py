"""Messages: each change one, each topic a folder of part files, JSON lines or Avro's object containers.

Files have neither keys nor tombstones: the topic is the folder, and a row's key stands in its data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from eventlog.convert.forms import STAMP, Cells, Parts, in_parts, table_numbers
from eventlog.convert.messagefiles import PartFiles, Place
from eventlog.convert.parts import cannot_write
from eventlog.convert.settings import MessageFiles
from eventlog.core.errors import ExpressionError
from eventlog.core.model import Change
from eventlog.core.schema import Catalog, Table
from eventlog.qlik.change_seq import Sequencer, time_digits, time_of
from eventlog.qlik.messages.bulk import container_schema
from eventlog.qlik.messages.render import Renderer, TableRenderer
from eventlog.qlik.messages.schemas import ENVELOPE, text_of
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import shape_of
from eventlog.qlik.messages.write import FIRST_VERSION, refusal_note, sequence_time

SCHEMA: Final = pa.schema(
    [
        ("position", pa.int64()),
        (STAMP, pa.string()),
        ("table", pa.int32()),
        ("head", pa.large_binary()),
        ("tail", pa.large_binary()),
    ]
)


class MessageForm:
    """Writes the messages that the daemon would send."""

    schema = SCHEMA

    def __init__(self, target: MessageFiles, tables: Mapping[int, Table]) -> None:
        self._settings = target.settings
        self._tables = tables
        self._written = {
            place: writer for place, table in tables.items() if (writer := writer_of(table, target.settings))
        }

    def rendering(self, catalog: Catalog | None, first: int = 0) -> Cells:
        """What writes changes one by one."""
        places = table_numbers(catalog, first)
        renderer = Renderer(self._settings, catalog)

        def write(change: Change) -> tuple[object, ...] | None:
            pieces = renderer.of_table(change.row).pieces(change)
            if pieces is None:
                return None
            _, head, tail = pieces
            place = places[change.row.schema, change.row.table]
            return time_digits(time_of(change)), place, head, tail

        return Cells(SCHEMA, write, refusal_note)

    def write(self, folder: Path, rendered: Iterable[pa.RecordBatch], parts: Parts) -> int:
        """Writes parts of changes that come in the order of their positions; says how many."""
        part = parts.first // parts.part_events - 1
        numbers = Sequencer("", skipped=parts.first, stamp=parts.stamp)
        files = PartFiles(folder, self._settings.encoding == "avro", {})
        try:
            for begins, run in in_parts(rendered, parts.part_events):
                stamps, tables, heads, tails = (run.column(name).to_pylist() for name in SCHEMA.names[1:])
                sequences = numbers.stamped(stamps)
                if begins:
                    files.close()
                    part += 1
                    files = PartFiles(folder, files.avro, self._places(part))
                    if part == 0:
                        self._describe(folder, sequences[0])
                for sequence, table, head, tail in zip(sequences, tables, heads, tails, strict=True):
                    files.add(table, head if tail is None else b"".join((head, sequence.encode(), tail)))
            files.close()
        except OSError as error:
            raise cannot_write(folder, error) from error
        return part + 1 - parts.first // parts.part_events

    def _places(self, part: int) -> dict[int, Place]:
        """Where the messages of each table stand in this part; a topic of several schemas has a container for each."""
        avro = self._settings.encoding == "avro"
        schemas: dict[str, dict[str, int]] = {}
        for writer in self._written.values():
            numbers = schemas.setdefault(writer.shape.topic, {})
            numbers.setdefault(container_schema(writer.shape), len(numbers))
        return {
            place: _place(writer, part, avro=avro, numbers=schemas[writer.shape.topic])
            for place, writer in self._written.items()
        }

    def _describe(self, folder: Path, sequence: str) -> None:
        """Writes the metadata of every table, before the first message."""
        structures = {one.structure.schema_id: one.structure for one in self._written.values() if one.structure}
        if not structures:
            return
        avro = self._settings.encoding == "avro"
        name = f"part-00000.{'avro' if avro else 'jsonl'}"
        place = Place(path=f"{self._settings.metadata_topic}/{name}", schema=text_of(ENVELOPE) if avro else None)
        files = PartFiles(folder, avro, {0: place})
        for structure in structures.values():
            files.add(0, structure.told(FIRST_VERSION, sequence_time(sequence)))
        files.close()


def writer_of(table: Table, settings: MessageSettings) -> TableRenderer | None:
    """What writes a table's messages; None where none can be: its changes were refused, each with the reason."""
    try:
        return TableRenderer(shape_of(table, settings))
    except ExpressionError:
        return None


def _place(writer: TableRenderer, part: int, *, avro: bool, numbers: Mapping[str, int]) -> Place:
    shape = writer.shape
    if not avro:
        return Place(path=f"{shape.topic}/part-{part:05d}.jsonl")
    schema = container_schema(shape)
    name = f"part-{part:05d}.avro" if len(numbers) == 1 else f"part-{part:05d}-{numbers[schema]}.avro"
    return Place(path=f"{shape.topic}/{name}", schema=schema)
