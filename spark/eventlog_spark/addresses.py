"""Conversions from and to any file system that Hadoop knows: Spark reads, the step decides, Spark's
writers write.

    events      Parquet by Spark, lines and CSV by our own readers, whole files
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
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import reduce
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.collecting import WrittenChanges, transaction_labels
from eventlog.convert.commit import WORK, Summary
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.convert.identity import identity_of, order_of
from eventlog.convert.inputs import Unit, kind_of_file, places_of
from eventlog.convert.lines import no_header
from eventlog.convert.marks import Marking, fetch_outcomes, sealing
from eventlog.convert.pipeline import summary_of
from eventlog.convert.plan import ROW_BYTES
from eventlog.convert.reading import read
from eventlog.convert.rows import ROWS as EVENTS
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
from eventlog.convert.transactions import refuse_left_rows, refuse_unknown_transactions, unknown_transactions
from eventlog.convert.writing import last_number
from eventlog.core.errors import DataError, UsageError
from eventlog.core.schema import Catalog
from eventlog.xds.write import XdsFormat
from eventlog_spark.cluster import Cluster, configured, session
from eventlog_spark.cutting import Cut, cut, task_count
from eventlog_spark.deciding import (
    CHANGES,
    ENDS,
    BucketRules,
    Name,
    decide_buckets,
    gather_changes,
    local_folder,
    together,
)
from eventlog_spark.exchange import NOTES, SCHEMA, WholeLog, rows_of
from eventlog_spark.faults import arriving, travelling
from eventlog_spark.frames import blobs_of, by_task, conflicts_of, events
from eventlog_spark.hadoop import HadoopFolder, as_named, footers
from eventlog_spark.options import NumberRange
from eventlog_spark.progress import describe_jobs
from eventlog_spark.readback import names_of_tables, tables_of
from eventlog_spark.storing import DecidedBlobs, part_count, store_outcomes, store_parts
from eventlog_spark.types import ddl, name_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMES: Final = "spark.sql.parquet.outputTimestampType"
"""How Spark writes times to Parquet: in a form that says no zone, unless it is told otherwise."""

LARGEST_BYTES: Final = 2**31 - 1
"""What a column of Spark's holds."""


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
                rows = _rows(spark, conversion, places, target, taken)
                with (
                    _decide(spark, conversion, places, rows) as (summary, blobs),
                    describe_jobs(spark, "writing"),
                ):
                    return _write(conversion, summary, blobs, target, marking)
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


class InputRows(Struct, frozen=True, kw_only=True):
    """The rows that are converted, about how many there are, and how many are left in a log, by the
    reason.
    """

    frame: DataFrame
    cut: Cut
    left: dict[str, int] = {}


def _rows(
    spark: SparkSession,
    conversion: Conversion,
    places: Addresses,
    target: HadoopFolder,
    taken: ConvertedRows | None,
) -> InputRows:
    if isinstance(conversion.input, FilesInput):
        return _events(spark, places.inputs, conversion.input)
    with describe_jobs(spark, "reading"):
        return store_rows(spark, conversion, target, taken)


def store_rows(
    spark: SparkSession, conversion: Conversion, target: HadoopFolder, taken: ConvertedRows | None
) -> InputRows:
    """Store the rows of a log beside the output until it is complete.

    A repeated task then finds the same rows, even if the log has changed.
    """
    address = target.subfolder(f"{WORK}/rows")
    # Without the tables of a snapshot, which are read where they lie.
    with cut(replace(conversion, read_back=None), taken) as log_cut:
        refuse_left_rows(conversion, log_cut.taken)
        count = len(log_cut.pieces)
        pieces = spark.range(0, count, 1, max(1, count))
        read_pieces = name_function(_read_pieces, conversion, log_cut.pieces, log_cut.taken)
        pieces.mapInArrow(read_pieces, ddl(EVENTS)).write.parquet(address)
    # With its schema given: of a log without rows there is no file that has it.
    frame = spark.read.schema(ddl(EVENTS)).parquet(as_named(address))
    size = sum(HadoopFolder(spark, address).files().values())
    return InputRows(frame=frame, cut=Cut(pieces=(), rows=log_cut.rows, size=size), left=dict(log_cut.taken.left))


