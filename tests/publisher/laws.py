"""The laws of every history, whoever made it: how often a row comes to an output, in which order, and how it ends.

There are two kinds of histories, those of this package, which know what everybody did at each moment, and those of real
processes (tests/hardening/ledger), which know what was committed, the log and what readers found. Each says what is
due; what is wrong with what came is said here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import NamedTuple

LOST, TWICE, OUT_OF_ORDER, STILL_WAITS, WRONG_STATUS = "lost", "twice", "out of order", "still waits", "wrong letter"


class Due(NamedTuple):
    """How often a row is to come to an output."""

    least: float = 1
    most: float = 1

    def judge(self, count: int) -> str | None:
        """Judge how often it came."""
        if count > self.most:
            return TWICE
        return LOST if count < self.least else None


class Arrival(NamedTuple):
    """A row that came to an output; those of its object that came before the place `since` are no matter."""

    object: Hashable
    number: int
    since: int = 0


def find_overtaken(came: Iterable[Arrival]) -> Iterator[tuple[int, int, int]]:
    """Yield the place and the number of each row that came behind a later one of its object, and the number of that one."""
    former: defaultdict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for place, one in enumerate(came):
        latest = max((number for at, number in former[one.object] if at >= one.since), default=one.number)
        if latest > one.number:
            yield place, one.number, latest
        former[one.object].append((place, one.number))


def judge_status(statuses: Collection[str], allowed: Collection[str]) -> str | None:
    """Judge how the rows of a change ended, all of them in one of the allowed ways."""
    if {*statuses} <= {*allowed}:
        return None
    return STILL_WAITS if "N" in statuses else WRONG_STATUS
