"""Sorts record batches of any number: in memory when they fit, else in runs on the disk that are merged."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.convert.events import one_batch
from eventlog.convert.sheaf import Sheaf, sheaf

BY_OBJECT: Final = ("object", "record_id")
BY_POSITION: Final = ("position",)
BY_PLACE: Final = ("place",)
"""Of a stream's outcomes, whose positions are texts."""

OUTCOME_ORDER: Final = ("position", "note", "status", "reason")
"""Rows without a position, and those that share one, come in the order of their notes."""

RUN_ROWS: Final = 150_000
RUN_BYTES: Final = 20_000_000
"""What is sorted in memory at once."""

GIVEN_ROWS: Final = 4_096
"""Rows that are handed on together."""

HEAD_ROWS: Final = 2_048
"""Rows of a run that are in memory while runs are merged."""


def in_order(batches: Iterable[pa.RecordBatch], keys: Sequence[str], spill: Path) -> Iterator[pa.RecordBatch]:
    """The rows in the order of the keys, NULLs last; `spill` is a file that is written when they do not fit."""
    source = iter(batches)
    run = _run(source)
    if not run:
        return
    following = next(source, None)
    if following is None:
        ordered = sorted_batch(run, keys)
        for start in range(0, len(ordered), GIVEN_ROWS):
            yield ordered.slice(start, GIVEN_ROWS)
        return
    runs = _write_runs(run, chain([following], source), keys, spill)
    yield from _merged([runs.read(label) for label in sorted(set(runs.labels))], keys)
    spill.unlink()


def sorted_batch(batches: list[pa.RecordBatch], keys: Sequence[str]) -> pa.RecordBatch:
    """The rows of a few batches as one, in the order of the keys, NULLs last; the list is emptied, to save their memory."""
    rows = one_batch(batches, batches[0].schema)
    batches.clear()
    if keys[0] == BY_POSITION[0]:
        by_position = pc.array_sort_indices(rows.column(keys[0]))
        if len(keys) == 1 or _all_different(rows.column(keys[0]).take(by_position)):
            return rows.take(by_position)
    return rows.take(pc.sort_indices(rows, sort_keys=[(key, "ascending") for key in keys]))


def _all_different(ordered: pa.Array) -> bool:
    """Whether one key is enough, as nearly always for positions: several keys take three times as long."""
    same = pc.equal(ordered.slice(1), ordered.slice(0, max(0, len(ordered) - 1)))
    return not ordered.null_count and not pc.any(same).as_py()


def _run(source: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """As many of the next batches as are sorted at once."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in source:
        held.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= RUN_ROWS or size >= RUN_BYTES:
            break
    return held


def _write_runs(run: list[pa.RecordBatch], source: Iterator[pa.RecordBatch], keys: Sequence[str], spill: Path) -> Sheaf:
    """Writes sorted runs, each under its number."""
    with sheaf(spill, run[0].schema) as writer:
        for number in count():
            ordered = sorted_batch(run, keys)
            for start in range(0, len(ordered), HEAD_ROWS):
                writer.write(number, ordered.slice(start, HEAD_ROWS))
            del ordered
            run = _run(source)
            if not run:
                break
    return writer.finished()


def _merged(runs: Sequence[Iterator[pa.RecordBatch]], keys: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Merges sorted runs: whatever is not above the lowest last row of all heads can be given out."""
    heads = {number: head for number, run in enumerate(runs) if (head := next(run, None)) is not None}
    while heads:
        least = min(_key(head, len(head) - 1, keys) for head in heads.values())
        ready = []
        for number, head in list(heads.items()):
            end = _end(head, least, keys)
            if end:
                ready.append(head.slice(0, end))
            rest = head.slice(end) if end < len(head) else next(runs[number], None)
            if rest is None:
                del heads[number]
            else:
                heads[number] = rest
        yield sorted_batch(ready, keys)


def _end(head: pa.RecordBatch, least: tuple[Any, ...], keys: Sequence[str]) -> int:
    """Where the rows end that are not above the key."""
    return bisect_right(range(len(head)), least, key=lambda place: _key(head, place, keys))


def _key(batch: pa.RecordBatch, place: int, keys: Sequence[str]) -> tuple[tuple[bool, Any], ...]:
    """A row's place in the order, for comparing; NULLs are last."""
    values = [batch.column(key)[place].as_py() for key in keys]
    return tuple((value is None, "" if value is None else value) for value in values)
