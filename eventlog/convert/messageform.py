"""Messages: each change one, each topic a folder of part files, JSON lines or Avro's object containers.

Files have neither keys nor tombstones: the topic is the folder, and a row's key stands in its data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa

from eventlog.convert.forms import STAMP, Cells, Parts, in_parts
from eventlog.convert.messagefiles import PartFiles, Place
from eventlog.convert.parts import cannot_write
from eventlog.convert.settings import MessageFiles
from eventlog.errors import ExpressionError
from eventlog.model import Change, RowId
from eventlog.qlik.changeseq import time_digits, time_of
from eventlog.qlik.messages.bulk import container_schema
from eventlog.qlik.messages.render import Renderer, TableRenderer
from eventlog.qlik.messages.schemas import ENVELOPE, text_of
from eventlog.qlik.messages.write import FIRST_VERSION, refusal_note, sequence_time
from eventlog.schema import Catalog

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

    def __init__(self, target: MessageFiles, catalog: Catalog | None) -> None:
        self._settings = target.settings
        self._tables = list(catalog or ())
        self._renderer = Renderer(target.settings, catalog)

    def rendering(self, catalog: Catalog | None) -> Cells:
        """What writes changes one by one."""
        places = {(table.schema, table.name): place for place, table in enumerate(self._tables)}
        renderer = Renderer(self._settings, catalog)

        def write(change: Change) -> tuple[object, ...] | None:
            pieces = renderer.of_table(change.row).pieces(change)
            if pieces is None:
                return None
            _, head, tail = pieces
            place = places[change.row.schema, change.row.table]
            return change.positions[-1][0], time_digits(time_of(change)), place, head, tail

        return Cells(SCHEMA, write, refusal_note)

    def write(self, folder: Path, rendered: Iterable[pa.RecordBatch], parts: Parts) -> int:
        """Writes parts of changes that come in the order of their positions; says how many."""
        part, number, stamp = parts.first // parts.part_events - 1, parts.first, parts.stamp
        files = PartFiles(folder, self._settings.encoding == "avro", [])
        try:
            for begins, run in in_parts(rendered, parts.part_events):
                if begins:
                    files.close()
                    part += 1
                    files = PartFiles(folder, files.avro, self._places(part))
                for came, table, head, tail in zip(
                    *(run.column(name).to_pylist() for name in SCHEMA.names[1:]), strict=True
                ):
                    number, stamp = number + 1, max(stamp, came)
                    sequence = f"{stamp}{number:019d}"
                    if number == 1:
                        self._describe(folder, sequence)
                    files.add(table, b"".join((head, sequence.encode(), tail)))
            files.close()
        except OSError as error:
            raise cannot_write(folder, error) from error
        return part + 1 - parts.first // parts.part_events

    def _places(self, part: int) -> list[Place | None]:
        """Where the messages of each table stand in this part; a topic of several tables has a container for each."""
        written = [self._written(place) for place in range(len(self._tables))]
        shared = Counter(one.shape.topic for one in written if one is not None)
        avro = self._settings.encoding == "avro"
        return [
            None if one is None else _place(one, part, avro=avro, alone=shared[one.shape.topic] == 1) for one in written
        ]

    def _written(self, place: int) -> TableRenderer | None:
        table = self._tables[place]
        try:
            return self._renderer.of_table(RowId(table.schema, table.name, ""))
        except ExpressionError:
            return None  # its changes were refused one by one, each with the reason

    def _describe(self, folder: Path, sequence: str) -> None:
        """Writes the metadata of every table, before the first message."""
        structures = [
            one.structure for place in range(len(self._tables)) if (one := self._written(place)) and one.structure
        ]
        if not structures:
            return
        avro = self._settings.encoding == "avro"
        name = f"part-00000.{'avro' if avro else 'jsonl'}"
        place = Place(path=f"{self._settings.metadata_topic}/{name}", schema=text_of(ENVELOPE) if avro else None)
        files = PartFiles(folder, avro, [place])
        for structure in structures:
            files.add(0, structure.told(FIRST_VERSION, sequence_time(sequence)))
        files.close()


def _place(writer: TableRenderer, part: int, *, avro: bool, alone: bool) -> Place:
    shape = writer.shape
    if not avro:
        return Place(path=f"{shape.topic}/part-{part:05d}.jsonl")
    name = f"part-{part:05d}.avro" if alone else f"part-{part:05d}-{shape.title}.avro"
    return Place(path=f"{shape.topic}/{name}", schema=container_schema(shape))
