"""What tasks write under labels: rows by ranges of their positions, or by their transactions,
which are gathered then.

    decide     changes under the labels of transactions, and how far each of these reaches
    gather     each change with the end of its transaction, under the range of that

So changes come in the order of (end, position), and those of a transaction one after the other.
A change of no known transaction ends where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Generic, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eventlog.convert.forms import COUNTED, ENDS, STAMP, TOGETHER, form_of, with_transaction
from eventlog.convert.partitions import (
    PartitionFile,
    PartitionWriter,
    by_range,
    partition_file,
    read_label,
    write_by,
)
from eventlog.convert.rows import bucket_of, one_batch
from eventlog.convert.work import ConversionTask, advance
from eventlog.sql.names import TRANSACTION

KEPT_BYTES: Final = 8_000_000
"""What was decided is written together, so that a range gets some hundreds of changes at a time."""

END: Final = "end"
"""Where the transaction of a change ends."""

Labels = TypeVar("Labels")


class WrittenChanges(Struct, frozen=True, kw_only=True):
    """Changes as they were written, under ranges; `stamps` are the latest times by range."""

    rendered: PartitionFile
    stamps: dict[int, str] = {}


class Collecting(Generic[Labels]):
    """Collects rows, and writes many of them together under their `labels`."""

    def __init__(self, writer: PartitionWriter, schema: pa.Schema, labels: Labels) -> None:
        self.stamps: dict[int, str] = {}
        self._writer = writer
        self._schema = schema
        self._labels = labels
        self._kept: list[pa.RecordBatch] = []
        self._size = 0

    @classmethod
    @contextmanager
    def in_file(cls, path: Path, schema: pa.Schema, labels: Labels) -> Iterator[Self]:
        """Open a new file for such rows; complete it when the block ends."""
        with partition_file(path, schema) as writer:
            collected = cls(writer, schema, labels)
            yield collected
            collected.flush()

    def take(self, rows: pa.RecordBatch) -> None:
        """Take rows in any order."""
        if len(rows):
            self._kept.append(rows)
            self._size += rows.nbytes
        if self._size >= KEPT_BYTES:
            self.flush()

    def flush(self) -> None:
        rows = one_batch(self._kept, self._schema)
        self._kept, self._size = [], 0
        if len(rows):
            self._write(rows)

    def finished(self) -> PartitionFile:
        return self._writer.finished()

    def _write(self, rows: pa.RecordBatch) -> None:
        raise NotImplementedError


class ByRanges(Collecting[tuple[int, ...]]):
    """Writes rows that begin with a position by ranges with these boundaries; rows without one are a range of their
    own.
    """

    def _write(self, rows: pa.RecordBatch) -> None:
        positions = rows.column(0)
        if positions.null_count:
            self._writer.write(label_unnumbered(self._labels), rows.filter(positions.is_null()))
            rows = rows.filter(positions.is_valid())
        for label, part in by_range(rows, self._labels):
            self._writer.write(label, part)
            if STAMP in self._schema.names:
                self.stamps[label] = max(self.stamps.get(label, ""), latest(part))


def label_unnumbered(boundaries: tuple[int, ...]) -> int:
    """Return the label of rows without a position: after the last range."""
    return len(boundaries) + 1


def latest(rows: pa.RecordBatch) -> str:
    return str(pc.max(rows.column(STAMP)).as_py() or "")


def transaction_labels(boundaries: Sequence[int]) -> int:
    """Under how many labels transactions are brought together: a power of two, and no fewer than
    there are ranges.
    """
    return 1 << len(boundaries).bit_length()


class ByTransactions(Collecting[int]):
    """Writes rows with `position` and transaction by their transactions, under so many labels."""

    def _write(self, rows: pa.RecordBatch) -> None:
        marks = pc.coalesce(rows.column(TRANSACTION), rows.column("position"))
        # Numbers of transactions may go up in steps, so that their low bits alone are few.
        upper = pc.bit_wise_xor(pc.shift_right(marks, 16), pc.shift_right(marks, 32))
        spread = pc.bit_wise_xor(marks, upper)
        write_by(self._writer, rows, bucket_of(spread, self._labels))


class Gather(ConversionTask, frozen=True, kw_only=True):
    """The changes under one label of transactions, to be laid by the `ends` of these."""

    label: int
    rendered: tuple[PartitionFile, ...]
    ends: tuple[PartitionFile, ...]
    boundaries: tuple[int, ...]


def gather(task: Gather) -> WrittenChanges:
    """Give each change the end of its transaction and the number of changes in it."""
    endings = pa.Table.from_batches(read_label(task.ends, task.label), ENDS)
    # Each task has noted what it saw of a transaction: where it ended there, and how many
    # changes it had.
    wanted = [("position", "max"), (COUNTED, "sum"), (TOGETHER, "sum")]
    summed = endings.group_by(TRANSACTION).aggregate(wanted)
    # Arrow calls what it has summed position_max, and the others likewise.
    known_columns = [summed.column(name) for name in (TRANSACTION, *map("_".join, wanted))]
    known = one_batch(pa.Table.from_arrays(known_columns, schema=ENDS).to_batches(), ENDS)
    schema = with_transaction(form_of(task.conversion).schema)
    schema = pa.schema([(END, pa.int64()), *schema, ENDS.field(COUNTED), ENDS.field(TOGETHER)])
    with ByRanges.in_file(Path(task.folder) / f"{task.name}.arrow", schema, task.boundaries) as gathered:
        for rows in read_label(task.rendered, task.label):
            places = pc.index_in(rows.column(TRANSACTION), value_set=known.column(TRANSACTION))
            names = ("position", COUNTED, TOGETHER)
            end, counted, together = (known.column(name).take(places) for name in names)
            # A change of no known transaction has no place among them: it ends where it stands.
            columns = [
                pc.coalesce(end, rows.column("position")),
                *rows.columns,
                counted,
                pc.coalesce(together, 1),
            ]
            gathered.take(pa.RecordBatch.from_arrays(columns, schema=schema))
            advance(len(rows))
    return WrittenChanges(rendered=gathered.finished(), stamps=gathered.stamps)
