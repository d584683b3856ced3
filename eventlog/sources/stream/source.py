"""What reads one kind of stream, how far it was read, and the marks of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError, SourceError
from eventlog.core.model import Captured, Image, Position
from eventlog.core.schema import Catalog
from eventlog.durable_files import write_file

PLACE: Final = "stream"
"""What the mark is called that holds the whole place, so that it changes as a whole."""


class StreamPiece(Struct, frozen=True, kw_only=True):
    """Images of one transaction, or of several that ended before `commit`, and the catalog that
    describes them.

    `commit` is where the last of them ended. `begin` is where to read from once all of this is
    captured; None where the transaction goes on in the next piece. `since` is where to read from to
    find it again, if nothing is captured yet.
    """

    images: Sequence[Image]
    catalog: Catalog
    commit: int
    begin: int | None
    since: int | None = None


class ImageBatch(Struct, frozen=True, kw_only=True):
    """Images that are read together, and the catalog that describes them."""

    images: Sequence[Image]
    catalog: Catalog | None


class StreamReader(Protocol):
    """One kind of stream, read from a place on."""

    def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
        """Yield pieces committed from that place on, in order of commits; None while there are
        none.

        Place 0 is the beginning, or now if the stream has none. After an error it is called again.
        """

    def acknowledge(self, images: Sequence[Captured], begin: int) -> None:
        """Acknowledge: these images, and all transactions ended before `begin`, are durable in the
        log.
        """

    def close(self) -> None:
        """Gives back what it holds."""


class StreamPlace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a stream was captured.

    `begin` is where to read from, as the stream's reader knows places. Images up to `upto` are in
    the log. `number` is that of the last row, and `transaction` that of the first row of the
    transaction which `upto` is of.
    """

    begin: int = 0
    upto: Position = ()
    number: int = 0
    transaction: int = 0


def read_place(text: str | None) -> StreamPlace:
    """Reads the mark; without one the stream was never read."""
    if text is None:
        return StreamPlace()
    try:
        return msgspec.json.decode(text, type=StreamPlace)
    except msgspec.DecodeError as error:
        hint = "Restore the file of marks; without it the stream is read from its beginning."
        raise DataError(
            f"The mark {PLACE} does not hold the place of a stream: {error}.",
            hint=hint,
        ) from error


class StreamMarks(Protocol):
    """The marks of a stream."""

    def get(self, name: str) -> str | None:
        """Return the mark's text; None if there is none."""

    def change(self, changes: Mapping[str, str | None]) -> None:
        """Makes or replaces marks and takes away those with None, all at once.

        Durable when it returns.
        """


class FileMarks:
    """Marks of a source that has no database to write to: one JSON file, replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._marks = self._read()

    def get(self, name: str) -> str | None:
        """Return the mark's text; None if there is none."""
        return self._marks.get(name)

    def all(self) -> dict[str, str]:
        """Return every mark by name."""
        return dict(self._marks)

    def change(self, changes: Mapping[str, str | None]) -> None:
        """Makes or replaces marks and takes away those with None, all at once.

        Durable when it returns.
        """
        marks = {**self._marks, **changes}
        self._write({name: value for name, value in marks.items() if value is not None})

    def _read(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SourceError(f"The marks in {self.path} cannot be read: {error.strerror}.") from error
        except msgspec.DecodeError as error:
            hint = "Restore the file; without it the source starts from the beginning and repeats what was published."
            raise DataError(f"{self.path} does not hold marks: {error}.", hint=hint) from error

    def _write(self, marks: dict[str, str]) -> None:
        try:
            write_file(self.path, msgspec.json.format(msgspec.json.encode(marks)) + b"\n")
        except OSError as error:
            raise SourceError(f"The marks in {self.path} cannot be written: {error.strerror}.") from error
        self._marks = marks
