"""Ranges of keys, the buckets that their rows are in, and which of them differ. Pure.

A range ends at a value of the first key column where that is a whole number, whose order is the
same everywhere: its rows are found by an index, and its end is the same on both sides. Of all other
tables a range is some of the buckets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from eventlog.compare.texts import HALF_BITS

RANGE_ROWS: Final = 50_000
"""Rows of a range that ends at a key."""

BUCKET_ROWS: Final = 24
"""Rows of a bucket. More of them mean fewer sums, and more rows to be looked at for each one that
differs.
"""

SLICE_BUCKETS: Final = 65_536
"""Buckets of a range where the key has no order that both sides share; every such range reads the
whole table.
"""

ASKED_BUCKETS: Final = 900
"""Buckets that one query names; Oracle takes no thousand."""

Digest = tuple[int, int]
"""How many rows a bucket has, and the sum of their hashes."""

Digests = Mapping[int, Digest]


class Range(Struct, frozen=True, kw_only=True):
    """Rows whose first key column is above `after` and not above `upto`, in some of so many
    `buckets`.

    None is no bound. Rows whose first key column is NULL belong to the range without a bound below.
    With `counted` that column is the whole key, and a row's bucket is given by its remainder;
    else by its hash. `native` has both databases, which are of one kind, hash in their own
    way.
    """

    after: int | None = None
    upto: int | None = None
    buckets: int
    first: int = 0
    last: int | None = None
    counted: bool = False
    native: bool = False


def slices(rows: int, *, native: bool = False) -> Iterator[Range]:
    """Yield the ranges of a table whose keys have no order common to both sides."""
    buckets = max(rows // BUCKET_ROWS, 1)
    for first in range(0, buckets, SLICE_BUCKETS):
        last = min(first + SLICE_BUCKETS, buckets) - 1
        # No bound where it is all: then the database need not compare the buckets of rows.
        whole = first == 0 and last == buckets - 1
        yield Range(buckets=buckets, first=first, last=None if whole else last, native=native)


def make_range(
    after: int | None,
    upto: int | None,
    *,
    counted: bool = False,
    native: bool = False,
) -> Range:
    """Make a range of about RANGE_ROWS rows between two keys."""
    buckets = RANGE_ROWS // BUCKET_ROWS
    return Range(after=after, upto=upto, buckets=buckets, counted=counted, native=native)


def digests(rows: Sequence[tuple[int, int, int, int]]) -> dict[int, Digest]:
    """Read a database's answer about buckets: the number of each, its rows, and the sum of their hashes in
    two halves.
    """
    # In two halves, because the sum of many hashes of 60 bits has no room in 64.
    return {int(bucket): (int(count), (int(high) << HALF_BITS) + int(low)) for bucket, count, high, low in rows}


def differing(left: Digests, right: Digests) -> list[int]:
    """List the buckets that differ between both sides."""
    buckets = left.keys() | right.keys()
    return sorted(bucket for bucket in buckets if left.get(bucket) != right.get(bucket))


def split_buckets(buckets: Sequence[int], of: int, there: int) -> Iterator[Sequence[int] | None]:
    """Yield the differing buckets in portions for one query each; None for all, where most of those that
    are there differ.

    `of` is how many buckets the range has, `there` how many of them have rows.
    """
    if len(buckets) * 2 > min(of, there) and of <= RANGE_ROWS // BUCKET_ROWS:
        yield None
        return
    for start in range(0, len(buckets), ASKED_BUCKETS):
        yield buckets[start : start + ASKED_BUCKETS]
