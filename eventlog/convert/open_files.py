"""Files that are written side by side: so many are open at once at most, however many places a template has."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import BinaryIO, Final

MOST_OPEN_PLACES: Final = 200
"""Files that are open at once; systems allow 256 or more to a process."""


class OpenFiles:
    """Files that are begun anew, and grow until they are closed together."""

    def __init__(self, most: int | None = None, buffering: int = 1 << 16) -> None:
        self._most = MOST_OPEN_PLACES if most is None else most
        self._buffering = buffering
        self._open: OrderedDict[Path, BinaryIO] = OrderedDict()
        self.begun: dict[Path, None] = {}
        """All files so far, in the order in which they were begun."""

    def write(self, path: Path, content: bytes | memoryview) -> None:
        """Appends to a file."""
        file = self._open.get(path)
        if file is None:
            file = self._opened(path)
        elif len(self._open) > 1:
            self._open.move_to_end(path)
        file.write(content)

    def close(self) -> None:
        """Closes all files; what comes then begins new ones."""
        while self._open:
            self._open.popitem()[1].close()
        self.begun = {}

    def _opened(self, path: Path) -> BinaryIO:
        if len(self._open) >= self._most:
            self._open.popitem(last=False)[1].close()
        if path in self.begun:
            file: BinaryIO = path.open("ab", buffering=self._buffering)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("wb", buffering=self._buffering)
            self.begun[path] = None
        self._open[path] = file
        return file
