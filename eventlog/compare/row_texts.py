"""A row as it is kept: its key and its values as texts, and its hashes. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from eventlog.compare.sides import Compared, Key
from eventlog.compare.texts import (
    canonical_text,
    hash_of,
    is_string,
    plain_text,
    read_cell,
    reader_of,
    row_text,
)


class KeptRow(NamedTuple):
    """A row: its key in JSON, the first number of the key where there is room for it, two hashes,
    the values in JSON.
    """

    key: str
    first: int | None
    spot: int
    hash: int
    cells: str


class RowTexts:
    """Writes and reads rows of some columns, the key's values first; what a column cannot read
    stays as it is.
    """

    def __init__(self, compared: Compared) -> None:
        self.width = len(compared.key)
        self._strings = [is_string(sql_type) for sql_type in compared.types]
        self._reads = [reader_of(sql_type) for sql_type in compared.types]

    def key(self, values: Sequence[Any]) -> Key:
        """Write the texts of a key by which its row is found on both sides."""
        # Not strict: the readers of the key's columns are the first ones.
        cells = zip(self._reads, values, strict=False)
        return tuple([plain_text(read_cell(read, value)) for read, value in cells])

    def first(self, values: Sequence[Any]) -> int | None:
        """Return the first number of a key, where there is room for it."""
        first = read_cell(self._reads[0], values[0])
        # SQLite has room for 64 bits.
        if type(first) is int and abs(first) < 2**63:
            return first
        return None

    def keep_row(self, row: Sequence[Any]) -> KeptRow:
        """Convert a row to its stored form."""
        values = [read_cell(read, cell) for read, cell in zip(self._reads, row, strict=True)]
        plain_texts = [plain_text(value) for value in values]
        texts = [
            canonical_text(value, text, string=string)
            for value, text, string in zip(values, plain_texts, self._strings, strict=True)
        ]
        width = self.width
        return KeptRow(
            json.dumps(plain_texts[:width]),
            self.first(values),
            hash_of(row_text(texts[:width])),
            hash_of(row_text(texts)),
            json.dumps(plain_texts[width:]),
        )

    def cells(self, kept: str) -> list[Any]:
        """Read the values of a stored row as texts."""
        cells: list[Any] = json.loads(kept)
        return cells

    def values(self, kept: str) -> tuple[Any, ...]:
        """Read the values of a stored row."""
        cells = zip(self._reads[self.width :], json.loads(kept), strict=True)
        return tuple([read_cell(read, cell) for read, cell in cells])

    @property
    def empty(self) -> list[Any]:
        """Return as many NULLs as there are values."""
        return [None] * (len(self._reads) - self.width)
