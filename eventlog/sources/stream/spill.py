"""Large transactions on the disk: one file for each, removed when the transaction ends."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from eventlog.core.errors import SourceError
from eventlog.sources.stream.transactions import Numbered

T = TypeVar("T")


class FileSpill(Generic[T]):
    """Chunks of one transaction in a file without a name, so that nothing of it outlives the
    process.
    """

    def __init__(self, kind: Any, folder: Path | None = None) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(list[tuple[int, kind]])
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # open as long as the transaction is
        self._places: list[tuple[int, int]] = []

    def write(self, items: Sequence[Numbered[T]]) -> int:
        """Appends a chunk; SourceError when the disk refuses."""
        content = self._encoder.encode(items)
        try:
            # Reading a chunk has moved the place in the file.
            start = self._file.seek(0, 2)
            self._file.write(content)
            # So that a full disk is noticed here, and not when the file is read.
            self._file.flush()
        except OSError as error:
            hint = "Free some space, or give it more memory."
            raise SourceError(
                f"There is no space on the disk for a large transaction: {error.strerror}.", hint=hint
            ) from error
        self._places.append((start, len(content)))
        return len(self._places) - 1

    def read(self, chunk: int) -> Iterable[Numbered[T]]:
        start, length = self._places[chunk]
        try:
            self._file.seek(start)
            return self._decoder.decode(self._file.read(length))
        except (OSError, msgspec.DecodeError) as error:
            hint = "It is read from the source again."
            raise SourceError(
                f"A large transaction cannot be read back from the disk: {error}.",
                hint=hint,
            ) from error

    def close(self) -> None:
        self._file.close()


def spill_to(kind: Any, folder: Path | None = None) -> Callable[[], FileSpill[Any]]:
    """Makes spills for items of that kind, which msgpack must know.

    Without a folder in the system's temporary one.
    """
    return lambda: FileSpill(kind, folder)
