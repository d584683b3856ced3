"""XDS: changes are elements, and a part is one document with the elements one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from eventlog.convert.columns import RENDERED
from eventlog.convert.forms import Parts, Rendering
from eventlog.convert.parts import write_parts
from eventlog.core.schema import Catalog
from eventlog.xds.write import XdsFormat


class TextForm:
    """Elements as the format writes them, in documents of many changes."""

    schema = RENDERED

    def __init__(self, form: XdsFormat) -> None:
        self._form = form

    def rendering(self, catalog: Catalog | None, first: int = 0) -> Rendering:
        """What writes changes one by one."""
        return Rendering(RENDERED, self._form.writer(catalog), lambda written: (written.text,))

    def write(self, folder: Path, rendered: Iterable[pa.RecordBatch], parts: Parts) -> int:
        """Writes parts of changes that come in the order of their positions; says how many."""
        texts = (batch.column("text") for batch in rendered)
        first, size = parts.first // parts.part_events, parts.part_events
        return write_parts(folder, texts, first_part=first, part_events=size, form=self._form)
