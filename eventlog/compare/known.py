"""Ranges whose rows are known already by two numbers: where these are still the same, nobody looks
further.

Law: what is known of a range is what one side's rows were when the other side had the same. It is
valid for as long as that other side's rows stay as they are; whoever changes them takes it away in
the same transaction.
"""

from __future__ import annotations

from typing import Protocol

from eventlog.compare.ranges import RANGE_ROWS, Range
from eventlog.compare.sides import Totals

Ends = tuple[int | None, int | None]
"""The keys between which a range is."""


class KnownRanges(Protocol):
    """What is known of the ranges of one table."""

    def read_known(self) -> dict[Ends, Totals]:
        """Read all known ranges."""

    def keep(self, ends: Ends, totals: Totals) -> None:
        """Remembers a range."""


class Recognition:
    """Recognises ranges, and cuts them where they were cut before."""

    def __init__(self, ranges: KnownRanges) -> None:
        self._ranges = ranges
        self._known = ranges.read_known()

    @property
    def cuts(self) -> list[int]:
        """List the keys at the ends of known ranges."""
        return sorted({key for ends in self._known for key in ends if key is not None})

    def fits(self, ends: Ends) -> bool:
        """Return True if the range is known and has not grown too long."""
        totals = self._known.get(ends)
        return totals is not None and totals.rows <= 2 * RANGE_ROWS

    def recognises(self, part: Range, totals: Totals) -> bool:
        return self._known.get((part.after, part.upto)) == totals

    def keep(self, part: Range, totals: Totals) -> None:
        """Remembers that both sides have the same rows there."""
        self._ranges.keep((part.after, part.upto), totals)
