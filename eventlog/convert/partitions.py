"""Partitions on the local disk: files of labelled record batches, ranges of positions, and sorting
in bounded memory.

Rows are sorted in memory when they fit, else in runs on the disk that are merged.
DuckDB was tried in its place: it takes more time and memory, and gives up on rows that are long.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eventlog.convert.rows import integers, one_batch

PACKED: Final = pa.ipc.IpcWriteOptions(compression="lz4")
"""For what goes to other machines."""

PLAIN: Final = pa.ipc.IpcWriteOptions()
"""For what is read again soon and here: to pack and to unpack it costs nearly a tenth of a
conversion.
"""

BATCH_ROWS: Final = 16_384
"""Rows that pass from one step to the next together."""

GATHERED_ROWS: Final = 32_768
GATHERED_BYTES: Final = 8_000_000
"""Rows are written together, so that a label gets some hundreds of them at a time."""

BY_OBJECT: Final = ("object", "record_id")
BY_POSITION: Final = ("position",)
BY_END: Final = ("end", "position")
"""Changes where transactions are whole."""

BY_PLACE: Final = ("place",)
"""Of a stream's outcomes, whose positions are texts."""

OUTCOME_ORDER: Final = ("position", "note", "status", "reason")
"""Rows without a position, and those that share one, come in the order of their notes."""

RUN_ROWS: Final = 150_000
RUN_BYTES: Final = 20_000_000
"""What is sorted in memory, when it is all that there is."""

SPILLED_BYTES: Final = 8_000_000
"""What is sorted at once where rows go to the disk: to sort holds them three times, and more runs
cost no more time.
"""

GIVEN_ROWS: Final = 4_096
"""Rows that are handed on together."""

HEAD_ROWS: Final = 2_048
HEAD_BYTES: Final = 400_000
"""Rows of a run that are in memory while runs are merged."""

MERGED_BYTES: Final = 40_000_000
"""What the heads of all runs may take; where rows are so long that they would take more, runs are
merged in groups.
"""

SAMPLED_CHANGES: Final = 1_000
"""Of so many rows one is looked at to find the ranges."""

BATCH_NUMBERS: Final = 4
"""A batch's label, rows, place and size."""

BATCH_BYTES: Final = 8 * BATCH_NUMBERS


