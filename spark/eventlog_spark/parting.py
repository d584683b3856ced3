"""Parts for Spark's writers: a task writes its parts on its own disk, as the local engine does, and
gives their bytes away.

Text goes in pieces that end where a line ends, because Spark's writer ends each with a line break.
So do containers of Avro, whose last byte is one. Rows of Parquet files go as packed batches, and
become columns when Spark writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from msgspec.structs import replace
from pyarrow import parquet

from eventlog.convert.partitions import (
    OUTCOME_ORDER,
    PartitionFile,
    in_order,
    labels_of,
    read_label,
)
from eventlog.convert.plan import PartSpan
from eventlog.convert.settings import TableFiles
from eventlog.convert.work import guard_task
from eventlog.convert.writing import Write, between, produce
from eventlog_spark.deciding import local_folder
from eventlog_spark.exchange import Blob, BlobFiles, pack_rows, unpack_rows
from eventlog_spark.faults import travelling

FILES: Final = pa.schema(
    [
        ("path", pa.string()),
        ("chunk", pa.int32()),
        ("layout", pa.binary()),
        ("content", pa.binary()),
        ("text", pa.string()),
    ]
)
"""Files in pieces: where it is to stand, and its text, or for tables what columns it has and
rows.
"""

TEXTS: Final = frozenset({".xml", ".jsonl", ".csv", ".json", ".avro"})
"""How files are called that end with a line break."""
DESCRIPTION: Final = ".dfm"
"""Of a file of rows. Spark ends it with a line break, which it has not otherwise."""

PIECE_BYTES: Final = 1 << 18
"""Java keeps larger ones where only a long collection of garbage finds them."""


def part_files(tasks: Sequence[Write], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the files of one task from its changes, and yield them in pieces."""
    with travelling(), local_folder() as folder:
        number, changes = _take_blobs(batches, folder)
        if changes is None:
            return
        out = folder / "out"
        out.mkdir()
        task = replace(tasks[number], rendered=(changes,), folder=str(folder), staged=str(out))
        guard_task(produce, task)
        form = tasks[number].conversion.format
        text_endings = TEXTS
        if isinstance(form, TableFiles) and form.files.format != "parquet":
            text_endings |= {DESCRIPTION}
        # In an order, so that a task which Spark tries once more gives the same.
        for path in sorted(out.rglob("*")):
            if path.suffix == ".parquet":
                yield from _pieces(path, out, _of_rows(path))
            elif path.suffix in text_endings:
                texts = ((None, None, text) for text in _of_text(path))
                yield from _pieces(path, out, texts)


def outcomes_in_order(spans: Sequence[PartSpan], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the outcomes of one span in order; its blobs come in none."""
    with travelling(), local_folder() as folder:
        number, file = _take_blobs(batches, folder)
        if file is None:
            return
        span = spans[number]
        ordered = (
            rows
            for label in labels_of([file])
            for rows in in_order(read_label([file], label), OUTCOME_ORDER, folder / "spill")
        )
        yield from between(ordered, span.skipped, span.skipped + span.last - span.first)


def rows_of_blobs(path_name: str, row_name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Unpack the rows of files, each with its file's path and a number for their order."""
    count = 0
    with travelling():
        for batch in batches:
            for path, content in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                for rows in unpack_rows(content.as_py()):
                    numbers = pa.array(range(count, count + len(rows)), pa.int64())
                    count += len(rows)
                    paths = pa.array([path] * len(rows), pa.string())
                    with_path = rows.append_column(path_name, paths)
                    yield with_path.append_column(row_name, numbers)


def _take_blobs(batches: Iterator[pa.RecordBatch], folder: Path) -> tuple[int, PartitionFile | None]:
    """Collect the blobs of a task in a file by ranges; return the task's number and the file."""
    number = 0
    with BlobFiles(folder) as files:
        for batch in batches:
            columns = [column.to_pylist() for column in batch.columns]
            for task, label, content in zip(*columns, strict=True):
                # The same of all of them.
                number = task
                files.take(Blob(bucket=label, kind=0, content=content))
    return number, files.finished().get(0)


def _of_text(path: Path) -> Iterator[bytes]:
    """Yield a file's lines, many together, without the last line break of each piece."""
    rest = b""
    with path.open("rb") as file:
        while block := file.read(PIECE_BYTES):
            whole, end, rest = (rest + block).rpartition(b"\n")
            if end:
                yield whole
    assert not rest or path.suffix == DESCRIPTION, path.name
    if rest:
        yield rest


def _of_rows(path: Path) -> Iterator[tuple[bytes, bytes, None]]:
    """Yield a table's columns with some of its rows each time."""
    file = parquet.ParquetFile(path)
    layout = file.schema_arrow.remove_metadata().serialize().to_pybytes()
    return ((layout, pack_rows(batch), None) for batch in file.iter_batches())


def _pieces(
    path: Path, out: Path, pieces: Iterator[tuple[bytes | None, bytes | None, bytes | None]]
) -> Iterator[pa.RecordBatch]:
    name = str(path.relative_to(out))
    for chunk, piece in enumerate(pieces):
        layout, content, text = (pa.array([value], pa.binary()) for value in piece)
        # Not every byte of a container is one of UTF-8; Spark looks at none of them.
        columns = [pa.array([name]), pa.array([chunk], pa.int32()), layout, content, text.view(pa.string())]
        yield pa.RecordBatch.from_arrays(columns, schema=FILES)
