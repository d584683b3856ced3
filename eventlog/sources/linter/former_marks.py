"""The marks that earlier versions wrote for a queue, taken over as the place of a stream: nothing is published again."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.model import Position
from eventlog.sources.marks import IN_HAND, NOTE, FileMarks, notes_of
from eventlog.sources.stream.source import PLACE, StreamPlace, WaitingImage, write_place

T = TypeVar("T")
POSITION: Final = "position"
BEHIND: Final = (1 << 64) - 1
"""Behind every operation of a transaction."""


class _Settled(Struct, frozen=True):
    at: Position = ()
    spared: int | None = None


class _InHand(Struct, frozen=True):
    ends: tuple[int, ...]
    last: Position
    only: tuple[Position, ...] | None = None
    attempts: int = 0


def adopt_former_marks(marks: FileMarks) -> None:
    """Writes the place that these marks mean in place of them, all at once."""
    position, in_hand = marks.get(POSITION), marks.get(IN_HAND)
    if marks.get(PLACE) is not None or (position is None and in_hand is None):
        return
    settled = _read(position, _Settled, marks) if position is not None else _Settled()
    batch = _read(in_hand, _InHand, marks) if in_hand is not None else None
    begin = settled.at[0] + (settled.at[1] == BEHIND) if settled.at else 0
    waiting = batch.only or () if batch is not None else ()
    place = StreamPlace(
        begin=begin if batch is None else min(begin, *batch.ends),
        upto=settled.at,
        waiting=tuple(WaitingImage(position=one, attempts=batch.attempts) for one in waiting) if batch else (),
        in_hand=batch.last if batch is not None and not waiting else (),
        commits=batch.ends if batch is not None and not waiting else (),
        failed=() if settled.spared is None else (settled.spared,),
        notes=notes_of(marks.all()),
    )
    former = [name for name in marks.all() if name.startswith(NOTE)]
    marks.change({PLACE: write_place(place), **dict.fromkeys([POSITION, IN_HAND, *former])})


def _read(text: str, kind: type[T], marks: FileMarks) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        hint = "Restore the file; without it the current batch is not known as a repeat."
        raise DataError(f"{marks.path} does not hold the marks of a LINTER queue: {error}.", hint=hint) from error
