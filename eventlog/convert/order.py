"""Brings what was rendered into the order of positions: the ranges, and which range a position belongs to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.convert.events import integers

SAMPLED_CHANGES = 1_000
"""Of so many rows one is looked at to find the ranges."""


def sample(positions: pa.Array) -> list[int]:
    """A few of the positions of a batch, which stand for all of them."""
    known = positions.drop_null()
    some = range(
        0, len(known), max(1, min(SAMPLED_CHANGES, len(known)))
    )  # older pyarrow asks for NumPy where known[::n] stands
    return [value.as_py() for value in known.take(pa.array(some, pa.int64()))]


def ranges(sampled: Iterable[int], count: int) -> tuple[int, ...]:
    """The boundaries of up to `count` ranges with about as many rows each: range k holds what is below boundary k.

    Positions at or above the last boundary are in the range after it. What is written does not depend on boundaries.
    """
    ordered = sorted(sampled)
    wanted = {ordered[len(ordered) * place // count] for place in range(1, count)} if ordered else set[int]()
    return tuple(sorted(wanted - set(ordered[:1])))


def by_range(batch: pa.RecordBatch, boundaries: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batch sorted by its first column, a position without NULLs, and cut into the ranges that it has rows in."""
    ordered = batch.take(pc.sort_indices(batch.column(0)))
    positions = integers(ordered.column(0))
    start = 0
    for number, boundary in enumerate(boundaries):
        end = bisect_left(positions, boundary, start)
        if end > start:
            yield number, ordered.slice(start, end - start)
        start = end
    if start < len(ordered):
        yield len(boundaries), ordered.slice(start)
