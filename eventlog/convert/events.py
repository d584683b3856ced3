"""Turns rows in Arrow into the rules' Events, and looks at Arrow's integers without copying them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.model import Event


def events_of(rows: pa.RecordBatch | pa.Table) -> list[Event]:
    """The events of rows without problems, in their order.

    Texts that repeat are one string: their hashes are then computed once, and a chunk takes half of the memory.
    """
    columns = zip(
        zip(rows.column("record_id").to_pylist(), strict=True),  # positions are tuples
        rows.column("event_type").to_pylist(),
        _repeated(rows.column("table_name")),
        _in_runs(rows.column("table_key")),
        _repeated(rows.column("column_name")),
        rows.column("old_value").to_pylist(),
        rows.column("new_value").to_pylist(),
        _repeated(rows.column("event_time")),
        _repeated(rows.column("perpetrator")),
        strict=True,
    )
    return [
        Event(
            position=position,
            kind=kind,
            table=table,
            key=key,
            column=column,
            old=old,
            new=new,
            time=time,
            perpetrator=perpetrator,
        )
        for position, kind, table, key, column, old, new, time, perpetrator in columns
    ]


def integers(column: pa.Array) -> memoryview:
    """The integers of a column without NULLs, where they stand in memory."""
    values = memoryview(column.buffers()[1]).cast("q") if len(column) else memoryview(b"").cast("q")
    return values[column.offset : column.offset + len(column)]


def one_batch(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """The batches as one."""
    combined = pa.Table.from_batches(batches, schema=schema).combine_chunks().to_batches()
    return combined[0] if combined else pa.RecordBatch.from_pylist([], schema=schema)


def uncut(pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of one object in the order of record_id, cut anew so that equal record_ids are never parted."""
    held: pa.RecordBatch | None = None
    for piece in pieces:
        rows = piece if held is None else one_batch([held, piece], piece.schema)
        numbers = rows.column("record_id")
        last = len(rows) - 1
        while last > 0 and numbers[last].is_valid and numbers[last].as_py() == numbers[last - 1].as_py():
            last -= 1
        if last > 0:
            yield rows.slice(0, last)
        held = rows.slice(max(last, 0))
    if held is not None:
        yield held


def _repeated(column: pa.Array) -> list[str | None]:
    """The texts of a column in which each stands often."""
    if column.null_count == len(column):
        return [None] * len(column)
    encoded = column.dictionary_encode(null_encoding="encode")
    texts: list[str | None] = encoded.dictionary.to_pylist()
    if len(texts) == 1:
        return texts * len(column)
    return [texts[code] for code in encoded.indices.to_pylist()]


def _in_runs(column: pa.Array) -> list[str | None]:
    """The texts of a column in which the same stands several times in a row."""
    encoded = pc.run_end_encode(column, run_end_type=pa.int64())
    ends = encoded.run_ends.to_pylist()
    runs = zip(encoded.values.to_pylist(), [0, *ends], ends, strict=False)
    return [text for text, start, end in runs for _ in range(start, end)]
