"""Writes what a conversion leaves behind: part files of documents, and one outcome for every row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from eventlog.convert.columns import OUTCOMES, TOLD_OUTCOMES
from eventlog.core.errors import SinkError
from eventlog.sinks.files import PERMANENT
from eventlog.xds.write import XdsFormat

OUTCOMES_FILE: Final = "outcomes.parquet"
GROUP_ROWS: Final = 131_072
"""Rows of a row group: always as many, so that the bytes do not depend on how the rows came."""


ENCODED: Final[dict[str, Any]] = {
    "compression": "zstd",
    "use_dictionary": ["status", "reason", "note"],  # of positions, which never repeat, it would be 70 MB
    "column_encoding": {"position": "DELTA_BINARY_PACKED"},
}


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


def write_outcomes(file: Path, batches: Iterable[pa.RecordBatch], *, streamed: bool = False) -> int:
    """Writes outcomes that come in their order (`sorting.OUTCOME_ORDER`); says how many there are.

    A stream's positions are texts, which stand beside the numbers that put them in order.
    """
    written = 0
    schema, encoded = (OUTCOMES, ENCODED) if not streamed else (TOLD_OUTCOMES, {"compression": "zstd"})
    try:
        with parquet.ParquetWriter(file, schema, **encoded) as writer:
            for group in _groups(map(_told, batches) if streamed else batches, schema):
                writer.write_table(group, row_group_size=GROUP_ROWS)
                written += len(group)
    except OSError as error:
        raise cannot_write(file.parent, error) from error
    return written


def _told(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The outcomes of a stream without their numbers."""
    return pa.RecordBatch.from_arrays(batch.columns[1:], schema=TOLD_OUTCOMES)


def cannot_write(folder: Path, error: OSError) -> SinkError:
    """What to tell when the disk refuses."""
    said = error.strerror or str(error)
    may_pass = error.errno not in PERMANENT
    hint = "The output is not complete; run it again." if may_pass else "Choose another folder, or mend that."
    return SinkError(f"{folder} cannot be written: {said}.", hint=hint, may_pass=may_pass)


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


def _groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in tables of GROUP_ROWS, the last one shorter."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += len(batch)
        while rows >= GROUP_ROWS:
            table = pa.Table.from_batches(held, schema)
            yield table.slice(0, GROUP_ROWS).combine_chunks()
            rows -= GROUP_ROWS
            held = table.slice(GROUP_ROWS).to_batches()
    if rows:
        yield pa.Table.from_batches(held, schema).combine_chunks()
