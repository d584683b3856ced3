"""Cuts rows that come in the order of their objects into chunks of whole objects, and finds objects too large for one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
from msgspec import Struct

from eventlog.convert.columns import OBJECT, PLACED
from eventlog.convert.events import integers, one_batch

CHUNK_ROWS: Final = 10_000
CHUNK_BYTES: Final = 4_000_000
"""A chunk holds no more rows and no more bytes than this, and one batch of the input."""


class RowChunk(Struct, frozen=True, kw_only=True):
    """Rows of whole objects; or, of one object that is too large, the pieces, to be taken before the next chunk."""

    rows: pa.RecordBatch | None = None
    pieces: Iterator[pa.RecordBatch] | None = None


def chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[RowChunk]:
    """The rows (PLACED, in the order of their objects) in chunks."""
    source = iter(batches)
    held: list[pa.RecordBatch] = []
    for batch in source:
        held.append(batch)
        if sum(map(len, held)) < CHUNK_ROWS and sum(one.nbytes for one in held) < CHUNK_BYTES:
            continue
        rows = one_batch(held, PLACED)
        objects = integers(rows.column(OBJECT))
        last = bisect_left(objects, objects[-1]) if len(rows) else 0
        if last:
            yield RowChunk(rows=rows.slice(0, last))
            held = [rows.slice(last)]
        elif len(rows):
            held = []
            yield RowChunk(pieces=_pieces(rows, objects[-1], source, held))
    if held:
        yield RowChunk(rows=one_batch(held, PLACED))


Reread = Callable[[], Iterable[pa.RecordBatch]]
"""Begins anew with the first batch whenever it is called."""

Keep = Callable[[Iterable[pa.RecordBatch]], AbstractContextManager[Reread]]
"""Keeps batches outside of memory, to be read several times until the context ends."""


def keep_in_file(path: Path) -> Keep:
    """Keeps batches in this file, which is removed afterwards."""

    @contextmanager
    def kept(batches: Iterable[pa.RecordBatch]) -> Iterator[Reread]:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, PLACED, options=PACKED) as writer:
            for batch in batches:
                writer.write_batch(batch)
        yield lambda: _batches_of(path)
        path.unlink(missing_ok=True)

    return kept


PACKED: Final = pa.ipc.IpcWriteOptions(compression="lz4")


def _batches_of(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as reader:
        yield from reader


def _pieces(
    first: pa.RecordBatch, number: int, source: Iterator[pa.RecordBatch], rest: list[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The batches of one object; what comes after it in its last batch goes into `rest`."""
    yield first
    for batch in source:
        end = bisect_right(integers(batch.column(OBJECT)), number)
        if end:
            yield batch.slice(0, end)
        if end < len(batch):
            rest.append(batch.slice(end))
            return
