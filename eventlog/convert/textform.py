"""XDS: changes are elements, and a part is one document with the elements one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa

from eventlog.convert.columns import RENDERED
from eventlog.convert.forms import Parts, refusals
from eventlog.convert.parts import write_parts
from eventlog.core.errors import ExpressionError
from eventlog.core.model import Change, Op, Outcome, Position
from eventlog.core.schema import Catalog
from eventlog.xds.write import XdsFormat, refusal_note, said


class TextForm:
    """Writes what the daemon's format would write, in documents of many changes."""

    schema = RENDERED

    def __init__(self, form: XdsFormat) -> None:
        self._form = form

    def rendering(self, catalog: Catalog | None, first: int = 0) -> Texts:
        """What writes changes one by one."""
        return Texts(self._form.writer(catalog))

    def write(self, folder: Path, rendered: Iterable[pa.RecordBatch], parts: Parts) -> int:
        """Writes parts of changes that come in the order of their positions; says how many."""
        texts = (batch.column("text") for batch in rendered)
        first, size = parts.first // parts.part_events, parts.part_events
        return write_parts(folder, texts, first_part=first, part_events=size, form=self._form)


class Texts:
    """Collects the elements of changes; two lists, because millions pass here."""

    def __init__(self, write: Callable[[Change], str]) -> None:
        self.refused: dict[Position, Outcome] = {}
        self._write = write
        self._positions: list[int] = []
        self._texts: list[str] = []

    def take(self, change: Change, place: int | None = None) -> str | None:
        """Writes a change; the answer is why it cannot be written."""
        if change.whole and change.op is Op.MODIFY:
            told = said(change)
            if told is None:
                return None
            change = told
        try:
            text = self._write(change)
        except ExpressionError as error:
            note = refusal_note(change, error)
            self.refused |= refusals(change, note)
            return note
        self._texts.append(text)
        self._positions.append(change.positions[-1][0] if place is None else place)
        return None

    def rendered(self) -> pa.RecordBatch:
        """What was written since this was last asked."""
        columns = [pa.array(self._positions, pa.int64()), pa.array(self._texts, pa.large_string())]
        self._positions, self._texts = [], []
        return pa.RecordBatch.from_arrays(columns, schema=RENDERED)
