"""The first step on Spark: rows are read, by us or by Spark, and go through the shuffle to the
bucket of their objects.

What passes through Spark's shuffle are record batches packed whole, so that Spark moves hundreds of
rows as one. Spark turns each row that comes from Python into one of its own and back; for rows of a
log that alone costs more than the rules do (`bench/measured.md` has the figures). A blob has the
number of its bucket, which says where it goes, and its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eventlog.convert.inputs import Unit
from eventlog.convert.partitions import (
    PACKED,
    PartitionFile,
    PartitionWriter,
    gather_batches,
    partition_file,
    write_by,
)
from eventlog.convert.plan import RANGE_BYTES, RANGE_ROWS
from eventlog.convert.reading import read, read_log
from eventlog.convert.rows import OBJECT, Placing, bucket_of, shape_rows
from eventlog.convert.rows import ROWS as ROWS_SCHEMA
from eventlog.convert.settings import Conversion, FilesInput, LogInput
from eventlog.convert.snapshot import SnapshotFile, place_batches, place_rows
from eventlog.convert.taken import ConvertedRows
from eventlog.convert.tasks import UnitNumbers
from eventlog.core.schema import Catalog
from eventlog.sql.names import CONTEXT, STANDARD, TRANSACTION
from eventlog_spark.faults import travelling
from eventlog_spark.types import type_batch

if TYPE_CHECKING:
    from eventlog_spark.options import NumberRange

ROWS: Final = 0
"""Rows of the log, with the numbers of their objects."""

NOTES: Final = 1
"""What was noted about the rows of a unit, in JSON. It goes to every task, so that all cut what
they write alike.
"""

CONFLICTS: Final = 2
"""record_ids of rows here that stand at other objects too."""

TABLES: Final = 3
"""Rows of the first table of a snapshot; the next table's number is one higher."""

SCHEMA: Final = "bucket int, kind int, content binary"
_arrow: Final = pa.schema([("bucket", pa.int32()), ("kind", pa.int32()), ("content", pa.binary())])
FULL_BYTES: Final = 2_000_000
"""Bytes that go to Spark together."""


class Blob(Struct, frozen=True, kw_only=True):
    """Something on its way to a bucket."""

    bucket: int
    kind: int
    content: bytes


class Bundle:
    """Collects blobs for Spark. It is written to like a file, where a label is a bucket."""

    def __init__(self, kind: int) -> None:
        self._kind = kind
        self._blobs: list[Blob] = []
        self._size = 0

    def write(self, label: int, batch: pa.RecordBatch) -> None:
        """Add rows for a bucket."""
        self.add(Blob(bucket=label, kind=self._kind, content=pack_rows(batch)))

    def add(self, blob: Blob) -> None:
        """Add a blob."""
        self._blobs.append(blob)
        self._size += len(blob.content)

    def full(self) -> Iterator[pa.RecordBatch]:
        """Yield the blobs held as one batch, if they are large enough."""
        if self._size >= FULL_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield all blobs held as one batch."""
        if self._blobs:
            self._size = 0
            # `bundle_blobs` empties the list.
            yield bundle_blobs(self._blobs)


def bundle_blobs(blobs: list[Blob]) -> pa.RecordBatch:
    """Pack blobs into a batch for Spark, and empty the list: nothing is held twice."""
    columns = [
        pa.array([blob.bucket for blob in blobs], pa.int32()),
        pa.array([blob.kind for blob in blobs], pa.int32()),
        pa.array([blob.content for blob in blobs], pa.binary()),
    ]
    blobs.clear()
    return pa.RecordBatch.from_arrays(columns, schema=_arrow)


def unbundle_blobs(batch: pa.RecordBatch) -> Iterator[Blob]:
    """Yield the blobs of a batch, one at a time."""
    # One by one: as a list all contents would be there twice.
    for row in range(len(batch)):
        bucket, kind, content = (batch.column(name)[row].as_py() for name in _arrow.names)
        yield Blob(bucket=bucket, kind=kind, content=content)


def pack_rows(batch: pa.RecordBatch) -> bytes:
    """Pack rows into compressed bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=PACKED) as writer:
        writer.write_batch(batch)
    return bytes(memoryview(sink.getvalue()))


