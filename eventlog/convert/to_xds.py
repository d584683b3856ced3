"""XDS: changes are elements, and a part is one document with the elements one after the other, in
each folder that they go to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.convert.folders import cannot_write
from eventlog.convert.forms import ROUTE, Parts, Rendering, TableNumbers, in_parts
from eventlog.convert.writing import OpenFiles
from eventlog.core.schema import Catalog
from eventlog.xds.write import XdsFormat

RENDERED: Final = pa.schema(
    [
        ("position", pa.int64()),
        # Large: the texts of a batch may be more than the 2 GB that a string column can have.
        ("text", pa.large_string()),
        (ROUTE, pa.string()),
    ]
)


class TextForm:
    """Elements as the format writes them, in documents of many changes."""

    schema = RENDERED

    def __init__(self, form: XdsFormat) -> None:
        self._form = form

    def rendering(self, catalog: Catalog | None, numbers: TableNumbers | None = None) -> Rendering:
        write = self._form.writer(catalog)
        return Rendering(RENDERED, write, lambda written: (written.text, written.route))

    def write(self, folder: Path, rendered: Iterable[pa.RecordBatch], parts: Parts) -> int:
        opening, closing = (text.encode() for text in self._form.wrapping())
        first = part = parts.first // parts.part_events
        files = OpenFiles(buffering=1 << 20)
        try:
            for begins, run in in_parts(rendered, parts.part_events):
                if begins:
                    _end(files, closing)
                    part += 1
                for route, texts in _route_texts(run):
                    path = folder / route / part_name(part - 1)
                    if path not in files.begun:
                        files.write(path, opening)
                    files.write(path, texts)
            _end(files, closing)
        except OSError as error:
            raise cannot_write(folder, error) from error
        finally:
            files.close()
        return part - first


def part_name(number: int) -> str:
    return f"part-{number:05d}.xml"


def _end(files: OpenFiles, closing: bytes) -> None:
    for path in files.begun:
        files.write(path, closing)
    files.close()


def _route_texts(run: pa.RecordBatch) -> Iterator[tuple[str, memoryview]]:
    """Join the texts of each route; all of them if nothing is routed."""
    routes, texts = run.column(ROUTE), run.column("text")
    if not pc.sum(pc.binary_length(routes)).as_py():
        yield "", _join_texts(texts)
        return
    start = 0
    for route, several in groupby(routes.to_pylist()):
        count = len(list(several))
        yield route, _join_texts(texts.slice(start, count))
        start += count


def _join_texts(texts: pa.Array) -> memoryview:
    """Return the texts one after the other, as they are in Arrow's memory already."""
    # Arrow's buffers: which are NULL, then offsets of 64 bits in a large string, then bytes.
    offsets = memoryview(texts.buffers()[1]).cast("q")
    # Where all texts are empty there is no buffer for them.
    content = memoryview(texts.buffers()[2] or b"")
    return content[offsets[texts.offset] : offsets[texts.offset + len(texts)]]
