"""What a source of streamed images must remember: how far it has come, what is in hand, what waits for another attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.model import Position

MARK: Final = "stream"
"""What the mark is called that holds all of it, so that it changes as a whole."""


class Waiting(Struct, frozen=True, kw_only=True):
    """An image that its receiver did not take, and how often it was offered."""

    position: Position
    attempts: int


class Place(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a stream was published.

    `begin` is the sequence number from which to read: the lowest of a transaction that was open, else the last commit
    handled. Images up to `upto` are settled, but for those that wait. `in_hand` is the last position of a batch that
    was handed out, `retried` that it is made of what waits.
    """

    begin: int = 0
    upto: Position = ()
    waiting: tuple[Waiting, ...] = ()
    in_hand: Position = ()
    retried: bool = False
    notes: Mapping[str, str] = {}

    @property
    def attempts(self) -> dict[Position, int]:
        return {one.position: one.attempts for one in self.waiting}

    def waits(self, staying: Iterable[Position]) -> tuple[Waiting, ...]:
        """What waits when these images stay, each offered once more."""
        before = self.attempts
        return tuple(Waiting(position=one, attempts=before.get(one, 0) + 1) for one in staying)


def read_place(text: str | None) -> Place:
    """Reads the mark; without one the stream was never read."""
    if text is None:
        return Place()
    try:
        return msgspec.json.decode(text, type=Place)
    except msgspec.DecodeError as error:
        hint = "Restore the file of marks; without it the stream is read from its beginning."
        raise DataError(f"The mark {MARK} does not hold the place of a stream: {error}.", hint=hint) from error


def write_place(place: Place) -> str:
    """The place as the text of a mark."""
    return msgspec.json.encode(place).decode()
