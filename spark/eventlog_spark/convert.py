"""Bulk conversion on Spark: the local engine's tasks and its step, a shuffle of Spark's, and equal
bytes in the end.

    exchange   pieces of the input to blobs of rows, each for the bucket of its objects (mapInArrow)
    shuffle    the blobs of some buckets to one task (repartitionById)
    deciding   bucket after bucket, whole objects through the step, into files by ranges (mapInArrow)
    tasks      ranges to parts and outcomes, and whatever else the pipeline has done: each is a row
               of mapInArrow

Law: only counts and names of files come to the driver, never rows. Where ranges begin follows from
notes that whoever reads a piece sends to all tasks; Spark's own range partitioning would run the
conversion twice to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from eventlog.convert.commit import Destination, Summary
from eventlog.convert.identity import as_begun, identity_of
from eventlog.convert.marks import Marking, note_beside, sealing
from eventlog.convert.partitions import PartitionFile
from eventlog.convert.pipeline import ConversionRun, ConversionWatch, Unwatched
from eventlog.convert.sending import SENDING, is_sending, reach, refuse_other
from eventlog.convert.settings import (
    Conversion,
    FilesInput,
    SnapshotRows,
)
from eventlog.convert.tasks import DecidedRows, UnitNumbers
from eventlog.convert.transactions import refuse_left_rows, refuse_unknown_transactions
from eventlog.convert.work import Task
from eventlog.durable_files import write_file
from eventlog_spark.cluster import Cluster, configured, session
from eventlog_spark.cutting import Cut, cut, task_count
from eventlog_spark.deciding import ANSWERS, BucketRules, decide_buckets, do_tasks, pack_tasks, together
from eventlog_spark.exchange import SCHEMA, read_pieces, scatter_files
from eventlog_spark.faults import arriving
from eventlog_spark.frames import Source, blobs_of, by_task
from eventlog_spark.progress import count_conversion, watch_jobs
from eventlog_spark.types import name_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Result = TypeVar("Result")
MOST_TASKS: Final = 10_000

ONE_BATCH: Final = "spark.sql.execution.arrow.localRelationThreshold"
"""The bytes from which Spark makes each batch of a table a partition."""


def place_tasks(spark: SparkSession, tasks: Sequence[Any], parts: int) -> DataFrame:
    """Make a frame of tasks with this number of partitions; Spark splits none of them further."""
    # Else Spark takes small tables apart as it likes.
    with configured(spark, ONE_BATCH, "0"):
        return spark.createDataFrame(pack_tasks(tasks, parts))


def convert(
    conversion: Conversion,
    *,
    cluster: Cluster | None = None,
    watch: ConversionWatch | None = None,
    marking: Marking | None = None,
) -> Summary:
    """Convert on Spark; the destination has one name on the driver and all executors."""
    conversion = _absolute(conversion)
    refuse_unknown_transactions(conversion)
    destination, identity = Destination(conversion.destination), identity_of(conversion)
    # The engines keep their work in other ways.
    order = f"spark-{identity}"
    if not conversion.overwrite:
        refuse_other(order, destination.work)
    # Only what was being sent is gone on with; all else begins anew.
    resumed = (destination.work / order / SENDING).exists()
    with (
        destination.occupy(overwrite=conversion.overwrite, resume=resumed),
        sealing(marking, destination.work, sending=resumed) as taken,
    ):
        try:
            # Not before the folder is ours: a Kafka shuts out who sends under the same name.
            reach(conversion.format)
            with (
                cut(conversion, taken) as input_cut,
                session(cluster or Cluster(), hiding=conversion.hides) as spark,
            ):
                refuse_left_rows(conversion, input_cut.taken)
                kept, watch = destination.begun(order), watch or Unwatched()
                conversion = as_begun(conversion, kept)
                engine = SparkEngine(conversion, kept, spark, input_cut, watch)
                run = ConversionRun(conversion, engine, str(kept), str(destination.staged), watch, marking)
                summary = run.converted()
                count_conversion(spark, summary)
            if marking is not None:
                marking.plan()
        except BaseException:
            # Nothing else of it can be gone on with.
            if not is_sending(destination.work):
                destination.discard()
            raise
        destination.commit(summary, note_beside(conversion, identity, marking), identity)
    return summary


class SparkEngine:
    """Brings rows together by Spark's shuffle, and runs tasks on executors."""

    def __init__(
        self,
        conversion: Conversion,
        folder: Path,
        spark: SparkSession,
        input_cut: Cut,
        watch: ConversionWatch,
    ) -> None:
        self._conversion = conversion
        self._folder = folder
        self._spark = spark
        self._cut = input_cut
        self._watch = watch

    def run(
        self,
        stage: str,
        function: Callable[[Any], Result],
        tasks: Sequence[Task],
        kind: type[Result],
        *,
        rows: int | None = None,
        keep: bool = True,
    ) -> list[Result]:
        """Run tasks on executors and return their answers; `keep` them for a run that goes on with sending."""
        run = partial(self._run, stage, function, tasks, kind, rows)
        return self._do_once(stage, list[kind], run) if keep else run()  # type: ignore[valid-type]  # a type as a value

    def decided(self, conflicts: Sequence[PartitionFile]) -> DecidedRows:
        name = "deciding again" if conflicts else "deciding"
        return self._do_once(name, DecidedRows, partial(self._decide, conflicts))

    def release(self) -> None:
        """Spark clears its shuffle files away itself."""

    def _do_once(self, name: str, kind: type[Result], work: Callable[[], Result]) -> Result:
        """Return what this step gave before an interruption, else do it."""
        kept = self._folder / f"{name}.json"
        if kept.exists():
            return msgspec.json.decode(kept.read_bytes(), type=kind)
        result = work()
        write_file(kept, msgspec.json.encode(result))
        return result

    def _decide(self, conflicts: Sequence[PartitionFile]) -> DecidedRows:
        """Scatter, shuffle and decide, in one job of Spark's."""
        conversion, cut = self._conversion, self._cut
        tasks = task_count(cut.buckets, self._cores)
        deciding = BucketRules(
            conversion=conversion,
            tables=tuple((file.table, file.child) for file in cut.tables),
            conflicts=tuple(conflicts),
            folder=str(self._folder),
        )
        # How many rows tasks have read up to now: all that they tell the driver on their way.
        met = self._spark.sparkContext.accumulator(0)
        read = name_function(read_pieces, conversion, cut.pieces, cut.taken, met.add)
        source = Source(self._number_pieces(len(cut.pieces)), read)
        blobs = blobs_of([source], conversion.catalog, cut.buckets, {}, tasks=tasks)
        if cut.tables:
            scatter = name_function(scatter_files, conversion.catalog, cut.tables, cut.buckets)
            blobs = blobs.unionAll(self._number_pieces(len(cut.tables)).mapInArrow(scatter, SCHEMA))
        answers = by_task(blobs, tasks).mapInArrow(name_function(decide_buckets, deciding), SCHEMA)
        with watch_jobs(self._spark, self._watch, "deciding", cut.total, met), arriving():
            decided_rows = together(row.content for row in answers.collect())
        left = UnitNumbers(left=dict(cut.taken.left))
        return replace(decided_rows, numbers=[*decided_rows.numbers, left])

    def _run(
        self,
        stage: str,
        function: Callable[[Any], Result],
        tasks: Sequence[Task],
        kind: type[Result],
        rows: int | None,
    ) -> list[Result]:
        if not tasks:
            return []
        parts = min(task_count(len(tasks), self._cores), MOST_TASKS)
        step = partial(do_tasks, function, self._conversion)
        with watch_jobs(self._spark, self._watch, stage, rows), arriving():
            answers = place_tasks(self._spark, tasks, parts).mapInArrow(step, ANSWERS).collect()
        return [msgspec.json.decode(bytes(row.content), type=kind) for row in answers]

    def _number_pieces(self, count: int) -> DataFrame:
        """Make a frame of the numbers of all pieces, some to a task."""
        return self._spark.range(0, count, 1, min(task_count(count, self._cores), MOST_TASKS) or 1)

    @property
    def _cores(self) -> int:
        """Return how many tasks run at a time, as far as Spark knows by now."""
        return self._spark.sparkContext.defaultParallelism


def _absolute(conversion: Conversion) -> Conversion:
    """Make the paths of a conversion absolute: executors work in folders of their own."""
    source = conversion.input
    if isinstance(source, FilesInput):
        places = tuple(str(Path(path).absolute()) for path in source.places)
        source = replace(source, places=places)
    read_back = conversion.read_back
    if isinstance(read_back, SnapshotRows):
        read_back = replace(read_back, folder=read_back.folder.absolute())
    destination = conversion.destination.absolute()
    return replace(conversion, input=source, destination=destination, read_back=read_back)
