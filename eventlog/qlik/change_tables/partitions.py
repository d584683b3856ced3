"""Partitions: ranges of time that the rows of change tables are cut into, by the time in their
change_seq.
"""

from __future__ import annotations

import datetime as dt

from msgspec import Struct

from eventlog.qlik.change_seq import TIME_DIGITS, moment_of


class Partition(Struct, frozen=True, kw_only=True):
    """One range of time; `start` belongs to it and `end` does not."""

    start: dt.datetime
    end: dt.datetime

    @property
    def name(self) -> str:
        """Write its name: `20170313T123000_20170313T170000`."""
        return f"{_write_time(self.start)}_{_write_time(self.end)}"

    def is_closed_by(self, change_seq: str) -> bool:
        """Return True if rows with this change_seq come after it, so that none can follow in it."""
        return change_seq[:TIME_DIGITS] >= _digits(self.end)


class Partitions:
    """The partitions of one length; most rows lie in the one that was asked for last."""

    __slots__ = ("_base", "_first", "_found", "_length", "_next")

    def __init__(self, minutes: int, base: dt.datetime) -> None:
        self._base = base
        self._length = dt.timedelta(minutes=minutes)
        # Nothing lies between them, so that the first row looks its partition up.
        self._first, self._next = "1", "0"
        self._found = Partition(start=base, end=base)

    def of(self, change_seq: str) -> Partition:
        """Find the partition of a row. Rows of unknown time stand in the earliest one there is."""
        digits = change_seq[:TIME_DIGITS]
        if not self._first <= digits < self._next:
            at = moment_of(digits) or dt.datetime.min
            into = (at - self._base) % self._length
            # The first and the last partition are cut where the calendar ends.
            start = at - min(into, at - dt.datetime.min)
            left = dt.datetime.max - start
            self._found = Partition(start=start, end=start + min(self._length, left))
            self._first, self._next = _digits(self._found.start), _digits(self._found.end)
        return self._found


def read_partition(name: str) -> Partition:
    start, end = (dt.datetime.strptime(part, "%Y%m%dT%H%M%S") for part in name.split("_"))
    return Partition(start=start, end=end)


def _write_time(at: dt.datetime) -> str:
    # Not %Y, which leaves the zeros of years before 1000 out on some systems.
    return f"{at.year:04d}{at:%m%dT%H%M%S}"


def _digits(at: dt.datetime) -> str:
    return f"{at.year:04d}{at:%m%d%H%M%S}{at.microsecond // 10_000:02d}"
