"""How a conversion is cut: into how many buckets, and which parts a task writes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

from msgspec import Struct

from eventlog.convert.inputs import Unit

BUCKET_ROWS: Final = 100_000
BUCKET_BYTES: Final = 20_000_000
RANGE_ROWS: Final = 40_000
RANGE_BYTES: Final = 10_000_000
ROW_BYTES: Final = 150
"""What a row of an input file is taken to need, where nobody has counted the rows."""

MOST_BUCKETS: Final = 256
MOST_RANGES: Final = 4_096
SPAN_EVENTS: Final = 50_000
"""Changes that are worth a task of their own when parts are written."""


class PartSpan(Struct, frozen=True, kw_only=True):
    """Whole parts: changes `first` to `last` of all; the first stands in the range `range` after
    `skipped` others, the last in `until`.
    """

    first: int
    last: int
    range: int
    skipped: int
    until: int


def bucket_count(units: Sequence[Unit]) -> int:
    """Choose how many buckets rows need to sort each in memory: a power of two, limited."""
    # Nobody has counted the rows of a log; files of that many buckets cost nearly nothing.
    wanted = 32
    if units:
        rows = sum(unit.size // ROW_BYTES if unit.rows is None else unit.rows for unit in units)
        size = sum(unit.size for unit in units)
        wanted = max(rows // BUCKET_ROWS, size // BUCKET_BYTES)
    # A power of two, for `bucket_of` takes the low bits of a hash.
    return min(MOST_BUCKETS, 1 << wanted.bit_length())


def range_count(rows: int, size: int = 0) -> int:
    """Choose a number of ranges to sort each in memory; `size` are the bytes of all rows."""
    return min(MOST_RANGES, 1 + max(rows // RANGE_ROWS, size // RANGE_BYTES))


def part_spans(
    counted: Mapping[int, int],
    part_events: int,
    at_once: int = SPAN_EVENTS,
    *,
    beyond: int = 0,
) -> Iterator[PartSpan]:
    """Cut changes, counted by range, into spans of whole parts.

    A span may need `beyond` changes more to be read for it.
    """
    # Each range that holds changes, and how many changes stand before it.
    starts: list[tuple[int, int]] = []
    changes = 0
    for label in sorted(counted):
        starts.append((label, changes))
        changes += counted[label]
    width = part_events * max(1, at_once // part_events)
    for first in range(0, changes, width):
        last = min(first + width, changes)
        last_read = min(last + beyond, changes) - 1
        label, start = starts[bisect_right(starts, first, key=itemgetter(1)) - 1]
        until, _ = starts[bisect_right(starts, last_read, key=itemgetter(1)) - 1]
        yield PartSpan(first=first, last=last, range=label, skipped=first - start, until=until)
