"""The claim to what a file stands for."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import BinaryIO

from eventlog.core.errors import SourceError


class Claim:
    """A file by which one process keeps others away; it holds nothing, and only who has the claim
    may remove it. The claim ends with the process, whatever happens to that.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None

    def take(self) -> bool:
        """Take the claim; False while another process has it."""
        if self._file is not None:
            return True
        try:
            file = self.path.open("wb")
        except OSError as error:
            hint = "It keeps other publishers away; let this user write there, or change the source's `marks`."
            raise SourceError(f"{self.path} cannot be opened: {error.strerror}.", hint=hint) from error
        try:
            # The system gives it up with the process, however that ends; a file with a number in it
            # would outlive a kill.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who had it may have removed it meanwhile; then the next one locks another file.
            is_there = os.path.samestat(os.fstat(file.fileno()), self.path.stat())
        except OSError:
            is_there = False
        if not is_there:
            file.close()
            return False
        self._file = file
        return True

    def leave(self) -> None:
        """Gives it to whoever waits."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
