"""What a consumer does with row changes that it was given: XDS files, as eventlog would write them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.backlog import BATCH_SIZE, LIMIT, PER_CHANGE
from eventlog.core.model import Change, Document
from eventlog.core.seams import encode
from eventlog.sinks.files import FileSink
from eventlog.xds.write import XdsFormat

AT_ONCE: Final = LIMIT // PER_CHANGE
"""As many changes as a cycle of the publisher holds."""


class Documents:
    """Takes changes and writes them, a cycle's worth at a time."""

    def __init__(self, folder: Path) -> None:
        self._sink = FileSink(folder, ".xml")
        self._sink.open(None)
        self._form = XdsFormat(batch_size=BATCH_SIZE)
        self._waiting: list[Change] = []
        self.written = 0

    def take(self, change: Change) -> None:
        """Takes one more."""
        self._waiting.append(change)
        if len(self._waiting) == AT_ONCE:
            self.write()

    def write(self) -> None:
        """Makes what was taken durable."""
        if self._waiting:
            self._sink.commit("", [made for made in encode(self._form, self._waiting) if isinstance(made, Document)])
            self.written += len(self._waiting)
            self._waiting = []