def unpack_rows(content: bytes) -> Iterator[pa.RecordBatch]:
    """Yield the rows packed by `pack_rows`."""
    with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
        yield from reader


class BlobFiles(ExitStack):
    """Files of the rows in blobs, one for each kind, with the blobs' buckets as labels."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._writers: dict[int, PartitionWriter] = {}

    def take(self, blob: Blob) -> None:
        """Write the rows of a blob."""
        for rows in unpack_rows(blob.content):
            # Only the rows themselves say what columns they have.
            if blob.kind not in self._writers:
                opening = partition_file(self._folder / f"{blob.kind}.arrow", rows.schema)
                self._writers[blob.kind] = self.enter_context(opening)
            self._writers[blob.kind].write(blob.bucket, rows)

    def finished(self) -> dict[int, PartitionFile]:
        """Return the files by kind."""
        return {kind: writer.finished() for kind, writer in self._writers.items()}


NAMING: Final = pa.schema(
    [
        ("record_id", pa.int64()),
        ("event_type", pa.int64()),
        ("table_name", pa.string()),
        ("table_key", pa.string()),
    ]
)
"""The columns that say which row it is, and of which object."""

NUMBERED: Final = pa.schema([("record_id", pa.int64()), (OBJECT, pa.int64())])

GATHERED_ROWS: Final = 250_000
GATHERED_BYTES: Final = 8_000_000
SHORT_BYTES: Final = 128
"""What is read before it is cut into blobs. So many bytes of a row do not count: a blob should have
thousands of short rows.
"""


SAMPLED_NUMBERS: Final = 8
"""For each range that the rows of a unit make, so many of its numbers go to every task: there may
be hundreds of these.
"""


if TYPE_CHECKING:
    # None is a whole log, where the database has no snapshot that several sessions can share.
    Piece = Unit | NumberRange | None


def read_pieces(
    conversion: Conversion,
    pieces: Sequence[Piece],
    taken: ConvertedRows,
    met: Callable[[int], None] | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Read the rows of the pieces with these numbers, those that are taken, and count them in `met`."""
    for number in (number for batch in batches for number in batch.column(0).to_pylist()):
        for rows in map(taken.keep, rows_of(conversion, pieces[number])):
            if met is not None:
                met(len(rows))
            yield rows