class PartitionFile(Struct, frozen=True, kw_only=True):
    """A finished file: of each of its batches the label, how many rows it has, where it begins, and
    its bytes there.

    They are kept here, in the order of the labels, because a file that describes itself is
    described to its reader each time that it is opened, as often as there are labels.
    """

    path: str
    batches: bytes
    """Four numbers of eight bytes each. As numbers of Python they would take five times as much:
    a large input has hundreds of batches in each of hundreds of files.
    """

    @property
    def labels(self) -> Sequence[int]:
        return array("q", self.batches)[0::BATCH_NUMBERS]

    @property
    def rows(self) -> Sequence[int]:
        return array("q", self.batches)[1::BATCH_NUMBERS]

    @property
    def longest(self) -> int:
        return max(array("q", self.batches)[3::BATCH_NUMBERS], default=0)

    def counted(self) -> dict[int, int]:
        """Count the rows by label."""
        rows_by_label = Counter[int]()
        for label, rows in zip(self.labels, self.rows, strict=True):
            rows_by_label[label] += rows
        return rows_by_label

    def within(self, first: int, last: int) -> PartitionFile:
        """Return the file with only its batches of these labels."""
        labels = self.labels
        start, end = bisect_left(labels, first), bisect_right(labels, last)
        return PartitionFile(path=self.path, batches=self.batches[start * BATCH_BYTES : end * BATCH_BYTES])

    def read(
        self,
        label: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read the batches with this label, or all in the order of their labels."""
        numbers = array("q", self.batches if label is None else self.within(label, label).batches)
        # Most files have nothing of most labels, and are not even opened.
        if not numbers:
            return
        with pa.OSFile(self.path, "rb") as file:
            schema = pa.ipc.read_schema(file)
            for offset, size in zip(numbers[2::BATCH_NUMBERS], numbers[3::BATCH_NUMBERS], strict=True):
                # Without Arrow's reader of a stream, which reads from the beginning to the end.
                file.seek(offset)
                batch = pa.ipc.read_record_batch(file.read_buffer(size), schema)
                if columns is not None:
                    batch = batch.select(columns)
                yield batch


class LabelledRows(Protocol):
    """Takes rows under their labels."""

    def write(self, label: int, batch: pa.RecordBatch) -> None:
        """Keep rows."""


class PartitionWriter:
    """A file in the making."""

    def __init__(self, path: Path, file: Any, writer: Any, start: int) -> None:
        self._path = path
        self._file = file
        self._writer = writer
        self._end = start
        self._batches: list[tuple[int, int, int, int]] = []

    def write(self, label: int, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)
        offset, self._end = self._end, self._file.tell()
        self._batches.append((label, len(batch), offset, self._end - offset))

    def finished(self) -> PartitionFile:
        # By the label alone: those of one label stay in the order in which they were written.
        ordered = sorted(self._batches, key=itemgetter(0))
        batches = array("q", chain.from_iterable(ordered))
        return PartitionFile(path=str(self._path), batches=batches.tobytes())


@contextmanager
def partition_file(path: Path, schema: pa.Schema) -> Iterator[PartitionWriter]:
    """Open a new file for writing; it can be read after the block."""
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_stream(file, schema, options=PLAIN) as writer,
    ):
        # A stream begins with its schema, which Arrow writes only with the first batch.
        yield PartitionWriter(path, file, writer, start=schema.serialize().size)


def read_label(files: Sequence[PartitionFile], label: int) -> Iterator[pa.RecordBatch]:
    for file in files:
        yield from file.read(label)


def within(files: Iterable[PartitionFile], first: int, last: int) -> tuple[PartitionFile, ...]:
    """Return the files with batches of these labels, each with only these."""
    parts = [file.within(first, last) for file in files]
    return tuple([part for part in parts if part.batches])


def labels_of(files: Iterable[PartitionFile]) -> list[int]:
    """List the labels of the files in order."""
    return sorted({label for file in files for label in file.labels})


def gather_batches(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    *,
    most_rows: int | None = None,
    most_bytes: int | None = None,
    short: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Gather rows into batches of about so many rows or bytes, `short` bytes a row left out."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    most_rows, most_bytes = most_rows or GATHERED_ROWS, most_bytes or GATHERED_BYTES
    for batch in batches:
        held.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes - short * len(batch)
        if rows >= most_rows or size >= most_bytes:
            # Nothing is held twice while others work with the rows.
            del batch
            rows = size = 0
            yield _empty_into_batch(held, schema)
    if rows:
        yield _empty_into_batch(held, schema)


def _empty_into_batch(held: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Join all batches of the list, and empty it."""
    whole = one_batch(held, schema)
    held.clear()
    return whole


def write_by(writer: LabelledRows, rows: pa.RecordBatch, labels: pa.Array) -> None:
    """Write the rows under their labels."""
    # Sorted, the rows of a label are one slice; to filter for each label would read all again.
    order = pc.array_sort_indices(labels)
    ordered, labelled = rows.take(order), integers(labels.take(order))
    start = 0
    while start < len(ordered):
        end = bisect_right(labelled, labelled[start], start)
        writer.write(labelled[start], ordered.slice(start, end - start))
        start = end


def sample(positions: pa.Array) -> list[int]:
    """Choose a few of a batch's positions to stand for all of them."""
    known = positions.drop_null()
    # Older pyarrow asks for NumPy where known[::n] stands.
    sampled = range(0, len(known), max(1, min(SAMPLED_CHANGES, len(known))))
    return [value.as_py() for value in known.take(pa.array(sampled, pa.int64()))]


def ranges(ordered: Sequence[int], count: int) -> tuple[int, ...]:
    """Choose boundaries of up to `count` ranges of equally many rows by a sample in order: k is below boundary k.

    Positions at or above the last boundary are in the range after it. The output does not depend on
    boundaries.
    """
    boundaries = set[int]()
    if ordered:
        boundaries = {ordered[len(ordered) * number // count] for number in range(1, count)}
    # Below the least position there is nothing, so that would be an empty range.
    return tuple(sorted(boundaries - set(ordered[:1])))


def by_range(batch: pa.RecordBatch, boundaries: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Sort the batch by its first column, a position without NULLs, and cut it into its ranges."""
    ordered = batch.take(pc.sort_indices(batch.column(0)))
    positions = integers(ordered.column(0))
    start = 0
    for number, boundary in enumerate(boundaries):
        end = bisect_left(positions, boundary, start)
        if end > start:
            yield number, ordered.slice(start, end - start)
        start = end
    if start < len(ordered):
        yield len(boundaries), ordered.slice(start)


def in_order(batches: Iterable[pa.RecordBatch], keys: Sequence[str], spill: Path) -> Iterator[pa.RecordBatch]:
    """Sort the rows by the keys, NULLs last; too many for memory go through a file, `spill`."""
    source = iter(batches)
    held = _run(source, RUN_BYTES)
    if not held:
        return
    following = next(source, None)
    # All there is: it is sorted in memory, and no file is written.
    if following is None:
        ordered = sort_batches(held, keys)
        for start in range(0, len(ordered), GIVEN_ROWS):
            yield ordered.slice(start, GIVEN_ROWS)
        return
    held.append(following)
    # Each batch has to be free when it is done with, so no other name may hold it.
    del following
    runs = _write_runs(chain(_give_up(held), source), keys, spill)
    runs = _fewer_runs(runs, keys, spill)
    yield from _merge_runs([runs.read(label) for label in labels_of([runs])], keys)
    Path(runs.path).unlink()


def sort_batches(batches: list[pa.RecordBatch], keys: Sequence[str]) -> pa.RecordBatch:
    """Sort the rows of a few batches into one, NULLs last; empty the list, to save memory."""
    rows = one_batch(batches, batches[0].schema)
    batches.clear()
    if keys[0] == BY_POSITION[0]:
        # Positions nearly always differ, so one key is enough: several take three times as long.
        by_position = pc.array_sort_indices(rows.column(keys[0]))
        ordered = rows.column(keys[0]).take(by_position)
        equal = pc.equal(ordered.slice(1), ordered.slice(0, max(0, len(ordered) - 1)))
        all_differ = not ordered.null_count and not pc.any(equal).as_py()
        if len(keys) == 1 or all_differ:
            return rows.take(by_position)
    return rows.take(pc.sort_indices(rows, sort_keys=[(key, "ascending") for key in keys]))


def _run(source: Iterator[pa.RecordBatch], most_bytes: int) -> list[pa.RecordBatch]:
    """Take as many of the next batches as are sorted at once."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in source:
        held.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= RUN_ROWS or size >= most_bytes:
            break
    return held


def _give_up(held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches and empty the list, so each is freed after its use."""
    held.reverse()
    while held:
        yield held.pop()


def _write_runs(source: Iterator[pa.RecordBatch], keys: Sequence[str], spill: Path) -> PartitionFile:
    """Write sorted runs, each under its number."""
    run = _run(source, SPILLED_BYTES)
    with partition_file(spill, run[0].schema) as writer:
        for number in count():
            ordered = sort_batches(run, keys)
            _write_run(writer, number, [ordered])
            # Not held while the next run is read.
            del ordered
            run = _run(source, SPILLED_BYTES)
            if not run:
                break
    return writer.finished()


def _write_run(writer: PartitionWriter, number: int, ordered: Iterable[pa.RecordBatch]) -> None:
    """Write sorted rows, fewer at once if they are long."""
    for batch in ordered:
        # What is written together is one head when runs are merged.
        rows = max(1, min(HEAD_ROWS, len(batch) * HEAD_BYTES // max(1, batch.nbytes)))
        for start in range(0, len(batch), rows):
            writer.write(number, batch.slice(start, rows))


def _fewer_runs(runs: PartitionFile, keys: Sequence[str], spill: Path) -> PartitionFile:
    """Merge runs until the heads of all fit into memory."""
    turn = 0
    while True:
        labels = labels_of([runs])
        # At least two, however long rows are: else there would never be fewer.
        together = max(2, MERGED_BYTES // max(1, runs.longest))
        if len(labels) <= together:
            return runs
        groups = [labels[start : start + together] for start in range(0, len(labels), together)]
        with pa.OSFile(runs.path, "rb") as file:
            schema = pa.ipc.read_schema(file)
        with partition_file(spill.with_name(f"{spill.name}-{turn}"), schema) as writer:
            for number, group in enumerate(groups):
                _write_run(writer, number, _merge_runs([runs.read(label) for label in group], keys))
        Path(runs.path).unlink()
        runs, turn = writer.finished(), turn + 1


def _merge_runs(runs: Sequence[Iterator[pa.RecordBatch]], keys: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Merge sorted runs: all rows up to the lowest last row of all heads can be given out."""
    heads = {}
    for number, run in enumerate(runs):
        first = next(run, None)
        if first is not None:
            heads[number] = first
    while heads:
        least = min(_key(head, len(head) - 1, keys) for head in heads.values())
        ready = []
        for number, head in list(heads.items()):
            end = _end(head, least, keys)
            if end:
                ready.append(head.slice(0, end))
            rest = head.slice(end)
            if not len(rest):
                rest = next(runs[number], None)
            if rest is None:
                del heads[number]
            else:
                heads[number] = rest
        yield sort_batches(ready, keys)


def _end(head: pa.RecordBatch, least: tuple[Any, ...], keys: Sequence[str]) -> int:
    """Find the end of the rows not above the key."""
    return bisect_right(range(len(head)), least, key=lambda index: _key(head, index, keys))


def _key(batch: pa.RecordBatch, index: int, keys: Sequence[str]) -> tuple[tuple[bool, Any], ...]:
    """Return a row's key for comparing; NULLs are last."""
    values = [batch.column(key)[index].as_py() for key in keys]
    # Python cannot compare None with a number; behind True it is compared only with its like.
    return tuple((value is None, "" if value is None else value) for value in values)
