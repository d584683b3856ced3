"""The comparison: ranges of keys, the buckets of each that differ, the rows of those, and at last
their values.

Both sides of a range are read at the same time, each in a transaction of its own that ends with the
range: nothing is held for longer. Rows that change meanwhile may be named; a second comparison
shows what they are then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from eventlog.compare.known import Recognition
from eventlog.compare.pace import Pace
from eventlog.compare.ranges import RANGE_ROWS, Digests, Range, differing, make_range, slices, split_buckets
from eventlog.compare.sides import (
    Compared,
    ComparedSide,
    Hashes,
    Key,
    Rows,
    Snapshot,
    Totals,
    batches,
)
from eventlog.compare.texts import same

READ_ROWS: Final = 1000
"""Rows whose values are compared at once."""


class DifferenceKind(StrEnum):
    """How a row differs."""

    MISSING = "missing"
    EXTRA = "extra"
    VALUE = "value"
    DOUBLE = "double"


class ValueDifference(Struct, frozen=True):
    """A column whose values differ."""

    column: str
    source: Any
    target: Any


class Difference(Struct, frozen=True, kw_only=True):
    """A row that differs: it is missing on the target's side, extra there, stands there twice, or
    has other values.
    """

    key: Key
    kind: DifferenceKind
    values: tuple[ValueDifference, ...] = ()


class ComparisonProgress(Struct, kw_only=True):
    """How far a comparison is. `hashed` are rows of the source, `looked` those of which the hashes
    were compared one by one.
    """

    hashed: int = 0
    looked: int = 0


class Comparison:
    """Compares the rows of two sides, the source's and the target's."""

    def __init__(
        self,
        source: ComparedSide,
        target: ComparedSide,
        compared: Compared,
        pace: Pace | None = None,
        known: Recognition | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._compared = compared
        self._pace = pace or Pace()
        self._known = known
        self._doubles: set[Key] = set()
        self.progress = ComparisonProgress()

    def differences(self) -> Iterator[Difference]:
        """Yield every row that differs, range by range."""
        for keys in self.suspects():
            if keys:
                yield from self.compare_again(keys)

    def suspects(self) -> Iterator[Sequence[Key]]:
        """Yield the keys of rows with different hashes, range by range, some at a time; none for an equal
        range.
        """
        with ThreadPoolExecutor(2, thread_name_prefix="compare") as pool:
            for part in self._ranges():
                self._pace.enter()
                suspects = self._suspects(pool, part)
                if suspects:
                    yield from batches(suspects, READ_ROWS)
                else:
                    # So that whoever asks can do something else between two ranges.
                    yield ()

    def compare_again(self, keys: Sequence[Key]) -> list[Difference]:
        """Compare these rows by their values as they are now."""
        before = self._source.rows(keys)
        there = self._target.rows(keys)
        differences = [self._difference(key, before, there) for key in keys]
        return [difference for difference in differences if difference is not None]

    def _ranges(self) -> Iterator[Range]:
        native = self._source.native != "" and self._source.native == self._target.native
        if not (self._source.ordered and self._target.ordered):
            with self._source.snapshot() as source, self._target.snapshot() as target:
                rows = max(source.count(), target.count())
            yield from slices(rows, native=native)
            return
        counted = len(self._compared.key) == 1
        cuts = [] if self._known is None else self._known.cuts
        after: int | None = None
        for cut in (*cuts, None):
            while after is None or after != cut:
                upto = self._end(after, cut)
                yield make_range(after, upto, counted=counted, native=native)
                if upto is None:
                    return
                after = upto

    def _end(self, after: int | None, cut: int | None) -> int | None:
        """Find the end of a range that begins there and does not go beyond a cut."""
        if self._known is not None and self._known.fits((after, cut)):
            return cut
        with self._source.snapshot() as source:
            upto = source.find_bound(after, RANGE_ROWS)
        if upto is None or (cut is not None and upto > cut):
            return cut
        return upto

    def _suspects(self, pool: ThreadPoolExecutor, part: Range) -> list[Key]:
        """Find the rows of a range with different hashes."""
        with self._source.snapshot() as source, self._target.snapshot() as target:
            totals = self._totals(source, part)
            known = self._known
            if totals is not None and known is not None and known.recognises(part, totals):
                self._count(totals.rows)
                return []
            # Both databases work at the same time.
            reading = pool.submit(source.digests, part)
            there: Digests = target.digests(part)
            here: Digests = reading.result()
            self._count(sum(count for count, _ in here.values()))
            suspects: list[Key] = []
            alone = False
            buckets = differing(here, there)
            pieces: Iterable[Sequence[int] | None] = ()
            if buckets:
                pieces = split_buckets(buckets, part.buckets, len(here.keys() | there.keys()))
            for piece in pieces:
                listing = pool.submit(source.hashes, part, piece)
                others: Hashes = target.hashes(part, piece)
                mine: Hashes = listing.result()
                self.progress.looked += len(mine)
                keys = mine.keys() | others.keys()
                suspects += [key for key in keys if mine.get(key) != others.get(key)]
                alone = alone or mine.keys() != others.keys()
                self._doubles |= {key for key, (count, _) in others.items() if count > 1}
            if totals is not None and known is not None and not alone:
                # Hashes may differ where two databases write the same value differently. Such a
                # range is equal too, and is known by its totals from now on.
                suspects = self._differing(source, target, suspects)
                if not suspects:
                    known.keep(part, totals)
        # Keys have NULLs, which Python does not compare with texts.
        return sorted(suspects, key=str)

    def _count(self, rows: int) -> None:
        self.progress.hashed += rows
        self._pace.read(rows)

    def _differing(self, source: Snapshot, target: Snapshot, keys: Sequence[Key]) -> list[Key]:
        """Choose the rows that differ at this moment, and not in their texts alone."""
        differing_keys: list[Key] = []
        for some in batches(keys, READ_ROWS):
            here, there = source.rows(some), target.rows(some)
            for key in some:
                is_on_both = key in here and key in there
                if not is_on_both or not all(map(same, here[key], there[key])):
                    differing_keys.append(key)
        return differing_keys

    def _totals(self, source: Snapshot, part: Range) -> Totals | None:
        """Sum up the range as two numbers, where somebody keeps them; they must be of the same moment as its
        hashes.
        """
        if self._known is None or part.last is not None:
            return None
        return source.totals(part)

    def _difference(self, key: Key, here: Rows, there: Rows) -> Difference | None:
        # It may be gone on both sides by now.
        if key not in here and key not in there:
            return None
        if key not in there:
            return Difference(key=key, kind=DifferenceKind.MISSING)
        if key not in here:
            return Difference(key=key, kind=DifferenceKind.EXTRA)
        both = zip(self._compared.names, here[key], there[key], strict=True)
        values = [ValueDifference(name, mine, other) for name, mine, other in both if not same(mine, other)]
        if values:
            return Difference(key=key, kind=DifferenceKind.VALUE, values=tuple(values))
        if key in self._doubles:
            return Difference(key=key, kind=DifferenceKind.DOUBLE)
        return None
