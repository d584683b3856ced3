"""What passes through Spark's shuffle: record batches packed whole, so that Spark moves hundreds of rows as one.

Spark turns each row that comes from Python into one of its own and back; for rows of a log that alone costs more than
the rules do. A blob has the number of its bucket, which says where it goes, and what kind of thing it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from msgspec import Struct

from eventlog.convert.sheaf import PACKED

ROWS: Final = 0
"""Rows of the log, with the numbers of their objects."""

NOTES: Final = 1
"""What was noted about the rows of a unit, in JSON."""

TABLES: Final = 2
"""Rows of the first table of a snapshot; the next table's number is one higher."""

SCHEMA: Final = "bucket int, kind int, content binary"
_arrow: Final = pa.schema([("bucket", pa.int32()), ("kind", pa.int32()), ("content", pa.binary())])
FULL_BYTES: Final = 16_000_000
"""Bytes that go to Spark together."""


class Blob(Struct, frozen=True, kw_only=True):
    """Something on its way to a bucket."""

    bucket: int
    kind: int
    content: bytes


class Bundle:
    """Collects blobs for Spark. It is written to like a sheaf, where a label is a bucket."""

    def __init__(self, kind: int) -> None:
        self._kind = kind
        self._blobs: list[Blob] = []
        self._size = 0

    def write(self, label: int, batch: pa.RecordBatch) -> None:
        """Adds rows for a bucket."""
        self.add(Blob(bucket=label, kind=self._kind, content=packed(batch)))

    def add(self, blob: Blob) -> None:
        """Adds a blob."""
        self._blobs.append(blob)
        self._size += len(blob.content)

    def full(self) -> Iterator[pa.RecordBatch]:
        """What has come together, when it is worth a way of its own."""
        if self._size >= FULL_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What has come together."""
        if self._blobs:
            yield bundled(self._blobs)
        self._blobs, self._size = [], 0


def bundled(blobs: list[Blob]) -> pa.RecordBatch:
    """Blobs as Spark takes them."""
    columns = [
        pa.array([blob.bucket for blob in blobs], pa.int32()),
        pa.array([blob.kind for blob in blobs], pa.int32()),
        pa.array([blob.content for blob in blobs], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_arrow)


def unbundled(batch: pa.RecordBatch) -> Iterator[Blob]:
    """The blobs in a batch of Spark's."""
    for place in range(len(batch)):
        bucket, kind, content = (batch.column(name)[place].as_py() for name in _arrow.names)
        yield Blob(bucket=bucket, kind=kind, content=content)


def packed(batch: pa.RecordBatch) -> bytes:
    """The rows as bytes, compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=PACKED) as writer:
        writer.write_batch(batch)
    return bytes(memoryview(sink.getvalue()))


def unpacked(content: bytes) -> Iterator[pa.RecordBatch]:
    """The rows that were packed."""
    with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
        yield from reader