def _read_pieces(
    conversion: Conversion,
    pieces: Sequence[NumberRange | WholeLog],
    taken: ConvertedRows,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    with travelling():
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            yield from map(taken.keep, rows_of(conversion, pieces[number]))


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


def _events(
    spark: SparkSession,
    places: tuple[str, ...],
    source: FilesInput,
) -> InputRows:
    """Read all files of log rows at these places as one frame; estimate the number of rows."""
    sizes: dict[str, int] = {}
    for path in places:
        sizes.update(HadoopFolder(spark, path).files())
    parquet, lines = [], []
    for file in sorted(sizes):
        kind = kind_of_file(Path(PurePosixPath(file).name))
        if kind == "parquet":
            parquet.append(file)
        elif kind is not None:
            lines.append(file)
    if not parquet and not lines:
        raise UsageError(
            f"There is no .parquet, .jsonl or .csv file at {', '.join(places)}.",
            hint="Name one, or a folder that has some.",
        )
    frames, rows = [], 0
    alike: dict[str, list[str]] = {}
    for footer in footers(spark, parquet):
        places_of(footer.names, footer.file)
        alike.setdefault(footer.schema, []).append(footer.file)
        rows += footer.rows
    # Files that Spark reads as one frame have the columns of any of them; the others' would be
    # NULL, or an error of its own.
    for files in alike.values():
        frame = spark.read.parquet(*map(as_named, files))
        frames.append(events(frame, clock=source.clock))
    if lines:
        for file in lines:
            # A task reads the file as a whole; Spark passes over one that is empty.
            if sizes[file] > LARGEST_BYTES:
                message = f"{file} has {sizes[file]:,} bytes; Spark reads such files up to 2 GB."
                raise DataError(message, hint="Cut it into several, or write it as Parquet.")
            # A CSV file must have its header.
            if sizes[file] == 0 and kind_of_file(Path(PurePosixPath(file).name)) == "csv":
                raise no_header(file)
        whole = spark.read.format("binaryFile").load([as_named(file) for file in lines])
        read_lines = name_function(_lines, source.clock, source.line_limit)
        frames.append(whole.select("path", "content").mapInArrow(read_lines, ddl(EVENTS)))
        rows += sum(sizes[file] for file in lines) // ROW_BYTES
    all_rows = reduce(lambda frame, other: frame.unionByName(other), frames)
    if source.statuses:
        all_rows = all_rows.where(all_rows["status"].isin(list(source.statuses)))
    size = sum(sizes[file] for file in (*parquet, *lines))
    return InputRows(frame=all_rows, cut=Cut(pieces=(), rows=rows, size=size))


def _lines(clock: str, line_limit: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read whole files of lines with the local engine's readers; errors name the address."""
    with travelling(), local_folder() as folder:
        for batch in batches:
            for address, content in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                name = PurePosixPath(address).name
                file = folder / name
                file.write_bytes(content.as_py())
                kind, packed = kind_of_file(file) or "", name.endswith(".gz")
                unit = Unit(path=str(file), kind=kind, packed=packed, line_limit=line_limit)
                if not packed:
                    unit = replace(unit, end=file.stat().st_size)
                # Who reads the message knows the file by its address.
                try:
                    yield from read(unit, clock=clock)
                except DataError as error:
                    message = error.message.replace(str(file), address)
                    raise DataError(message, hint=error.hint) from error
                file.unlink()


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
    blobs = blobs_of(rows.frame, catalog, buckets, tables, tasks=tasks)
    with describe_jobs(spark, "deciding"):
        decided_blobs, answers = _decide_blobs(blobs, tasks, rules)
    kept = [decided_blobs]
    try:
        if may_conflict(answers.numbers):
            conflicts = conflicts_of(rows.frame, catalog, buckets, by_bucket=True).persist()
            kept.append(conflicts)
            with describe_jobs(spark, "deciding rows of several objects"):
                if not conflicts.isEmpty():
                    decided_blobs, answers = _decide_blobs(blobs.unionAll(conflicts), tasks, rules)
                    kept.append(decided_blobs)
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
    finally:
        for frame in kept:
            frame.unpersist()


def _decide_blobs(
    blobs: DataFrame,
    tasks: int,
    rules: BucketRules,
) -> tuple[DataFrame, DecidedRows]:
    """Decide the blobs of all buckets and keep the result: it is read several times."""
    kept = by_task(blobs, tasks).mapInArrow(name_function(decide_buckets, rules), SCHEMA).persist()
    return kept, together(_notes(kept))


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
    note = order_of(conversion) if marking is None else marking.note
    # Files at addresses have no sizes and times here by which an input would be known again.
    identity = ""
    if isinstance(conversion.input, LogInput):
        identity = identity_of(conversion)
    target.commit(moves, replace(summary, folders=tuple(sorted(folders))), note, identity)
    return summary