def chain_steps(
    read: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    step: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Run a step on what a task has read, without a way through Spark's own rows."""
    return step(read(batches))


def scatter_rows(
    catalog: Catalog | None,
    buckets: int,
    tasks: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a frame (ROWS) as blobs, with notes for each of so many tasks."""
    numbers: list[UnitNumbers] = []
    bundle = Bundle(ROWS)
    with travelling():
        for placed in _place_rows((type_batch(batch, ROWS_SCHEMA) for batch in batches), catalog):
            if tasks:
                _note(numbers, placed)
            _write(bundle, placed, buckets)
            yield from bundle.full()
        _add_notes(bundle, numbers, tasks)
        yield from bundle.rest()


def scatter_table(
    catalog: Catalog,
    table: int,
    child: int | None,
    kind: int,
    buckets: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a frame as blobs, with the columns of a table or of a child table."""
    bundle = Bundle(kind)
    with travelling():
        for rows in place_batches(batches, catalog.tables[table], child):
            _write(bundle, rows, buckets)
            yield from bundle.full()
        yield from bundle.rest()


def scatter_files(
    catalog: Catalog, files: Sequence[SnapshotFile], buckets: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a snapshot's files with these numbers as blobs, of the kind TABLES plus the number."""
    with travelling():
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            bundle = Bundle(TABLES + number)
            for rows in place_rows(files[number], catalog):
                _write(bundle, rows, buckets)
                yield from bundle.full()
            yield from bundle.rest()


def scatter_numbers(
    catalog: Catalog | None, buckets: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield record_ids with their rows' objects (NAMING) as blobs, for buckets of record_ids."""
    placing, bundle = Placing(catalog), Bundle(ROWS)
    with travelling():
        for rows in _gather((type_batch(batch, NAMING) for batch in batches), NAMING):
            objects = placing.objects(*rows.columns[1:])
            pairs = pa.RecordBatch.from_arrays([rows.column(0), objects], schema=NUMBERED)
            known = pairs.filter(rows.column(0).is_valid())
            write_by(bundle, known, bucket_of(known.column(0), buckets))
            yield from bundle.full()
        yield from bundle.rest()


def find_contested(buckets: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Find record_ids with several objects; yield them as blobs for these objects' buckets."""
    blobs = (blob for batch in batches for blob in unbundle_blobs(batch))
    rows_of_blobs = [rows for blob in blobs for rows in unpack_rows(blob.content)]
    pairs = pa.Table.from_batches(rows_of_blobs, NUMBERED)
    # A number with one object has it as the least and as the greatest: no set of them is needed.
    spans = pairs.group_by("record_id").aggregate([(OBJECT, "min"), (OBJECT, "max")])
    differ = pc.not_equal(spans[f"{OBJECT}_min"], spans[f"{OBJECT}_max"])
    numbers = spans.filter(differ)["record_id"]
    bundle = Bundle(CONFLICTS)
    if len(numbers):
        is_contested = pc.is_in(pairs["record_id"], value_set=numbers.combine_chunks())
        for rows in pairs.filter(is_contested).to_batches():
            _write(bundle, rows, buckets)
    yield from bundle.rest()


def _gather(read: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    return gather_batches(read, schema, most_rows=GATHERED_ROWS, most_bytes=GATHERED_BYTES, short=SHORT_BYTES)


def _place_rows(read: Iterable[pa.RecordBatch], catalog: Catalog | None) -> Iterator[pa.RecordBatch]:
    """Gather rows into large batches, and give each row its object."""
    placing = Placing(catalog)
    for rows in _gather(read, ROWS_SCHEMA):
        yield placing.place(rows)


def _note(numbers: list[UnitNumbers], rows: pa.RecordBatch) -> None:
    """Note rows; begin a new unit when record_ids begin anew, as in the next of several files."""
    here = UnitNumbers()
    here.take(rows)
    if not numbers:
        numbers.append(here)
        return
    last = numbers[-1]
    # Of rows without a record_id nothing begins anew.
    if last.highest is None or here.lowest is None or here.lowest > last.highest:
        last.take(rows)
    else:
        numbers.append(here)


def _add_notes(bundle: Bundle, numbers: Sequence[UnitNumbers], tasks: int) -> None:
    """Add the notes for every task, with the task's number as their bucket."""
    for unit in numbers:
        wanted = SAMPLED_NUMBERS * (1 + max(unit.rows // RANGE_ROWS, unit.size // RANGE_BYTES))
        # Every n-th, rounded up: not more than are wanted.
        step = -(-len(unit.sampled) // wanted) or 1
        unit.sampled = unit.sampled[::step]
        content = msgspec.json.encode(unit)
        for task in range(tasks):
            bundle.add(Blob(bucket=task, kind=NOTES, content=content))


def rows_of(conversion: Conversion, piece: Piece) -> Iterator[pa.RecordBatch]:
    """Read the rows of a piece of the input as the local engine does."""
    source = conversion.input
    if isinstance(source, FilesInput):
        assert isinstance(piece, Unit)
        return read(piece, source.clock)
    assert isinstance(source, LogInput)
    if piece is None:
        return read_log(source)
    assert not isinstance(piece, Unit)
    return _copy_rows(source, piece)


def _copy_rows(source: LogInput, row_range: NumberRange) -> Iterator[pa.RecordBatch]:
    from eventlog_spark.log import BulkLog, batches
    from eventlog_spark.options import options_of

    log = BulkLog(options_of(source))
    there = {TRANSACTION: log.transaction, CONTEXT: source.who and log.context}
    # As texts: a log that was adopted may have columns of other types.
    schema = pa.schema([(name, pa.string()) for name in (*STANDARD, *filter(there.get, there))])
    for batch in batches(log, row_range, schema):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        yield shape_rows(columns)


def _write(bundle: Bundle, rows: pa.RecordBatch, buckets: int) -> None:
    write_by(bundle, rows, bucket_of(rows.column(OBJECT), buckets))
