"""Conversions from and to any file system that Hadoop knows: Spark reads, the step decides, Spark's
writers write.

    rows        Parquet by Spark, pieces of lines and CSV by our own readers, a log as it lies (`rows`)
    decided     blobs to buckets, buckets through the step, as everywhere (`exchange`, `deciding`);
                kept as blobs by ranges
    gathered    only where transactions are to be whole: changes to the ranges of where these end
    stored      parts and outcomes by Spark's writers (`storing`)
    committed   files renamed to the names of the contract, `_SUCCESS` last (`hadoop`)

No node needs a folder that others see. Where all nodes mount one, ranges and parts are files there
(`convert`), of every kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.collecting import WrittenChanges, transaction_labels
from eventlog.convert.commit import WORK, Summary
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.convert.identity import identity_of
from eventlog.convert.marks import Marking, fetch_outcomes, note_beside, sealing
from eventlog.convert.pipeline import summary_of
from eventlog.convert.settings import (
    Conversion,
    FilesInput,
    LogInput,
    MessageFiles,
    SnapshotRows,
    StreamInput,
    TableFiles,
)
from eventlog.convert.taken import ConvertedRows
from eventlog.convert.tasks import DecidedRows, may_conflict
from eventlog.convert.transactions import refuse_unknown_transactions, unknown_transactions
from eventlog.convert.writing import last_number
from eventlog.core.errors import DataError, UsageError
from eventlog.core.schema import Catalog
from eventlog.xds.write import XdsFormat
from eventlog_spark.cluster import Cluster, configured, session
from eventlog_spark.cutting import task_count
from eventlog_spark.deciding import (
    ANSWERS,
    CHANGES,
    ENDED,
    ENDS,
    BucketRules,
    Name,
    decide_buckets,
    find_repeated,
    gather_changes,
    together,
)
from eventlog_spark.exchange import NOTES, SCHEMA
from eventlog_spark.faults import arriving
from eventlog_spark.frames import blobs_of, by_task, conflicts_of
from eventlog_spark.hadoop import HadoopFolder, as_named
from eventlog_spark.lines import whole_files
from eventlog_spark.progress import count_conversion, describe_jobs
from eventlog_spark.readback import names_of_tables, tables_of
from eventlog_spark.rows import InputRows, rows_of_files, rows_of_log
from eventlog_spark.storing import DecidedBlobs, part_count, store_outcomes, store_parts
from eventlog_spark.types import name_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMES: Final = "spark.sql.parquet.outputTimestampType"
"""How Spark writes times to Parquet: in a form that says no zone, unless it is told otherwise."""


class Addresses(Struct, frozen=True, kw_only=True):
    """Where a conversion reads and writes. Without a `snapshot` the conversion says what answers
    read-backs.
    """

    destination: str
    inputs: tuple[str, ...] = ()
    snapshot: str | None = None


def convert_at(
    conversion: Conversion,
    places: Addresses,
    *,
    cluster: Cluster | None = None,
    marking: Marking | None = None,
) -> Summary:
    """Convert from and to addresses."""
    _refuse(conversion)
    refuse_unknown_transactions(conversion)
    started = session(cluster or Cluster(), hiding=conversion.hides)
    with started as spark, arriving(), configured(spark, TIMES, "TIMESTAMP_MICROS"):
        target = HadoopFolder(spark, places.destination)
        target.begin(overwrite=conversion.overwrite)
        with sealing(marking) as taken:
            try:
                with (
                    _rows(spark, conversion, places, target, taken) as rows,
                    _decide(spark, conversion, places, rows) as (summary, blobs),
                    describe_jobs(spark, "writing"),
                ):
                    written = _write(conversion, summary, blobs, target, marking)
                    count_conversion(spark, written)
                    return written
            except BaseException:
                # What was wrong first is raised; the next run removes the rest.
                with suppress(Exception):
                    target.discard()
                raise


def _refuse(conversion: Conversion) -> None:
    """Refuse a stream, a conversion with a receiver, and packed files: they need a folder."""
    form, hint = conversion.format, "Write into a folder that all nodes mount."
    if isinstance(conversion.input, StreamInput):
        raise UsageError("A captured stream needs a folder for its output.", hint=hint)
    if not isinstance(form, XdsFormat | TableFiles | MessageFiles):
        raise UsageError("A conversion that sends has no address for its output.", hint=hint)
    if isinstance(form, TableFiles) and form.files.gzip:
        raise UsageError(
            f"Files that end with .{form.files.ending} need a folder.", hint="Set gzip = false, or take Parquet."
        )


def _rows(
    spark: SparkSession,
    conversion: Conversion,
    places: Addresses,
    target: HadoopFolder,
    taken: ConvertedRows | None,
) -> AbstractContextManager[InputRows]:
    if isinstance(conversion.input, FilesInput):
        return nullcontext(rows_of_files(spark, places.inputs, conversion.input))
    return rows_of_log(spark, conversion, target, taken)


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
        return fetch_outcomes(lambda path: self._folder.copy_out(OUTCOMES_FILE, str(path)))


@contextmanager
def open_marked_address(address: str, cluster: Cluster, *, hiding: bool) -> Iterator[MarkedAddress]:
    """Open an output's address in one session of Spark, to make the output and to mark its rows."""
    with session(cluster, hiding=hiding) as spark, arriving():
        yield MarkedAddress(HadoopFolder(spark, address))


