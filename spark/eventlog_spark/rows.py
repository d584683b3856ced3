"""The rows that a conversion from an address begins with, as frames: of files there, or of a log in a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.commit import WORK
from eventlog.convert.inputs import kind_of_file, places_of
from eventlog.convert.plan import ROW_BYTES
from eventlog.convert.rows import ROWS as EVENTS
from eventlog.convert.settings import Conversion, FilesInput
from eventlog.convert.taken import ConvertedRows
from eventlog.convert.transactions import refuse_left_rows
from eventlog.core.errors import UsageError
from eventlog_spark.cutting import Cut, cut
from eventlog_spark.exchange import read_pieces
from eventlog_spark.faults import travelling
from eventlog_spark.frames import Source, events
from eventlog_spark.hadoop import HadoopFolder, as_named, footers
from eventlog_spark.lines import LineFiles
from eventlog_spark.progress import describe_jobs
from eventlog_spark.types import ddl, name_function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class InputRows(Struct, frozen=True, kw_only=True):
    """The rows that are converted, about how many there are, and how many are left in a log, by the
    reason.
    """

    sources: tuple[Source, ...]
    cut: Cut
    left: dict[str, int] = {}
    lines: LineFiles | None = None


@contextmanager
def rows_of_log(
    spark: SparkSession, conversion: Conversion, target: HadoopFolder, taken: ConvertedRows | None
) -> Iterator[InputRows]:
    """Yield the rows of a log, in a snapshot that all tasks share during the block.

    A database without one is read once, and the rows are stored beside the output until it is complete: a
    repeated task then finds the same rows, even if the log has changed.
    """
    # Without the tables of a snapshot, which are read where they lie.
    with cut(replace(conversion, read_back=None), taken) as log_cut:
        refuse_left_rows(conversion, log_cut.taken)
        count = len(log_cut.pieces)
        pieces = spark.range(0, count, 1, max(1, count))
        source = Source(pieces, name_function(read_pieces, conversion, log_cut.pieces, log_cut.taken, None))
        rows = InputRows(sources=(source,), cut=log_cut, left=dict(log_cut.taken.left))
        if None in log_cut.pieces:
            with describe_jobs(spark, "reading"):
                rows = store_rows(spark, rows, target.subfolder(f"{WORK}/rows"))
        yield rows


def store_rows(spark: SparkSession, rows: InputRows, address: str) -> InputRows:
    """Store the rows of a log; return them with their size."""
    for source in rows.sources:
        source.map_rows(_as_they_are, ddl(EVENTS)).write.parquet(address)
    # With its schema given: of a log without rows there is no file that has it.
    frame = spark.read.schema(ddl(EVENTS)).parquet(as_named(address))
    size = sum(HadoopFolder(spark, address).files().values())
    return replace(rows, sources=(Source(frame),), cut=replace(rows.cut, size=size))


def _as_they_are(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with travelling():
        yield from batches


def rows_of_files(spark: SparkSession, places: tuple[str, ...], source: FilesInput) -> InputRows:
    """Read all files of log rows at these places; estimate the number of rows."""
    sizes: dict[str, int] = {}
    for path in places:
        sizes.update(HadoopFolder(spark, path).files())
    kinds = {file: kind_of_file(PurePosixPath(file)) for file in sizes}
    parquet = [file for file in sorted(sizes) if kinds[file] == "parquet"]
    lines = {file: sizes[file] for file in sorted(sizes) if kinds[file] in ("lines", "csv")}
    if not parquet and not lines:
        raise UsageError(
            f"There is no .parquet, .jsonl or .csv file at {', '.join(places)}.",
            hint="Name one, or a folder that has some.",
        )
    sources, rows = [], 0
    alike: dict[str, list[str]] = {}
    for footer in footers(spark, parquet):
        places_of(footer.names, footer.file)
        alike.setdefault(footer.schema, []).append(footer.file)
        rows += footer.rows
    # Files that Spark reads as one frame have the columns of any of them; the others' would be
    # NULL, or an error of its own.
    for files in alike.values():
        frame = events(spark.read.parquet(*map(as_named, files)), clock=source.clock)
        sources.append(Source(frame))
    line_files = LineFiles(spark, lines, source) if lines else None
    if line_files is not None:
        sources.append(Source(line_files.frame(), line_files.reader()))
        rows += sum(lines.values()) // ROW_BYTES
    size = sum(sizes[file] for file in parquet) + sum(lines.values())
    return InputRows(sources=tuple(sources), cut=Cut(pieces=(), rows=rows, size=size), lines=line_files)
