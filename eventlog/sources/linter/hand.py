"""What must survive a crash of the reader: the position, the batch in hand with its notes, how often it was offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.model import Image, Position
from eventlog.sources.marks import IN_HAND, NOTE, FileMarks, note_name, notes_of

T = TypeVar("T")
POSITION: Final = "position"


class InHand(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A batch: the places where its transactions ended, its first and its last image.

    `only` are the images that are left of it, where some are, and `attempts` how often they were offered.
    """

    ends: tuple[int, ...]
    first: Position
    last: Position
    only: tuple[Position, ...] | None = None
    attempts: int = 0

    @classmethod
    def of(cls, images: Sequence[Image]) -> InHand:
        ends = dict.fromkeys(image.position[0] for image in images)
        return cls(ends=tuple(ends), first=images[0].position, last=images[-1].position)

    def of_it(self, image: Image) -> bool:
        """Whether the image is among those that are in hand."""
        if self.only is not None:
            return image.position in self.only
        return self.first <= image.position <= self.last


class Settled(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last image that was handled, or the last place that had none; `spared` is an end whose rows are to stay."""

    at: Position = ()
    spared: int | None = None


class Hand:
    """The marks of the reader, in a file."""

    def __init__(self, marks: FileMarks) -> None:
        self._marks = marks

    @property
    def settled(self) -> Settled:
        text = self._marks.get(POSITION)
        return Settled() if text is None else _read(text, Settled, self._marks)

    @property
    def batch(self) -> InHand | None:
        text = self._marks.get(IN_HAND)
        return None if text is None else _read(text, InHand, self._marks)

    @property
    def notes(self) -> Mapping[str, str]:
        return notes_of(self._marks.all())

    def take(self, batch: InHand) -> None:
        """Notes a batch before it is handed out."""
        self._marks.change({IN_HAND: _written(batch), **self._without_notes()})

    def note(self, notes: Mapping[str, str]) -> None:
        """Keeps notes with the batch."""
        self._marks.change({note_name(name): text for name, text in notes.items()})

    def settle(self, settled: Settled, batch: InHand | None, notes: Mapping[str, str]) -> None:
        """Moves on, and keeps in hand what is left, with its notes; all at once."""
        kept = {note_name(name): text for name, text in notes.items()}
        left = None if batch is None else _written(batch)
        self._marks.change({**self._without_notes(), **kept, POSITION: _written(settled), IN_HAND: left})

    def move(self, settled: Settled) -> None:
        """Moves on where there was nothing to hand out."""
        self._marks.change({POSITION: _written(settled)})

    def _without_notes(self) -> dict[str, str | None]:
        return dict.fromkeys([name for name in self._marks.all() if name.startswith(NOTE)])


def _written(value: Struct) -> str:
    return msgspec.json.encode(value).decode()


def _read(text: str, kind: type[T], marks: FileMarks) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        hint = "Restore the file; without it what is in hand is not known as a repeat."
        raise DataError(f"{marks.path} does not hold the marks of a LINTER queue: {error}.", hint=hint) from error
