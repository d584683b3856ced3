"""What must survive a crash: named marks beside the log, their values, and numbers of rows as text."""

from __future__ import annotations

import datetime as dt
import re
import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from eventlog.core.errors import DataError, shorten

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.log import Log

HOLDING: Final = "holding"
"""New each time that rows are held, released or requeued, or tables tracked: memory is old then."""

CONVERTED: Final = "converted"
"""Batches that a conversion has done for all outputs that are past them, and for later ones."""

SEEN: Final = "seen"
"""Numbers of rows that nobody has to look for, where many rows wait: see publisher/memory.py."""

TRACKED: Final = "tracked"
"""Another text each time that somebody tracks tables: they may have other columns than before."""

PACE: Final = "pace"
"""How many rows were settled in the last minute."""

OUTPUTS: Final = "outputs"
"""How each output stands, for those who look; nothing that is published depends on it."""

VERIFIED: Final = "verified"
"""The last proof of each table at each output, for those who look: see core/proofs.py."""

SERVED: Final = "served"
"""The names of the outputs that the publisher has who took the lock last."""

NOT_FOLLOWED: Final = "not followed"
"""Tables whose triggers the publisher could not make anew, and why."""

LOOKS_REFUSED: Final = "looks refused"
"""Why the publisher cannot look for new rows between its turns, where it cannot."""

CURRENT_AT: Final = "current at"
"""The stamp of tables at which all triggers were current, for the publisher alone: see tracked/stamp.py."""

PUBLISHER: Final = "publisher"
"""Who holds the lock of the log, and until when: see sources/log/lock.py."""

LOG: Final = "log"
"""Which log this is, for ever: a UUID of the first holder of the lock. A copy has it too."""

EPOCH: Final = "epoch"
"""A number that grows each time that somebody takes the lock."""

WRITTEN: Final = "written"
"""Another text with each transaction of the journal: who finds the text of an earlier one knows that
the database has forgotten the last.
"""

RESUMED: Final = "resumed: "
"""Before an output's name: how far it was behind when somebody resumed it."""

TRY_NOW: Final = "try now: "
"""Before an output's name: the publisher is to try it again without waiting any longer."""

Run = tuple[int, int]
"""The first and the last of numbers without a gap."""

T = TypeVar("T")

_REMEDY: Final = "Somebody else has written it; restore the table of marks from a backup."
# Two points and no hyphen, for a number may have a minus before it.
_runs = re.compile(r"(-?\d+)(?:\.\.(-?\d+))?(?:,|$)")


class Marks:
    """The marks of a log, in its companion table: they change together with the rows they mean."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def get(self, connection: Connection, name: str) -> str | None:
        """Return the mark's text; None if there is none."""
        row = connection.execute(self._log.query("mark_read"), {"name": name}).first()
        # Oracle gives an empty text back as NULL.
        return None if row is None else str(row[0] or "")

    def all(self, connection: Connection) -> dict[str, str]:
        """Return every mark by name."""
        marks = self._log.rows(connection, self._log.query("marks_read"))
        return {str(name): str(value or "") for name, value in marks}

    def set(self, connection: Connection, name: str, value: str) -> None:
        """Makes or replaces a mark in the caller's transaction."""
        connection.execute(self._log.query("mark_write"), {"name": name, "value": null_if_empty(value)})

    def lock(self, connection: Connection, name: str) -> None:
        """Waits for who changes a mark, and keeps others from it until the transaction ends."""
        connection.execute(self._log.query("mark_lock"), {"name": name})

    def clear(self, connection: Connection, name: str) -> None:
        """Takes a mark away in the caller's transaction."""
        connection.execute(self._log.query("mark_clear"), {"name": name})


def note_change(connection: Connection, log: Log) -> None:
    """Makes what any publisher knows of the tables old, and waits for one that writes them now."""
    Marks(log).set(connection, HOLDING, secrets.token_hex(8))


def null_if_empty(text: str) -> str | None:
    """Return NULL for an empty text, as Oracle does."""
    return text or None


def next_epoch(former: str | None, now: dt.datetime) -> int:
    """Return the epoch after a former one, at least the clock's, for a log that was restored."""
    milliseconds = (now - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1)
    before = int(former) if former is not None and former.isdecimal() else 0
    return max(before + 1, milliseconds)


def as_text(value: object) -> str:
    """Write a value as JSON for a mark or a column."""
    return msgspec.json.encode(value).decode()


def value_of(text: str | None, kind: type[T]) -> T | None:
    """Read a mark nothing depends on; None if missing or unreadable."""
    try:
        return None if text is None else msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError:
        return None


