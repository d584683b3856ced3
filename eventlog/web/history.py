"""The curves over a restart: samples in a file, written now and then and when the page ends."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

import msgspec
from msgspec import Struct

from eventlog.core.durable_files import write_file
from eventlog.web.reading import RANGES, History

ENTRY_SECONDS: Final = 300.0
"""Seconds between two entries."""


class _Entry(Struct, frozen=True, kw_only=True):
    """What stands in the file: which log it is, and its samples."""

    database: str
    log: str
    history: History


class HistoryFile:
    """Keeps the samples of one log in a file; without a path in nothing. What cannot be read or written is no trouble."""

    def __init__(self, path: str | None, database: str, log: str) -> None:
        self._path = None if path is None else Path(path)
        self._database, self._log = database, log
        self._entered = monotonic()

    def read(self) -> History:
        """The samples of this log that stand there."""
        if self._path is None:
            return History()
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=_Entry)
        except (OSError, msgspec.MsgspecError):
            return History()
        same = (found.database, found.log, len(found.history.levels)) == (self._database, self._log, len(RANGES))
        return found.history if same else History()

    def enter(self, history: History, *, now: bool = False) -> None:
        """Writes the samples, if it is time for that or must be `now`."""
        if self._path is None or not (now or monotonic() - self._entered >= ENTRY_SECONDS):
            return
        self._entered = monotonic()
        entry = _Entry(database=self._database, log=self._log, history=history)
        with suppress(OSError):
            write_file(self._path, msgspec.json.encode(entry))
