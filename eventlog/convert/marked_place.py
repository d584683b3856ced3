"""Where the output of a conversion stands whose rows are marked: a folder, or an address of a store
or of Hadoop's.

Small files beside the output say how far the marks are (`mark`). Each is written as a whole or not
at all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from eventlog.convert.commit import Destination
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.durable_files import flush, write_file

if TYPE_CHECKING:
    from eventlog.convert.mark import Marking


class MarkedPlace(Protocol):
    """The place of one output. `name` is what the journal calls it by."""

    @property
    def name(self) -> str: ...

    def read(self, name: str) -> bytes | None:
        """What a small file holds; None where there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Writes a small file, in the place of one that is there."""

    def remove(self, name: str) -> None:
        """Removes a file; one that is gone is no trouble."""

    def tidy(self) -> None:
        """Removes what a conversion has left that was killed when its output was complete."""

    def outcomes(self) -> AbstractContextManager[Sequence[Path]]:
        """The files of the outcomes in their order, on this machine until the block is left."""


class MarkedFolder:
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        return str(self._folder.absolute())

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, content: bytes) -> None:
        write_file(self._folder / name, content)

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)
        # A name that is gone may come back after a power cut, until its folder is on the disk.
        flush(self._folder)

    def tidy(self) -> None:
        Destination(self._folder).tidy()

    @contextmanager
    def outcomes(self) -> Iterator[Sequence[Path]]:
        yield outcome_files(self._folder / OUTCOMES_FILE)


def outcome_files(path: Path) -> list[Path]:
    """The files of outcomes: one, or those of a folder as Spark has it at an address."""
    if path.is_dir():
        return sorted(path.glob("part-*.parquet"))
    return [path]


@contextmanager
def fetched_outcomes(fetch: Callable[[Path], None]) -> Iterator[list[Path]]:
    """The outcomes of an output that is elsewhere: `fetch` brings them, a file or a folder, to a
    place on this machine.
    """
    with tempfile.TemporaryDirectory(prefix="eventlog-") as folder:
        path = Path(folder) / OUTCOMES_FILE
        fetch(path)
        yield outcome_files(path)


@contextmanager
def committing(marking: Marking | None) -> Iterator[None]:
    """Lets an output appear if its rows are reserved still, where it marks; after an error they are
    given back.
    """
    if marking is None:
        yield
        return
    marking.confirm()
    try:
        yield
    except BaseException:
        marking.give_back()
        raise
