"""Conversions of a log to an address: its rows are taken once, and marked when the output is there.

The rows stand beside the output until it is complete. So a task that Spark does again finds the
same ones, whoever has changed the log since.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from eventlog.convert.commit import OUTCOMES_FILE, WORK
from eventlog.convert.marked_place import outcome_files
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
from eventlog_spark.log import NumberRange
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
        return self._folder.read(name) if name in self._folder.names() else None

    def write(self, name: str, content: bytes) -> None:
        self._folder.write(name, content)

    def remove(self, name: str) -> None:
        self._folder.remove(name)

    def tidy(self) -> None:
        self._folder.remove(WORK)

    @contextmanager
    def outcomes(self) -> Iterator[list[Path]]:
        with tempfile.TemporaryDirectory(prefix="eventlog-") as folder:
            self._folder.copy_out(OUTCOMES_FILE, f"{folder}/{OUTCOMES_FILE}")
            yield outcome_files(Path(folder) / OUTCOMES_FILE)


@contextmanager
def marked_address(address: str, cluster: Cluster, *, hiding: bool) -> Iterator[MarkedAddress]:
    """The place of an output that is made, and whose rows are marked, in one session."""
    with session(cluster, hiding=hiding) as spark, arriving():
        yield MarkedAddress(HadoopFolder(spark, address))


def taken_rows(
    spark: SparkSession, conversion: Conversion, target: HadoopFolder, withheld: Withheld | None
) -> tuple[DataFrame, Cut, dict[str, int]]:
    """The rows of a log that are to be converted, and how many are left in it."""
    place = target.subfolder(f"{WORK}/rows")
    with cut(replace(conversion, read_back=None), withheld) as found:
        refuse_left_rows(conversion, found.withheld)
        count = len(found.pieces)
        pieces = spark.range(0, count, 1, max(1, count))
        rows = pieces.mapInArrow(named(_taken, conversion, found.pieces, found.withheld), ddl(TAKEN))
        rows.write.parquet(place)
    written = spark.read.schema(ddl(TAKEN)).parquet(as_named(place))
    left = Counter[str]()
    for row in written.where(f"{LEFT} IS NOT NULL").select(LEFT).collect():
        left.update(msgspec.json.decode(row[LEFT], type=dict[str, int]))
    size = sum(HadoopFolder(spark, place).files().values())
    return written.where(f"{LEFT} IS NULL").select(*ROWS.names), Cut(pieces=(), rows=found.rows, size=size), dict(left)


def _taken(
    conversion: Conversion,
    pieces: Sequence[NumberRange | WholeLog],
    withheld: Withheld,
    places: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    placing = Placing(conversion.catalog)
    with travelling():
        for place in (place for batch in places for place in batch.column(0).to_pylist()):
            left = Counter[str]()
            for rows in rows_of(conversion, pieces[place]):
                taken, some = withheld.divide(placing.place(rows))
                left.update(some)
                columns = [*taken.select(ROWS.names).columns, pa.nulls(len(taken), pa.string())]
                yield pa.RecordBatch.from_arrays(columns, schema=TAKEN)
            if left:
                yield pa.RecordBatch.from_pylist([{LEFT: msgspec.json.encode(left).decode()}], schema=TAKEN)


def numbers_of(spark: SparkSession, outcomes: str) -> Stretches:
    """The numbers in files of outcomes; they are in order, so only where runs of them begin and end
    comes here.
    """
    found = spark.read.parquet(as_named(outcomes)).select("position").mapInArrow(named(_runs), ddl(RUNS))
    return Stretches((row["first"], row["last"]) for row in found.collect())


def _runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    parts = [part for batch in batches for part in numbers_in([batch.column(0)]).parts]
    joined = Stretches(parts).parts
    columns = [pa.array([part[place] for part in joined], pa.int64()) for place in (0, 1)]
    yield pa.RecordBatch.from_arrays(columns, schema=RUNS)
