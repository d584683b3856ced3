"""What is compared: one side's rows, by ranges of their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from msgspec import Struct

from eventlog.compare.ranges import Digest, Digests, Range
from eventlog.core.sql_types import Category, category

Key = tuple[str | None, ...]
"""The canonical texts of a key, without the lengths before strings."""

Hashes = dict[Key, Digest]
"""By each key, how many rows have it, and the sum of their hashes."""

Rows = dict[Key, tuple[Any, ...]]
"""The values of each row by its key, as the source's types read them."""


class Compared(Struct, frozen=True, kw_only=True):
    """The columns that are compared: names and types as the source has them, the key's first."""

    key: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    """Of the key, then of the others."""

    @property
    def counted(self) -> bool:
        """Return True if the first column of the key is a whole number."""
        return category(self.types[0]) is Category.INT

    @property
    def key_types(self) -> tuple[str, ...]:
        return self.types[: len(self.key)]


class Totals(Struct, frozen=True, kw_only=True):
    """How many rows a range has, and the sum of their hashes, by whichever hash is the database's
    quickest.
    """

    rows: int
    total: int


class Snapshot(Protocol):
    """One moment of a side."""

    def count(self) -> int:
        """Count the rows."""

    def find_bound(self, after: int | None, rows: int) -> int | None:
        """Find the first key column of the row so many rows behind the ones up to `after`; None where there
        are not so many.
        """

    def digests(self, part: Range) -> Digests:
        """Digest the buckets of a range."""

    def totals(self, part: Range) -> Totals:
        """Sum up the whole range as two numbers."""

    def hashes(self, part: Range, buckets: Sequence[int] | None) -> Hashes:
        """Hash the rows in some buckets of a range; None means all."""

    def rows(self, keys: Sequence[Key]) -> Rows:
        """Read the rows with these keys, as far as there were any."""


class ComparedSide(Protocol):
    """The rows of one table, wherever they are."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Open the side as it is now; it may see another moment each time."""

    def rows(self, keys: Sequence[Key]) -> Rows:
        """Read the rows with these keys as they are now, as far as there are any."""

    @property
    def ordered(self) -> bool:
        """Return True if the first key column is a whole number there, by which ranges can be cut."""

    @property
    def native(self) -> str:
        """Return the kind of database, if it has a quicker hash of its own than the one common to all."""


def batches(keys: Sequence[Key], size: int) -> Iterator[Sequence[Key]]:
    """Yield the keys in pieces."""
    for start in range(0, len(keys), size):
        yield keys[start : start + size]
