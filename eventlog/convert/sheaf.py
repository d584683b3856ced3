"""Sheaves: files of labelled record batches on the local disk, written once by one process and read label by label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

PACKED: Final = pa.ipc.IpcWriteOptions(compression="lz4")
"""For what goes to other machines."""

PLAIN: Final = pa.ipc.IpcWriteOptions()
"""For what is read again soon and here: to pack and to unpack it costs nearly a tenth of a conversion."""

BATCH_ROWS: Final = 16_384
"""Rows that pass from one step to the next together."""


class Sheaf(Struct, frozen=True, kw_only=True):
    """A finished sheaf: which label each of its batches has, and how many rows.

    Batch number n stands between the places n and n + 1 of the file. They are kept here, because a file that describes
    itself is described to its reader each time that it is opened, as often as there are labels.
    """

    path: str
    labels: tuple[int, ...]
    rows: tuple[int, ...]
    places: tuple[int, ...] = ()

    def counted(self) -> dict[int, int]:
        """Rows by label."""
        found: dict[int, int] = {}
        for label, rows in zip(self.labels, self.rows, strict=True):
            found[label] = found.get(label, 0) + rows
        return found

    def read(self, label: int | None = None, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The batches with this label, or all of them."""
        wanted = [number for number, found in enumerate(self.labels) if label is None or found == label]
        if not wanted:
            return
        with pa.OSFile(self.path, "rb") as file:
            schema = pa.ipc.read_schema(file)
            for number in wanted:
                file.seek(self.places[number])
                message = file.read_buffer(self.places[number + 1] - self.places[number])
                batch = pa.ipc.read_record_batch(message, schema)
                yield batch if columns is None else batch.select(columns)


class SheafWriter:
    """A sheaf in the making."""

    def __init__(self, path: Path, file: Any, writer: Any, start: int) -> None:
        self._path = path
        self._file = file
        self._writer = writer
        self._labels: list[int] = []
        self._rows: list[int] = []
        self._places = [start]

    def write(self, label: int, batch: pa.RecordBatch) -> None:
        """Adds rows under a label."""
        self._writer.write_batch(batch)
        self._labels.append(label)
        self._rows.append(len(batch))
        self._places.append(self._file.tell())

    def finished(self) -> Sheaf:
        """What was written."""
        return Sheaf(
            path=str(self._path), labels=tuple(self._labels), rows=tuple(self._rows), places=tuple(self._places)
        )


@contextmanager
def sheaf(path: Path, schema: pa.Schema) -> Iterator[SheafWriter]:
    """A new sheaf, to be read when the block is left."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema, options=PLAIN) as writer:
        yield SheafWriter(path, file, writer, start=schema.serialize().size)


def read_label(sheaves: Sequence[Sheaf], label: int) -> Iterator[pa.RecordBatch]:
    """The batches with a label in all of the sheaves."""
    for one in sheaves:
        yield from one.read(label)
