"""XDS: changes are elements, and a part is one document with the elements one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from eventlog.convert.commit import cannot_write
from eventlog.convert.forms import Parts, Rendering, in_parts
from eventlog.core.schema import Catalog
from eventlog.xds.write import XdsFormat

RENDERED: Final = pa.schema([("position", pa.int64()), ("text", pa.large_string())])


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
        opening, closing = (text.encode() for text in self._form.wrapping())
        first = part = parts.first // parts.part_events
        file: Any = None
        try:
            for begins, run in in_parts(rendered, parts.part_events):
                if begins:
                    _end(file, closing)
                    file = (folder / part_name(part)).open("wb", buffering=1 << 20)
                    file.write(opening)
                    part += 1
                file.write(_joined(run.column("text")))
            _end(file, closing)
        except OSError as error:
            raise cannot_write(folder, error) from error
        finally:
            if file is not None:
                file.close()
        return part - first


def part_name(number: int) -> str:
    """The file of a part."""
    return f"part-{number:05d}.xml"


def _end(file: Any, closing: bytes) -> None:
    if file is not None:
        file.write(closing)
        file.close()


def _joined(texts: pa.Array) -> memoryview:
    """The texts one after the other: so they stand in Arrow's memory already."""
    offsets = memoryview(texts.buffers()[1]).cast("q")
    content = memoryview(texts.buffers()[2] or b"")
    return content[offsets[texts.offset] : offsets[texts.offset + len(texts)]]
