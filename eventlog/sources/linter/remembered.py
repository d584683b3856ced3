"""Remembers what bytes or names were read as: images of an update mostly hold the same values, and so do neighbouring rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

MOST: Final = 1 << 10
"""How many values are remembered; when there are more, all are forgotten. More of them made no difference that stood out of the noise."""

LONGEST: Final = 64
"""What is longer is seldom met again, and is not kept."""


class Remembered(dict[bytes | str, Any]):
    """What was read, each once. To look one up costs a third of calling a function that remembers."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, raw: bytes | str) -> Any:
        value = self._read(raw)
        if len(raw) <= LONGEST:
            if len(self) >= MOST:
                self.clear()
            self[raw] = value
        return value
