"""Files of messages: JSON lines, or Avro's object containers made of messages that are encoded already."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from eventlog.qlik.messages.bulk import container_block, container_head

BLOCK_BYTES: Final = 256_000


class MessageFile(Struct, frozen=True, kw_only=True):
    """The file of messages of one table, and the schema of a container's messages."""

    path: str
    schema: str | None = None


class PartFiles:
    """The files of one part, each opened when it gets its first message."""

    def __init__(self, folder: Path, avro: bool, places: Mapping[int, MessageFile]) -> None:
        self.avro = avro
        self._folder = folder
        self._places = places
        self._open: dict[str, JsonLinesFile | Container] = {}

    def add(self, table: int, value: bytes) -> None:
        """Takes a message of the table."""
        place = self._places[table]
        file = self._open.get(place.path)
        if file is None:
            path = self._folder / place.path
            path.parent.mkdir(exist_ok=True)
            file = self._open[place.path] = (
                JsonLinesFile(path) if place.schema is None else Container(path, place.schema)
            )
        file.add(value)

    def close(self) -> None:
        """Writes what is left."""
        for file in self._open.values():
            file.close()
        self._open = {}


class JsonLinesFile:
    """A file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self._file: Any = path.open("wb", buffering=1 << 20)

    def add(self, value: bytes) -> None:
        """Appends a message."""
        self._file.write(value)
        self._file.write(b"\n")

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class Container:
    """An object container of Avro, from messages that are encoded already."""

    def __init__(self, path: Path, schema: str) -> None:
        self._file: Any = path.open("wb", buffering=1 << 20)
        self._file.write(container_head(schema))
        self._schema = schema
        self._values: list[bytes] = []
        self._size = 0

    def add(self, value: bytes) -> None:
        """Appends a message."""
        self._values.append(value)
        self._size += len(value)
        if self._size >= BLOCK_BYTES:
            self._flush()

    def close(self) -> None:
        """Writes the last block and closes the file."""
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        self._file.write(container_block(self._values, self._schema))
        self._values, self._size = [], 0
