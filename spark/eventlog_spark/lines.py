"""Files of lines at addresses: Spark cuts them at ends of lines, as Hadoop does, and tasks read them in pieces.

A task cannot see whether a piece of CSV begins within quotes. But if no piece ends within quotes, none
begins there, for the first one does not. So all pieces are read; if one fails, each file is read once more by
one task, line after line. That one knows where quotes begin, and the numbers of lines.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eventlog.convert.inputs import LONGEST_HEADER_BYTES, kind_of_file, refuse_header
from eventlog.convert.lines import BLOCK_BYTES, Records, csv_columns, line_columns, no_header
from eventlog.convert.rows import shape_rows, times_in_utc
from eventlog.convert.settings import FilesInput
from eventlog.core.errors import DataError
from eventlog.sql.clocks import zone_of
from eventlog_spark.cluster import configured
from eventlog_spark.hadoop import LOOK_THREADS, HadoopFolder, as_named
from eventlog_spark.types import name_function

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger("eventlog_spark")
IN_PIECES: Final = "cannot be read in pieces"
SKIPPED_FROM: Final = "mapreduce.input.linerecordreader.line.maxlength"
"""Hadoop passes over lines that have so many bytes or more, with their ends."""
WHOLE: Final = {"spark.sql.files.maxPartitionBytes": f"{1 << 40}b", "spark.sql.files.openCostInBytes": f"{1 << 40}b"}
"""Settings with which each file is one piece, and a task's."""

Sizes = dict[tuple[str, int], int]
"""The bytes of the lines of pieces, by their files and beginnings."""


class Piece(Struct, frozen=True):
    """A piece of a file: where it begins, and whether it ends with its file."""

    file: str
    start: int
    is_last: bool


class LineRules(Struct, frozen=True, kw_only=True):
    """How lines are read. `headers` are those of CSV files that may be cut; of `large` files the bytes are noted."""

    headers: Mapping[str, Sequence[str]]
    large: frozenset[str]
    clock: str
    line_limit: int


class LineFiles:
    """Files of lines as a frame, and what is known of them."""

    def __init__(self, spark: SparkSession, sizes: Mapping[str, int], source: FilesInput) -> None:
        self._spark = spark
        # Only in such a file there may be a line that is too long. Of packed ones nobody knows how long they are.
        self._large = {
            file: size for file, size in sizes.items() if size > source.line_limit and not file.endswith(".gz")
        }
        self._limit = source.line_limit
        self._files = [as_named(file) for file in sizes]
        self._noted: Accumulator[Sizes] = _sizes_of_tasks(spark)
        self._rules = LineRules(
            headers=_headers(spark, sizes, source.line_limit),
            large=frozenset(self._large),
            clock=source.clock,
            line_limit=source.line_limit,
        )

    def frame(self) -> DataFrame:
        """Return the lines, each with its piece."""
        # With \r\n behind it a line has two bytes more.
        lines = self._spark.read.option("lineSep", "\n").option(SKIPPED_FROM, self._limit + 3).text(self._files)
        start, size = "_metadata.file_block_start", "_metadata.file_size"
        is_last = f"{start} + _metadata.file_block_length >= {size} AS is_last"
        return lines.selectExpr("CAST(value AS binary)", "_metadata.file_path AS file", f"{start} AS start", is_last)

    def reader(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return what makes rows of such lines in a task."""
        return name_function(read_lines, self._rules, self._noted.add)

    def refuse_skipped(self) -> None:
        """Refuse a file of whose lines not all have come: Hadoop passes over those that are too long."""
        noted = self._noted.value
        for file, size in self._large.items():
            read = sum(count for (name, _), count in noted.items() if name == file)
            # A byte order mark is none of a line's.
            if read < size - len("\ufeff".encode()):
                hint = "Correct it, or allow longer ones with publisher.value_limit; nothing was published."
                raise DataError(f"{file} has a line of more than {self._limit:,} bytes.", hint=hint)


@contextmanager
def whole_files(spark: SparkSession, error: DataError) -> Iterator[None]:
    """Have each file read by one task during the block, because of an error in a piece; other errors are raised."""
    if IN_PIECES not in error.message:
        raise error
    file = error.message.partition(f" {IN_PIECES}")[0]
    _log.warning("%s %s: one task reads each file.", file, IN_PIECES)
    with ExitStack() as settings:
        for name, value in WHOLE.items():
            settings.enter_context(configured(spark, name, value))
        yield


def read_lines(
    rules: LineRules, note: Callable[[Sizes], None], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read the rows of pieces, one after the other."""
    zone = zone_of(rules.clock)
    for piece, several in groupby(_blocks(batches), key=itemgetter(0)):
        counted = [0, 0]
        blocks = map(partial(_count, counted), map(itemgetter(1), several))
        try:
            for columns in _columns(rules, piece, blocks):
                yield times_in_utc(shape_rows(columns), zone)
        except DataError as error:
            if piece.start == 0 and piece.is_last:
                raise
            raise DataError(f"{piece.file} {IN_PIECES}: {error.message}", hint=error.hint) from error
        if piece.file in rules.large:
            note({(piece.file, piece.start): counted[1]})


def _columns(rules: LineRules, piece: Piece, blocks: Iterator[tuple[bytes, int]]) -> Iterator[dict[str, pa.Array]]:
    if kind_of_file(PurePosixPath(piece.file)) == "csv":
        header = rules.headers[piece.file] if piece.start else None
        return csv_columns((block for block, _ in blocks), piece.file, rules.line_limit, header)
    return line_columns(blocks, piece.file, lambda lines: lines + 1)


def _count(counted: list[int], block: bytes) -> tuple[bytes, int]:
    """Count the lines and bytes of a piece; return the block with the number of lines before it."""
    before = counted[0]
    counted[0] += block.count(b"\n")
    counted[1] += len(block)
    return block, before


def _blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Piece, bytes]]:
    """Yield blocks of lines, each with its piece."""
    for batch in batches:
        lines, files, starts, last = batch.columns
        at = 0
        while at < len(batch):
            file, start = files[at], starts[at]
            same = pc.and_(pc.equal(files.slice(at), file), pc.equal(starts.slice(at), start))
            count = pc.index(same, False).as_py()
            end = len(batch) if count < 0 else at + count
            piece = Piece(_plain_address(file.as_py()), start.as_py(), last[at].as_py())
            yield from ((piece, block) for block in _joined(lines.slice(at, end - at)))
            at = end


