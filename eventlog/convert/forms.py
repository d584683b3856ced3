"""Forms: how a conversion's changes are written one by one, wherever that may be, and put into part files afterwards.

What was written of a change travels as a row of Arrow whose first column is its position. In some forms each change is
numbered: `stamp`, the 16 digits of its time, is then another column, and numbers are given out when parts are written,
from what is known of all changes before: how many there are, and the latest of their times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

import pyarrow as pa
from msgspec import Struct

from eventlog.core.errors import ExpressionError
from eventlog.core.model import Change, Document, Outcome, Position
from eventlog.core.rules.meaning import ended
from eventlog.core.schema import Catalog

STAMP: Final = "stamp"
COVERS: Final = "covers"
"""Where the outcomes stand of a change's events, in forms whose changes are sent: who takes them may yet refuse some."""


class Parts(Struct, frozen=True, kw_only=True):
    """Which parts are written: change number `first` of all (from 0) begins part number `first` ÷ `part_events`.

    `stamp` is the latest time of all changes before it, in forms that number them.
    """

    first: int
    part_events: int
    stamp: str = ""


class Form(Protocol):
    """How changes are written."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of what was written; the first is `position`."""

    def rendering(self, catalog: Catalog | None, first: int = 0) -> Rendering:
        """What writes changes one by one; the tables of the catalog are numbered from `first`."""


@runtime_checkable
class FileForm(Form, Protocol):
    """How changes are written to files."""

    def write(self, folder: Path, rendered: Iterable[pa.RecordBatch], parts: Parts) -> int:
        """Writes parts of changes that come in the order of their positions; says how many."""


@runtime_checkable
class SentForm(Form, Protocol):
    """How changes are sent to where something is already."""

    def documents(self, rendered: Iterable[pa.RecordBatch], after: str) -> Iterator[Document]:
        """Documents of changes that come in the order of their positions; numbers go on from the last one there."""


class Rendering(Protocol):
    """Collects what was written of changes, and the refusals of those that the form cannot express."""

    refused: dict[Position, Outcome]

    def take(self, change: Change, place: int | None = None) -> str | None:
        """Writes a change; the answer is why it cannot be written. It stands at `place`, else where its last event does."""

    def rendered(self) -> pa.RecordBatch:
        """What was written since this was last asked."""


def table_numbers(catalog: Catalog | None, first: int) -> Mapping[tuple[str | None, str], int]:
    """The numbers by which what was written names its tables: schema and name, numbered from `first`."""
    return {(table.schema, table.name): place for place, table in enumerate(catalog or (), first)}


class Cells:
    """A rendering whose changes become cells: `write` gives those after the position, or None where nothing is told."""

    def __init__(
        self,
        schema: pa.Schema,
        write: Callable[[Change], tuple[object, ...] | None],
        note: Callable[[Change, ExpressionError], str],
    ) -> None:
        self.refused: dict[Position, Outcome] = {}
        self._covering = COVERS in schema.names
        self._schema = schema
        self._write = write
        self._note = note
        self._cells: list[tuple[object, ...]] = []

    def take(self, change: Change, place: int | None = None) -> str | None:
        """Writes a change; the answer is why it cannot be written."""
        try:
            cells = self._write(change)
        except ExpressionError as error:
            note = self._note(change, error)
            self.refused |= refusals(change, note)
            return note
        if cells is not None:
            covers = (self._covered(change, place),) if self._covering else ()
            self._cells.append((change.positions[-1][0] if place is None else place, *cells, *covers))
        return None

    def rendered(self) -> pa.RecordBatch:
        """What was written since this was last asked."""
        columns = zip(*self._cells, strict=True) if self._cells else [()] * len(self._schema)
        found = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._cells = []
        return pa.RecordBatch.from_arrays(found, schema=self._schema)

    def _covered(self, change: Change, place: int | None) -> list[int]:
        return [position[0] for position in change.positions] if place is None else [place]


def refusals(change: Change, note: str) -> Mapping[Position, Outcome]:
    """The outcomes of a change that cannot be written."""
    return {position: ended(position, note) for position in change.positions}


def in_parts(rendered: Iterable[pa.RecordBatch], part_events: int) -> Iterator[tuple[bool, pa.RecordBatch]]:
    """What was written in runs that end where a part ends, or earlier; each with whether it begins a part."""
    room = 0
    for several in rendered:
        start = 0
        while start < len(several):
            begins = not room
            room = room or part_events
            run = several.slice(start, room)
            yield begins, run
            start += len(run)
            room -= len(run)
