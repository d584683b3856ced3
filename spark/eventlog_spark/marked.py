"""Conversions of a log to an address: its rows are taken once, and marked when the output is there.

The rows stand beside the output until it is complete. So a task that Spark does again finds the
same ones, whoever has changed the log since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from eventlog.convert.commit import WORK
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.convert.marked_place import fetched_outcomes
from eventlog.convert.marked_rows import numbers_in
from eventlog.convert.rows import ROWS, Placing
from eventlog.convert.settings import Conversion
from eventlog.convert.transactions import refuse_left_rows
from eventlog.convert.withheld import Withheld
from eventlog.sources.marks import Stretches
from eventlog_spark.cluster import Cluster, session
from eventlog_spark.cutting import Cut, cut
from eventlog_spark.exchange import WholeLog, rows_of
from eventlog_spark.faults import arriving, travelling
from eventlog_spark.hadoop import HadoopFolder, as_named
from eventlog_spark.options import NumberRange
from eventlog_spark.types import ddl, named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEFT: Final = "left"
TAKEN: Final = ROWS.append(pa.field(LEFT, pa.string()))
"""Rows that are taken; a row of its own counts those of a piece that are left in the log, by the
reason, in JSON.
"""

RUNS: Final = pa.schema([("first", pa.int64()), ("last", pa.int64())])


class MarkedAddress:
    """An output at an address of Hadoop's whose rows are marked."""

    def __init__(self, folder: HadoopFolder) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        return self._folder.address

    def read(self, name: str) -> bytes | None:
        # What a file system of Hadoop's says of a missing file is an error of Java's.
        if name not in self._folder.names():
            return None
        return self._folder.read(name)

    def write(self, name: str, content: bytes) -> None:
        self._folder.write(name, content)

    def remove(self, name: str) -> None:
        self._folder.remove(name)

    def tidy(self) -> None:
        self._folder.remove(WORK)

    def outcomes(self) -> AbstractContextManager[list[Path]]:
        return fetched_outcomes(lambda path: self._folder.copy_out(OUTCOMES_FILE, str(path)))


@contextmanager
def marked_address(address: str, cluster: Cluster, *, hiding: bool) -> Iterator[MarkedAddress]:
    """The place of an output that is made, and whose rows are marked, in one session."""
    with session(cluster, hiding=hiding) as spark, arriving():
        yield MarkedAddress(HadoopFolder(spark, address))


def taken_rows(
    spark: SparkSession,
    conversion: Conversion,
    target: HadoopFolder,
    withheld: Withheld | None,
) -> tuple[DataFrame, Cut, dict[str, int]]:
    """The rows of a log that are to be converted, and how many are left in it."""
    address = target.subfolder(f"{WORK}/rows")
    # Without the tables of a snapshot, which are read where they lie.
    with cut(replace(conversion, read_back=None), withheld) as log_cut:
        refuse_left_rows(conversion, log_cut.withheld)
        count = len(log_cut.pieces)
        pieces = spark.range(0, count, 1, max(1, count))
        take = named(_taken, conversion, log_cut.pieces, log_cut.withheld)
        pieces.mapInArrow(take, ddl(TAKEN)).write.parquet(address)
    # With its schema given: of a log without rows there is no file that has it.
    written = spark.read.schema(ddl(TAKEN)).parquet(as_named(address))
    left = Counter[str]()
    for row in written.where(f"{LEFT} IS NOT NULL").select(LEFT).collect():
        left.update(msgspec.json.decode(row[LEFT], type=dict[str, int]))
    size = sum(HadoopFolder(spark, address).files().values())
    rows = written.where(f"{LEFT} IS NULL").select(*ROWS.names)
    return rows, Cut(pieces=(), rows=log_cut.rows, size=size), dict(left)


def _taken(
    conversion: Conversion,
    pieces: Sequence[NumberRange | WholeLog],
    withheld: Withheld,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    placing = Placing(conversion.catalog)
    with travelling():
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            left = Counter[str]()
            for rows in rows_of(conversion, pieces[number]):
                taken, left_here = withheld.divide(placing.place(rows))
                left.update(left_here)
                columns = [*taken.select(ROWS.names).columns, pa.nulls(len(taken), pa.string())]
                yield pa.RecordBatch.from_arrays(columns, schema=TAKEN)
            # Among the rows: a task has no other way to say something that is kept with them.
            if left:
                row = {LEFT: msgspec.json.encode(left).decode()}
                yield pa.RecordBatch.from_pylist([row], schema=TAKEN)


def numbers_of(spark: SparkSession, outcomes: str) -> Stretches:
    """The numbers in files of outcomes; they are in order, so only where runs of them begin and end
    comes here.
    """
    positions = spark.read.parquet(as_named(outcomes)).select("position")
    runs = positions.mapInArrow(named(_runs), ddl(RUNS)).collect()
    return Stretches((row["first"], row["last"]) for row in runs)


def _runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    parts = [part for batch in batches for part in numbers_in([batch.column(0)]).parts]
    # Joined over batches, each of which may end in the middle of a run.
    joined = Stretches(parts).parts
    firsts = pa.array([first for first, _ in joined], pa.int64())
    lasts = pa.array([last for _, last in joined], pa.int64())
    yield pa.RecordBatch.from_arrays([firsts, lasts], schema=RUNS)
