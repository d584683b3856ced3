"""change_seq: 16 digits of time (UTC, to the hundredth of a second) and a 19-digit number that
counts all changes.

Law: as text it never runs backwards, whatever the clock does: the time stays where it was and the
number grows.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct

from eventlog.core.errors import DataError, shorten
from eventlog.core.model import Change
from eventlog.core.times import read_moment

CHARACTERS: Final = 35
TIME_DIGITS: Final = 16
# The last three digits of a number, made once: `_row` only puts them behind a head.
_ENDS: Final = [f"{number:03d}" for number in range(1000)]
_MARKS: Final = frozenset(["-- ::", "--T::"])
"""What stands between the digits of a day and a time of it to the second."""
_SIGNS: Final = dict.fromkeys(map(ord, "-:.T"))
"""What stands between the digits of a time in ISO 8601."""
_form = re.compile(r"\d{35}", re.ASCII).fullmatch
_iso = re.compile(
    # Blanks round it, a comma before the fraction, and zones such as `+02` come from real sources.
    r" *(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,12}))? ?(Z|[+-]\d\d(?::?\d\d)?)?)? *",
    re.ASCII,
).fullmatch


class ChangeSeq(Struct, frozen=True, order=True):
    """One value: its time, and its number. It sorts as its text does."""

    time: str
    number: int

    @property
    def text(self) -> str:
        return f"{self.time}{self.number:019d}"

    @classmethod
    def parse(cls, text: str) -> ChangeSeq:
        """Reads 35 digits; the empty text is the beginning, before every change."""
        if not text:
            # 35 zeros, and not None, so that a fresh start compares and continues as any other.
            return START
        if _form(text) is None:
            raise DataError(f"{shorten(text)!r} is no change_seq; it has {CHARACTERS} digits.")
        return cls(text[:TIME_DIGITS], int(text[TIME_DIGITS:]))

    def later(self, changes: int, stamp: str) -> ChangeSeq:
        """Return the value so many changes later, with `stamp` as the latest of their times."""
        return ChangeSeq(max(self.time, stamp), self.number + changes)


START: Final = ChangeSeq("0" * TIME_DIGITS, 0)


class Sequencer:
    """Gives every change its change_seq; it goes on from the last one that was given.

    Who numbers a range from its middle begins after `ChangeSeq.later`.
    """

    __slots__ = ("_number", "_seen", "_time")

    def __init__(self, after: str) -> None:
        start = ChangeSeq.parse(after)
        self._time = start.time
        self._number = start.number
        self._seen: object = None

    @property
    def last(self) -> str:
        return f"{self._time}{self._number:019d}"

    def next(self, change: Change) -> str:
        """Return the change's value: its commit time, else its own, unless that lies before the last one's."""
        return self.step(time_digits(time_of(change)))

    def step(self, stamp: str) -> str:
        """Return the value of a change of this time, in its 16 digits."""
        if stamp is not self._seen:  # the changes of one transaction share one time
            self._seen = stamp
            # A clock that was set back must not lead the text back; the number alone grows then.
            self._time = max(self._time, stamp)
        self._number += 1
        return f"{self._time}{self._number:019d}"

    def many(self, changes: Sequence[Change]) -> list[str]:
        """Return the value of each of the changes, as `next` does."""
        sequences: list[str] = []
        # By the object and not by its value: the changes of one transaction share one time, which
        # is read once.
        for _, run in groupby(map(time_of, changes), id):
            same = list(run)
            if same[0] is not self._seen:
                self._seen = same[0]
                self._time = max(self._time, time_digits(same[0]))
            sequences += self._row(len(same))
        return sequences

    def _row(self, count: int) -> list[str]:
        """Write the next numbers; most differ in their last three digits only."""
        time, first = self._time, self._number + 1
        last = self._number = self._number + count
        # The run crosses a thousand, so that it has not one head; that is rare.
        if first // 1000 != last // 1000:
            return [f"{time}{number:019d}" for number in range(first, last + 1)]
        head = f"{time}{first // 1000:016d}"
        return [head + end for end in _ENDS[first % 1000 : last % 1000 + 1]]


class Stamps:
    """The 16 digits of changes' times.

    The changes of one transaction share one time, which is read once.
    """

    __slots__ = ("_digits", "_seen")

    def __init__(self) -> None:
        self._seen: object = None
        self._digits = START.time

    def __call__(self, change: Change) -> str:
        # time_of, in line, for every change comes here.
        when, transaction = change.time, change.transaction
        if transaction is not None and transaction.time is not None:
            when = transaction.time
        if when is not self._seen:
            self._seen, self._digits = when, time_digits(when)
        return self._digits


def moment_of(change_seq: str) -> dt.datetime | None:
    """Read the time in a change_seq; None where it is unknown."""
    digits = change_seq[:TIME_DIGITS]
    if digits in ("", START.time):
        return None
    # `%f` takes six digits, and a change_seq has two of them.
    return dt.datetime.strptime(f"{digits}0000", "%Y%m%d%H%M%S%f")


def time_of(change: Change) -> dt.datetime | str | None:
    """Return the time of the change's commit, else its own."""
    transaction = change.transaction
    if transaction is None or transaction.time is None:
        return change.time
    return transaction.time


def time_digits(when: dt.datetime | str | None) -> str:
    """Write the 16 digits of a time; zeros for none, or an unreadable one."""
    at = utc(when)
    if at is None:
        return START.time
    return at.isoformat(timespec="microseconds").translate(_SIGNS)[:TIME_DIGITS]


def utc(when: dt.datetime | str | None) -> dt.datetime | None:
    """Convert a time to UTC, without a zone; a time that names no zone counts as UTC.

    Return None for an unreadable one.
    """
    at = read_time(when) if isinstance(when, str) else when
    if at is None or at.tzinfo is None:
        return at
    try:
        return at.astimezone(dt.UTC).replace(tzinfo=None)
    except OverflowError:  # a zone that leads out of the calendar
        return None


def read_time(text: str) -> dt.datetime | None:
    """Parse a time in ISO 8601, to the microsecond; None where the text is none."""
    # What nearly all are is read as it stands: a day, and a time of it to the second.
    if len(text) == 19 and text[4::3] in _MARKS:
        try:
            return read_moment(text)
        except ValueError:
            return None
    match = _iso(text)
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    micros = ""
    if fraction:
        # `read_moment` wants just six digits: more are cut off, fewer are filled up.
        micros = f".{(fraction + '00000')[:6]}"
    # Minutes without seconds get some; whole times are cut where they end.
    clock = f"{clock or '00:00'}:00"[:8]
    try:
        return read_moment(f"{day}T{clock}{micros}{zone or ''}")
    except ValueError:  # 30 February, 25 o'clock
        return None
