"""XDS: changes are elements, and a part is one document with the elements one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from eventlog.convert.commit import cannot_write
from eventlog.convert.forms import Parts, Rendering
from eventlog.convert.rows import RENDERED
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


def part_name(number: int) -> str:
    """The file of a part."""
    return f"part-{number:05d}.xml"


def write_parts(folder: Path, texts: Iterable[pa.Array], *, first_part: int, part_events: int, form: XdsFormat) -> int:
    """Writes the texts of changes, in order of position, as parts numbered from `first_part`; says how many parts.

    The first text is change number first_part × part_events of the whole conversion; every part but the last is full.
    """
    opening, closing = (text.encode() for text in form.wrapping())
    number, room = first_part, 0
    file: Any = None
    try:
        for run in _runs(texts, part_events):
            if not room:
                file = _opened(folder / part_name(number), opening)
                number, room = number + 1, part_events
            file.write(_joined(run))
            room -= len(run)
            if not room:
                file.write(closing)
                file.close()
        if room:
            file.write(closing)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        if file is not None:
            file.close()
    return number - first_part


def _opened(path: Path, opening: bytes) -> Any:
    file = path.open("wb", buffering=1 << 20)
    file.write(opening)
    return file


def _joined(texts: pa.Array) -> memoryview:
    """The texts one after the other: so they stand in Arrow's memory already."""
    offsets = memoryview(texts.buffers()[1]).cast("q")
    content = memoryview(texts.buffers()[2] or b"")
    return content[offsets[texts.offset] : offsets[texts.offset + len(texts)]]


def _runs(texts: Iterable[pa.Array], part_events: int) -> Iterator[pa.Array]:
    """The texts in runs that end where a part ends, or earlier."""
    room = part_events
    for several in texts:
        start = 0
        while start < len(several):
            run = several.slice(start, room)
            yield run
            start += len(run)
            room = room - len(run) or part_events
