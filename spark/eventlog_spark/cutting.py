"""How a conversion is cut for Spark: into which pieces its input, into how many buckets, at which
positions its output.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.convert.plan import BUCKET_BYTES, BUCKET_ROWS, ROW_BYTES
from eventlog.convert.settings import Conversion, FilesInput, LogInput, SnapshotRows, StreamInput
from eventlog.convert.snapshot import SnapshotFile, snapshot_files
from eventlog.convert.taken import ALL, ConvertedRows, choose_rows
from eventlog_spark.log import BulkLog, cut_numbers
from eventlog_spark.options import NumberRange, options_of
from eventlog_spark.snapshot import EXPORT

if TYPE_CHECKING:
    from eventlog_spark.exchange import Piece

MOST_BUCKETS: Final = 1_024
RANGE_ROWS: Final = 250_000

TASK_PIECES: Final = 4
"""Pieces of work that go to one task of Spark's: it costs as much to begin a task as to decide
thousands of rows.
"""

CORE_TASKS: Final = 4
"""Fewer tasks than that would leave cores idle when the others are done."""


class Cut(Struct, frozen=True, kw_only=True):
    """The pieces of the input, and the files of a snapshot's `tables`.

    `rows` are judged by the size of files that do not say how many they have; then there is no `total`. `size`
    are the bytes of all files.
    """

    pieces: tuple[Piece, ...]
    rows: int
    total: int | None = None
    size: int = 0
    taken: ConvertedRows = ALL
    tables: tuple[SnapshotFile, ...] = ()

    @property
    def buckets(self) -> int:
        """Return a number of buckets small enough to sort each in memory; a power of two."""
        wanted = max(self.rows // BUCKET_ROWS, self.size // BUCKET_BYTES, 1)
        return min(MOST_BUCKETS, 1 << wanted.bit_length())


def task_count(pieces: int, cores: int) -> int:
    """Return the number of Spark's tasks for so many pieces of work."""
    # Rounded up, so that no task has more pieces than that.
    return min(pieces, max(CORE_TASKS * cores, -(-pieces // TASK_PIECES)))


@contextmanager
def cut(conversion: Conversion, taken: ConvertedRows | None = None) -> Iterator[Cut]:
    """Cut the input into pieces, and hold a log's snapshot for all of them during the block.

    `taken` are the rows of a log to convert, if they are chosen already.
    """
    tables = _tables(conversion)
    if isinstance(conversion.input, StreamInput):
        # A stream is cut by what it holds.
        yield Cut(pieces=(), rows=0)
    elif isinstance(conversion.input, FilesInput):
        pieces = conversion.units
        rows = sum(unit.size // ROW_BYTES if unit.rows is None else unit.rows for unit in pieces)
        total = None if None in [unit.rows for unit in pieces] else rows
        size = sum(unit.size for unit in pieces)
        yield Cut(pieces=tuple(pieces), rows=rows, total=total, size=size, tables=tables)
    else:
        assert isinstance(conversion.input, LogInput)
        with _log(conversion, conversion.input, tables, taken) as log_cut:
            yield log_cut


def _tables(conversion: Conversion) -> tuple[SnapshotFile, ...]:
    source, catalog = conversion.read_back, conversion.catalog
    if not isinstance(source, SnapshotRows) or catalog is None:
        return ()
    return tuple(snapshot_files(source, catalog))


@contextmanager
def _log(
    conversion: Conversion,
    source: LogInput,
    tables: tuple[SnapshotFile, ...],
    taken: ConvertedRows | None,
) -> Iterator[Cut]:
    log = BulkLog(options_of(source))
    # Before the snapshot: who holds rows meanwhile is too late for this conversion.
    if taken is None:
        taken = choose_rows(source, conversion.catalog)
    with log.connection() as connection:
        snapshot = None
        if log.copies:
            # The connection stays open until all pieces are read: the snapshot ends with it.
            snapshot = str(connection.exec_driver_sql(EXPORT).scalar_one())
        ((lowest, highest),) = log.rows(connection, "extent")
        ((rows,),) = log.rows(connection, "chosen_count")
        pieces: list[NumberRange | None] = [None]
        if snapshot is not None:
            pieces = []
            if lowest is not None:
                count = 1 + int(rows) // RANGE_ROWS
                pieces = [*cut_numbers(int(lowest), int(highest), count, snapshot)]
        yield Cut(pieces=tuple(pieces), rows=int(rows), total=int(rows), taken=taken, tables=tables)