def _snapshot(spark: SparkSession, address: str, catalog: Catalog) -> dict[Name, DataFrame]:
    """Read the Parquet files of the schema's tables in a folder, each table a file or a folder."""
    folder, known = HadoopFolder(spark, address), names_of_tables(catalog)
    frames = {}
    for name in folder.names():
        table = name.removesuffix(".parquet")
        if catalog.fold(table) in known:
            frames[table] = spark.read.parquet(as_named(folder.subfolder(name)))
    if not frames:
        hint = "They are called like usr.parquet."
        raise UsageError(f"{address} has no Parquet file of a table of the schema.", hint=hint)
    return tables_of(frames, catalog)


@contextmanager
def _decide(
    spark: SparkSession, conversion: Conversion, places: Addresses, rows: InputRows
) -> Iterator[tuple[Summary, DecidedBlobs]]:
    """Decide all rows; a second time if a record_id turns out to stand at several objects."""
    catalog = conversion.catalog
    tables: dict[Name, DataFrame] = {}
    if places.snapshot is not None and catalog is not None:
        tables = _snapshot(spark, places.snapshot, catalog)
    if tables:
        # The rows come as blobs; that there are some is all that a task needs to know.
        conversion = replace(conversion, read_back=SnapshotRows(folder=Path()))
    buckets = rows.cut.buckets
    tasks = task_count(buckets, spark.sparkContext.defaultParallelism)
    rules = BucketRules(conversion=conversion, tables=tuple(tables))
    blobs = blobs_of(rows.sources, catalog, buckets, tables, tasks=tasks)
    kept: list[DataFrame] = []
    with ExitStack() as settings:
        settings.callback(lambda: [frame.unpersist() for frame in kept])
        with describe_jobs(spark, "deciding"):
            try:
                with arriving():
                    decided_blobs, answers = _decide_blobs(blobs, tasks, rules, kept)
            except DataError as error:
                # Else Spark would take what it has kept of these files for those of the same names.
                kept.pop().unpersist()
                settings.enter_context(whole_files(spark, error))
                decided_blobs, answers = _decide_blobs(blobs, tasks, rules, kept)
        if rows.lines is not None:
            rows.lines.refuse_skipped()
        # Rows of a file or a log seldom ascend, and a number of several objects is seldom there; that shows in outcomes.
        if may_conflict(answers.numbers) and _repeats_outcomes(decided_blobs, tasks):
            conflicts = conflicts_of(rows.sources, catalog, buckets, by_bucket=True).persist()
            kept.append(conflicts)
            with describe_jobs(spark, "deciding rows of several objects"):
                if not conflicts.isEmpty():
                    decided_blobs, answers = _decide_blobs(blobs.unionAll(conflicts), tasks, rules, kept)
        summary = summary_of(sum(unit.rows for unit in answers.numbers), answers.buckets)
        summary = replace(summary, left=rows.left)
        ended = Counter[int]()
        for bucket in answers.buckets:
            ended.update(bucket.ended.counted())
        changes, written = decided_blobs, list[WrittenChanges](answers.buckets)
        if conversion.gathers:
            summary = replace(summary, notes=unknown_transactions(answers.numbers))
            with describe_jobs(spark, "gathering transactions"):
                changes = _gather(spark, conversion, decided_blobs, answers)
                kept.append(changes)
                notes = _notes(changes)
                written = [msgspec.json.decode(note, type=WrittenChanges) for note in notes]
        yield (
            summary,
            DecidedBlobs(
                changes=changes,
                written=tuple(written),
                outcomes=decided_blobs,
                ended=dict(ended),
                size=sum(unit.size for unit in answers.numbers),
            ),
        )


def _decide_blobs(
    blobs: DataFrame, tasks: int, rules: BucketRules, kept: list[DataFrame]
) -> tuple[DataFrame, DecidedRows]:
    """Decide the blobs of all buckets and keep the result: it is read several times."""
    decided = by_task(blobs, tasks).mapInArrow(name_function(decide_buckets, rules), SCHEMA).persist()
    kept.append(decided)
    return decided, together(_notes(decided))


def _repeats_outcomes(decided_blobs: DataFrame, tasks: int) -> bool:
    """Return True if a record_id has several outcomes."""
    outcomes = by_task(decided_blobs.where(f"kind = {ENDED}"), tasks)
    return outcomes.mapInArrow(name_function(find_repeated), ANSWERS).count() > 0


def _gather(
    spark: SparkSession,
    conversion: Conversion,
    decided_blobs: DataFrame,
    answers: DecidedRows,
) -> DataFrame:
    """Bring changes to the ranges in which their transactions end, and keep the result."""
    boundaries = answers.boundaries
    tasks = task_count(transaction_labels(boundaries), spark.sparkContext.defaultParallelism)
    blobs = by_task(decided_blobs.where(f"kind IN ({CHANGES}, {ENDS})"), tasks)
    return blobs.mapInArrow(name_function(gather_changes, conversion, boundaries), SCHEMA).persist()


def _notes(blobs: DataFrame) -> list[bytes]:
    return [bytes(row.content) for row in blobs.where(f"kind = {NOTES}").collect()]


def _write(
    conversion: Conversion,
    summary: Summary,
    blobs: DecidedBlobs,
    target: HadoopFolder,
    marking: Marking | None,
) -> Summary:
    """Write all output, then commit it; `_SUCCESS` comes last."""
    moves = store_parts(conversion, blobs, target)
    folders = {name.split("/")[0] for _, name in moves if "/" in name}
    last = last_number(conversion.after, summary.changes, blobs.written)
    summary = replace(summary, parts=part_count(moves), change_seq=last)
    moves += store_outcomes(blobs, target)
    if marking is not None:
        marking.plan()
    # Files at addresses have no sizes and times here by which an input would be known again.
    identity = identity_of(conversion) if isinstance(conversion.input, LogInput) else ""
    note = note_beside(conversion, identity, marking)
    target.commit(moves, replace(summary, folders=tuple(sorted(folders))), note, identity)
    return summary
