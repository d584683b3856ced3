"""The ranges that the keys of a load are cut into, how far each is, and how that stands in marks.

Pure.

A range holds the keys after one and up to another, that one included; the first and the last are
open. So every key is in one range, also one that is inserted later. Keys are the texts of the log;
the database compares what they mean.
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
# `refresh: NAME` is the first range, `refresh 3: NAME` a further one.
_numbered = re.compile(r"refresh(?: ([0-9]{1,6}))?: ").match


class RangeState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a range is: rows after the key `after` and up to `upto` are still to come.

    An empty text is no bound.

    `rows` were written, of about `total`, for one output `only` or for all. `load` tells ranges of
    one cut, of which there are `ranges`, from others.
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


RangeStates = tuple[RangeState, ...]


def shares(state: RangeState, most: int, chunk: int) -> tuple[int, int]:
    """Return the number of ranges to cut the rest into, and their rows: at least a transaction's."""
    rest = state.total - state.rows
    pieces = max(1, min(most, rest // chunk))
    return pieces, rest // pieces


def part_range(state: RangeState, bounds: Sequence[str], share: int) -> list[RangeState]:
    """Split the rest of a range at the bounds, which are in order.

    Each part has a share of the rows.
    """
    pieces = []
    after, rows, total = state.after, state.rows, state.total
    for bound in bounds:
        pieces.append(replace(state, after=after, upto=bound, rows=rows, total=rows + share))
        after, rows, total = bound, 0, total - rows - share
    return [*pieces, replace(state, after=after, rows=rows, total=total)]


def number_ranges(states: Sequence[RangeState], load: str) -> RangeStates:
    """Number the ranges as those of one cut, in their order.

    A single one needs no name to be told from others.
    """
    count = len(states)
    if count == 1:
        load = ""
    return tuple(replace(state, place=index, ranges=count, load=load) for index, state in enumerate(states))


def mark_name(called: str, index: int) -> str:
    """Name the mark of a range; the first has the name of a load in one piece."""
    number = f" {index}" if index else ""
    # The table of marks has no room for more.
    return f"refresh{number}: {called}"[:NAME_CHARACTERS]


def marks_of(called: str, names: Sequence[str]) -> list[str]:
    """Find the marks of ranges of a class."""
    matches = [(name, _numbered(name)) for name in names]
    return [name for name, match in matches if match and name == mark_name(called, int(match[1] or 0))]


def write(state: RangeState) -> str:
    return msgspec.json.encode(state).decode()


def read(called: str, marks: Mapping[str, str]) -> RangeStates | None:
    """Read the ranges of a load; None when there is none, or when marks of several loads are mixed."""
    first = _read(marks, mark_name(called, 0))
    if first is None:
        return None
    states = []
    for index in range(first.ranges):
        state = _read(marks, mark_name(called, index))
        # Ranges of another cut may overlap these, or leave keys between them.
        if state is None or state.load != first.load or state.ranges != first.ranges:
            return None
        states.append(state)
    return tuple(states)


def _read(marks: Mapping[str, str], name: str) -> RangeState | None:
    if name not in marks:
        return None
    try:
        return msgspec.json.decode(marks[name], type=RangeState)
    except msgspec.DecodeError as error:
        raise DataError(
            f"The mark {name!r} cannot be read: {error}.", hint="Start from the beginning with --again."
        ) from None