def _joined(lines: pa.Array) -> Iterator[bytes]:
    """Join lines to blocks; a line longer than a block is one by itself."""
    if len(lines) > 1 and lines.nbytes > BLOCK_BYTES:
        half = len(lines) // 2
        yield from _joined(lines.slice(0, half))
        yield from _joined(lines.slice(half))
        return
    together = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    yield pc.binary_join(together, b"\n")[0].as_py() + b"\n"


def _plain_address(file: str) -> str:
    """Return a file's address as Hadoop lists it: Spark writes it as a URL."""
    return unquote(file).replace("file:///", "file:/", 1)


def _headers(spark: SparkSession, sizes: Mapping[str, int], limit: int) -> dict[str, Sequence[str]]:
    """Read the headers of CSV files; DataError names a file without one."""
    files = [file for file in sizes if kind_of_file(PurePosixPath(file)) == "csv"]
    for file in files:
        # Spark passes over a file that is empty.
        if sizes[file] == 0:
            raise no_header(file)
    cut = [file for file in files if not file.endswith(".gz")]
    with ThreadPoolExecutor(LOOK_THREADS) as pool:
        return dict(zip(cut, pool.map(partial(_header, spark, limit), cut), strict=True))


def _header(spark: SparkSession, limit: int, file: str) -> Sequence[str]:
    folder, _, name = file.rpartition("/")
    read = b""
    for block in HadoopFolder(spark, folder).blocks(name, LONGEST_HEADER_BYTES):
        read += block
        if b"\n" in block or len(read) > limit:
            break
    first = read.partition(b"\n")[0]
    refuse_header(first, file)
    return Records([first.removeprefix(b"\xef\xbb\xbf")], file, limit).header()


def _sizes_of_tasks(spark: SparkSession) -> Accumulator[Sizes]:
    """Make what tasks note sizes in: a task that is done twice notes the same."""
    from pyspark import AccumulatorParam

    class ByPiece(AccumulatorParam[Sizes]):
        def zero(self, value: Any) -> Sizes:
            return {}

        def addInPlace(self, value1: Any, value2: Any) -> Sizes:  # noqa: N802  # Spark's name
            return {**value1, **value2}

    return spark.sparkContext.accumulator({}, ByPiece())
