"""A side that is read once, row by row: of a database that cannot hash, or of one that nobody
knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Compared, Key, Rows, Snapshot


class StreamedSide:
    """Rows that are read into a temporary file when they are first asked for, and again after
    `refresh`.
    """

    native = ""

    def __init__(
        self,
        compared: Compared,
        read: Callable[[ScratchSide], Iterator[Sequence[Any]]],
    ) -> None:
        self._compared = compared
        self._read = read
        self._scratch: ScratchSide | None = None

    @property
    def compared(self) -> Compared:
        return self._compared

    @property
    def ordered(self) -> bool:
        return self._compared.counted

    def refresh(self) -> None:
        """Read every row again at the next use."""
        self.close()

    def close(self) -> None:
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        return self.fill().snapshot()

    def rows(self, keys: Sequence[Key]) -> Rows:
        return self.fill().rows(keys)

    def fill(self) -> ScratchSide:
        """Return the temporary file with all rows; fill it the first time."""
        if self._scratch is None:
            scratch = ScratchSide(self._compared)
            try:
                scratch.write(self._read(scratch), counted=True)
            except BaseException:
                # Nobody else knows of its file yet.
                scratch.close()
                raise
            self._scratch = scratch
        return self._scratch
