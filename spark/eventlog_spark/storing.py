"""What was decided goes to Spark's writers: parts and outcomes, which are then called as `eventlog
convert` calls them.

    parts      tasks write them as the local engine does, and give their bytes away (`parting`)
    outcomes   in their order, in files of equally many rows: no task has to see all of them

A task of Spark's has one file for each path that its rows have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.collecting import WrittenChanges
from eventlog.convert.commit import WORK
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.convert.plan import PartSpan, part_spans
from eventlog.convert.rows import OUTCOMES
from eventlog.convert.settings import Conversion, TableFiles
from eventlog.convert.writing import GROUP_ROWS, PartTasks, Write
from eventlog_spark.deciding import CHANGES, ENDED
from eventlog_spark.hadoop import HadoopFolder
from eventlog_spark.parting import FILES, outcomes_in_order, part_files, rows_of_blobs
from eventlog_spark.types import ddl, name_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUTCOME_ROWS: Final = 8 * GROUP_ROWS
"""Rows of a file of outcomes: always as many, so that the files do not depend on how the rows
came.
"""

NO_ROWS: Final = PartSpan(first=0, last=0, range=0, skipped=0, until=0)
"""A file of outcomes stands there even if there are none."""

Move = tuple[str, str]
"""Where a file lies that was written, and what it is to be called."""

_part = re.compile(r"(?:.*/)?(?:part-(\d+)|LOAD(\d+))").match


class DecidedBlobs(Struct, frozen=True, kw_only=True):
    """Changes and outcomes as blobs by ranges of positions (`deciding`), and what is known of each
    range.
    """

    changes: DataFrame
    written: tuple[WrittenChanges, ...]
    outcomes: DataFrame
    ended: dict[int, int]
    """Outcomes by range."""
    size: int = 0
    """The bytes of all rows in memory."""


def store_parts(conversion: Conversion, blobs: DecidedBlobs, target: HadoopFolder) -> list[Move]:
    """Write the files of all parts with Spark."""
    tasks = PartTasks(conversion=conversion, changes=blobs.written, tables=None, folder="", staged="")
    if not tasks.counted():
        return []
    if isinstance(conversion.format, TableFiles) and conversion.format.files.format == "parquet":
        # A part a task: rows of Parquet take more memory than text when Spark writes them.
        files = _part_changes(list(tasks.each(at_once=1)), blobs.changes)
        return list(_store_tables(files, target))
    files = _part_changes(list(tasks.each()), blobs.changes)
    folder = target.subfolder(f"{WORK}/text")
    # Spark writes a file for each value of `path`, its rows in the order in which they come.
    text = files.selectExpr("path", "chunk", "text AS value").sortWithinPartitions("path", "chunk")
    # However large: a file that is cut by its rows would be two.
    text.drop("chunk").write.option("maxRecordsPerFile", 0).partitionBy("path").text(folder)
    return list(target.files_by("path", folder))


def part_count(moves: Sequence[Move]) -> int:
    """Count the parts of these files: several tables or topics have files of one part."""
    numbers = set[int]()
    for _, name in moves:
        match = _part(name)
        if match is not None and match[1]:
            numbers.add(int(match[1]))
        elif match is not None:
            # LOAD00000001 is of the first part, which has the number 0.
            numbers.add(int(match[2]) - 1)
    return len(numbers)


def store_outcomes(blobs: DecidedBlobs, target: HadoopFolder) -> list[Move]:
    """Write the outcomes of all rows in order with Spark."""
    spans = list(part_spans(blobs.ended, OUTCOME_ROWS, 1)) or [NO_ROWS]
    by_span = _by_task(blobs.outcomes.where(f"kind = {ENDED}"), spans)
    rows = by_span.mapInArrow(name_function(outcomes_in_order, spans), ddl(OUTCOMES))
    # Positions never repeat, so a dictionary of them would be larger than they are.
    writer = rows.write.option("parquet.enable.dictionary#position", "false")
    writer = writer.option("compression", "zstd").option("maxRecordsPerFile", 0)
    writer.parquet(target.subfolder(f"{WORK}/outcomes"))
    parts = sorted(target.parts("outcomes").items())
    return [(path, f"{OUTCOMES_FILE}/part-{number:05d}.parquet") for number, path in parts]


def _store_tables(files: DataFrame, target: HadoopFolder) -> Iterator[Move]:
    """Write the rows of tables with Spark: tables with the same columns together."""
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    # Asked for once for each layout; without this the parts would be written as often.
    files = files.persist()
    try:
        distinct = files.select("layout").distinct().collect()
        for number, layout in enumerate(sorted(bytes(row.layout) for row in distinct)):
            columns = pa.ipc.read_schema(pa.py_buffer(layout))
            path, row = _unlike("path", columns), _unlike("row", columns)
            schema = pa.schema([*columns, pa.field(path, pa.string()), pa.field(row, pa.int64())])
            of_layout = files.where(F.col("layout") == F.lit(bytearray(layout)))
            blobs = of_layout.select("path", "content")
            rows = blobs.mapInArrow(name_function(rows_of_blobs, path, row), ddl(schema))
            rows = rows.sortWithinPartitions(path, row).drop(row)
            folder = target.subfolder(f"{WORK}/table-{number}")
            rows.write.option("maxRecordsPerFile", 0).partitionBy(path).parquet(folder)
            yield from target.files_by(path, folder)
    finally:
        files.unpersist()


def _unlike(name: str, columns: pa.Schema) -> str:
    """Return the name, longer if a table has such a column; Spark ignores case."""
    taken = {column.lower() for column in columns.names}
    while name in taken:
        name += "_"
    return name


def _part_changes(several: list[Write], blobs: DataFrame) -> DataFrame:
    """Make the files of all parts in pieces (FILES), each task's by one task of Spark's."""
    write = name_function(part_files, [replace(task, rendered=()) for task in several])
    by_task = _by_task(blobs.where(f"kind = {CHANGES}"), [task.span for task in several])
    return by_task.mapInArrow(write, ddl(FILES))


def _by_task(blobs: DataFrame, spans: Sequence[PartSpan]) -> DataFrame:
    """Bring blobs to each of the tasks for their range, with the task's number: a task has a span."""
    wanted: list[list[int]] = [[] for _ in range(1 + max(span.until for span in spans))]
    for number, span in enumerate(spans):
        for label in range(span.range, span.until + 1):
            wanted[label].append(number)
    # A blob whose range two tasks need, for parts end within it, goes to both of them.
    tasks_of = f"from_json('{msgspec.json.encode(wanted).decode()}', 'array<array<int>>')[bucket]"
    by_task = blobs.selectExpr(f"explode({tasks_of}) AS task", "bucket AS label", "content")
    # By the number itself: a hash would bring several tasks to one of Spark's.
    return by_task.repartitionById(len(spans), "task")
