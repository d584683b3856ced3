"""The ranges that the keys of a load are cut into, how far each is, and how that stands in marks. Pure.

A range holds the keys after one and up to another, that one included; the first and the last are open. So every key is
in one range, also one that is inserted later. Keys are the texts of the log; the database compares what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError

NAME_CHARACTERS: Final = 200
_numbered = re.compile(r"refresh(?: ([0-9]{1,6}))?: ").match


class Stand(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a range is: rows after the key `after` and up to `upto` are still to come; an empty text is no bound.

    `rows` were written, of about `total`, for one output `only` or for all. `load` tells ranges of one cut, of which there are `ranges`, from others.
    """

    where: str | None = None
    only: str = ""
    after: str = ""
    upto: str = ""
    rows: int = 0
    total: int = 0
    done: bool = False
    place: int = 0
    ranges: int = 1
    load: str = ""


Stands = tuple[Stand, ...]


def shares(stand: Stand, most: int, chunk: int) -> tuple[int, int]:
    """Into how many ranges the rest of one is cut, and how many rows each gets: never fewer than a transaction writes."""
    rest = stand.total - stand.rows
    pieces = max(1, min(most, rest // chunk))
    return pieces, rest // pieces


def parted(stand: Stand, bounds: Sequence[str], share: int) -> list[Stand]:
    """The rest of a range in ranges that end at the bounds, which are in order; each has a share of the rows."""
    pieces = []
    after, rows, total = stand.after, stand.rows, stand.total
    for bound in bounds:
        pieces.append(replace(stand, after=after, upto=bound, rows=rows, total=rows + share))
        after, rows, total = bound, 0, total - rows - share
    return [*pieces, replace(stand, after=after, rows=rows, total=total)]


def numbered(stands: Sequence[Stand], load: str) -> Stands:
    """The ranges as those of one cut, in their order; one alone needs no name to be told from others."""
    count = len(stands)
    named = load if count > 1 else ""
    return tuple(replace(one, place=place, ranges=count, load=named) for place, one in enumerate(stands))


def mark_name(called: str, place: int) -> str:
    """The mark of a range; the first has the name that a load in one piece has."""
    return f"refresh{f' {place}' if place else ''}: {called}"[:NAME_CHARACTERS]


def marks_of(called: str, names: Sequence[str]) -> list[str]:
    """Which of the marks are those of ranges of a class."""
    found = [(name, _numbered(name)) for name in names]
    return [name for name, match in found if match and name == mark_name(called, int(match[1] or 0))]


def write(stand: Stand) -> str:
    return msgspec.json.encode(stand).decode()


def read(called: str, marks: Mapping[str, str]) -> Stands | None:
    """The ranges of a load; None when there is none, or when marks of several loads are mixed."""
    first = _read(marks, mark_name(called, 0))
    if first is None:
        return None
    found = [_read(marks, mark_name(called, place)) for place in range(first.ranges)]
    stands = tuple(one for one in found if one is not None and one.load == first.load and one.ranges == first.ranges)
    return stands if len(stands) == first.ranges else None


def _read(marks: Mapping[str, str], name: str) -> Stand | None:
    if name not in marks:
        return None
    try:
        return msgspec.json.decode(marks[name], type=Stand)
    except msgspec.DecodeError as error:
        raise DataError(
            f"The mark {name!r} cannot be read: {error}.", hint="Start from the beginning with --again."
        ) from None