_first, _last = itemgetter(0), itemgetter(1)


class RowRanges:
    """A set of numbers that never changes: ascending runs that do not touch."""

    __slots__ = ("parts",)

    def __init__(self, parts: Iterable[Run] = ()) -> None:
        joined: list[Run] = []
        for first, last in sorted(parts):
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(joined[-1][1], last))
            else:
                joined.append((first, last))
        self.parts: tuple[Run, ...] = tuple(joined)

    @classmethod
    def read(cls, text: str) -> RowRanges:
        """Parse the text of `text`."""
        parts: list[Run] = []
        at = 0
        while at < len(text):
            match = _runs.match(text, at)
            if match is None or (match.end() == len(text) and text.endswith(",")):
                problem = f"is not a list of numbers (character {at + 1})."
                raise DataError(f"The mark {shorten(text)!r} {problem}", hint=_REMEDY)
            parts.append((int(match[1]), int(match[2] or match[1])))
            at = match.end()
        return cls(parts)

    @classmethod
    def of(cls, numbers: Iterable[int]) -> RowRanges:
        """Make a set of these numbers."""
        found = sorted(set(numbers))
        made = cls.__new__(cls)
        made.parts = ()
        if found and found[-1] - found[0] < len(found):
            # Without a gap, by far the most common, and seen without a look at each.
            made.parts = ((found[0], found[-1]),)
        elif found:
            gaps = [pair for pair in pairwise(found) if pair[1] - pair[0] > 1]
            made.parts = tuple(zip([found[0], *map(_last, gaps)], [*map(_first, gaps), found[-1]], strict=True))
        return made

    @classmethod
    def run(cls, first: int, last: int) -> RowRanges:
        """Make a set from the first to the last number; empty if `last` is below `first`."""
        return cls([(first, last)] if first <= last else ())

    @classmethod
    def union(cls, sets: Sequence[RowRanges]) -> RowRanges:
        """Join these sets."""
        if len(sets) == 1:
            return sets[0]
        several = [ranges for ranges in sets if ranges.parts]
        if len(several) < 2:
            return several[0] if several else NO_ROWS
        return cls([part for ranges in several for part in ranges.parts])

    def meets(self, other: RowRanges) -> bool:
        """Return True if the sets have a number in common."""
        for first, last in other.parts:
            index = bisect_right(self.parts, last, key=_first) - 1
            if index >= 0 and self.parts[index][1] >= first:
                return True
        return False

    def within(self, first: int, last: int) -> RowRanges:
        """Return the numbers from `first` to `last`; empty if `last` is below `first`."""
        if first > last:
            return RowRanges()
        begin = bisect_left(self.parts, first, key=_last)
        end = bisect_right(self.parts, last, key=_first)
        return RowRanges([(max(start, first), min(stop, last)) for start, stop in self.parts[begin:end]])

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self.parts, number, key=_first) - 1
        return index >= 0 and self.parts[index][1] >= number

    def __iter__(self) -> Iterator[int]:
        for first, last in self.parts:
            yield from range(first, last + 1)

    def __len__(self) -> int:
        count = 0
        for first, last in self.parts:
            count += last - first + 1
        return count

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowRanges) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __or__(self, other: RowRanges) -> RowRanges:
        return RowRanges([*self.parts, *other.parts])

    def __sub__(self, other: RowRanges) -> RowRanges:
        taken = other.parts
        if not taken or not self.parts or taken[0][0] > self.parts[-1][1] or taken[-1][1] < self.parts[0][0]:
            return self
        left: list[Run] = []
        index = 0
        # Both ascend: each range is cut by those that begin before its end.
        for first, last in self.parts:
            while index < len(taken) and taken[index][1] < first:
                index += 1
            at, start = index, first
            while at < len(taken) and taken[at][0] <= last:
                if taken[at][0] > start:
                    left.append((start, taken[at][0] - 1))
                start = taken[at][1] + 1
                at += 1
            if start <= last:
                left.append((start, last))
        return RowRanges(left)

    def __and__(self, other: RowRanges) -> RowRanges:
        # Most often all of these are among the others, such as the rows of a plan that is over.
        if self.parts == other.parts:
            return self
        return self - (self - other)

    def __repr__(self) -> str:
        return f"RowRanges({self.text()!r})"

    def text(self) -> str:
        """Write the set for a mark, such as `60..62,70`."""
        return ",".join([str(first) if first == last else f"{first}..{last}" for first, last in self.parts])


NO_ROWS: Final = RowRanges()
