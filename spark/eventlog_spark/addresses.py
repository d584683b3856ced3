"""Conversions from and to any file system that Hadoop knows: Spark reads, the step decides, Spark's writers write.

    events      Parquet by Spark, lines and CSV by our own readers, whole files
    decided     blobs to buckets, buckets through the step, as everywhere (`exchange`, `deciding`); kept as blobs by ranges
    parts       tasks write parts as the local engine does, and give their bytes to Spark's writers (`parting`)
    committed   files renamed to the names of the contract, `_SUCCESS` last (`hadoop`)

No node needs a folder that others see. Where all nodes mount one, ranges and parts are files there (`convert`), of every kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.commit import OUTCOMES_FILE, WORK, Summary
from eventlog.convert.inputs import Unit, kind_of_file, places_of
from eventlog.convert.lines import no_header
from eventlog.convert.pipeline import DecidedRows, summary_of
from eventlog.convert.plan import ROW_BYTES
from eventlog.convert.reading import read
from eventlog.convert.rows import OUTCOMES
from eventlog.convert.rows import ROWS as EVENTS
from eventlog.convert.settings import Conversion, FilesInput, MessageFiles, SnapshotRows, TableFiles
from eventlog.convert.tasks import may_conflict
from eventlog.convert.writing import PartTasks, Write, last_number
from eventlog.core.errors import DataError, UsageError
from eventlog.core.schema import Catalog
from eventlog.xds.write import XdsFormat
from eventlog_spark.cluster import Cluster, configured, session
from eventlog_spark.cutting import Cut, task_count
from eventlog_spark.deciding import CHANGES, ENDED, BucketRules, Name, decided, local_folder, together
from eventlog_spark.exchange import NOTES, SCHEMA
from eventlog_spark.faults import arriving, travelling
from eventlog_spark.frames import blobs_of, by_task, conflicts_of, events
from eventlog_spark.hadoop import HadoopFolder, as_named, footers
from eventlog_spark.parting import FILES, outcomes_in_order, parted, rows_of_blobs
from eventlog_spark.progress import described
from eventlog_spark.readback import names_of_tables, tables_of
from eventlog_spark.types import ddl, named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMES: Final = "spark.sql.parquet.outputTimestampType"
"""How Spark writes times to Parquet: in a form that says no zone, unless it is told otherwise."""

LARGEST_BYTES: Final = 2**31 - 1
"""What a column of Spark's holds."""


class Addresses(Struct, frozen=True, kw_only=True):
    """Where a conversion reads and writes. Without a `snapshot` the conversion says what answers read-backs."""

    destination: str
    inputs: tuple[str, ...] = ()
    snapshot: str | None = None


def convert_at(conversion: Conversion, places: Addresses, *, cluster: Cluster | None = None) -> Summary:
    """Converts from and to addresses."""
    _refuse(conversion)
    started = session(cluster or Cluster(), hiding=conversion.hides)
    with started as spark, arriving(), configured(spark, TIMES, "TIMESTAMP_MICROS"):
        target = HadoopFolder(spark, places.destination)
        target.begin(overwrite=conversion.overwrite)
        try:
            with _decided(spark, conversion, places) as found, described(spark, "writing"):
                return _written(conversion, found, target)
        except BaseException:
            with suppress(Exception):  # what was wrong first is told; the next run removes the rest
                target.discard()
            raise


def _refuse(conversion: Conversion) -> None:
    """What needs a folder."""
    form, hint = conversion.format, "Write into a folder that all nodes mount."
    if conversion.gathers:
        raise UsageError(
            "Whole transactions cannot be combined with an address.", hint=f"{hint} Or use --transactions mixed."
        )
    if not isinstance(conversion.input, FilesInput):
        raise UsageError("An address needs rows in files.", hint=hint)
    if not isinstance(form, XdsFormat | TableFiles | MessageFiles):
        raise UsageError("A conversion that sends has no address for its output.", hint=hint)
    if isinstance(form, TableFiles) and (form.files.format != "parquet" or form.settings.partition_every):
        raise UsageError("Change tables at an address are Parquet files without partitions.", hint=hint)
    if isinstance(form, MessageFiles) and form.settings.encoding != "json":
        raise UsageError("Messages at an address are JSON lines.", hint=hint)


def _events(spark: SparkSession, places: tuple[str, ...], source: FilesInput) -> tuple[DataFrame, Cut]:
    """The rows of all files of log rows at these places, and about how many there are."""
    files = {file: size for place in places for file, size in HadoopFolder(spark, place).files().items()}
    kinds = {file: kind for file in sorted(files) if (kind := kind_of_file(Path(PurePosixPath(file).name)))}
    if not kinds:
        raise UsageError(
            f"There is no .parquet, .jsonl or .csv file at {', '.join(places)}.",
            hint="Name one, or a folder that has some.",
        )
    lines = [file for file, kind in kinds.items() if kind != "parquet"]
    frames, rows = [], 0
    alike: dict[str, list[str]] = {}
    for footer in footers(spark, [file for file, kind in kinds.items() if kind == "parquet"]):
        places_of(footer.names, footer.file)
        alike.setdefault(footer.schema, []).append(footer.file)
        rows += footer.rows
    # Files that Spark reads as one frame have the columns of any of them; the others' would be NULL, or an error of its own.
    frames += [events(spark.read.parquet(*map(as_named, some)), clock=source.clock) for some in alike.values()]
    if lines:
        for file in lines:
            _refuse_length(file, files[file])
        whole = spark.read.format("binaryFile").load([as_named(file) for file in lines])
        frames.append(whole.select("path", "content").mapInArrow(named(_lines, source.clock), ddl(EVENTS)))
        rows += sum(files[file] for file in lines) // ROW_BYTES
    found = reduce(lambda one, other: one.unionByName(other), frames)
    found = found.where(found["status"].isin(list(source.statuses))) if source.statuses else found
    return found, Cut(pieces=(), rows=rows, size=sum(files[file] for file in kinds))


def _refuse_length(file: str, length: int) -> None:
    """A task reads the file as a whole; Spark passes over one that is empty, and a CSV file must have its header."""
    if length > LARGEST_BYTES:
        hint = "Cut it into several, or write it as Parquet."
        raise DataError(f"{file} has {length:,} bytes; Spark reads such files up to 2 GB.", hint=hint)
    if length == 0 and kind_of_file(Path(PurePosixPath(file).name)) == "csv":
        raise no_header(file)


def _lines(clock: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of whole files of lines, by the local engine's readers."""
    with travelling(), local_folder() as folder:
        for batch in batches:
            for place, content in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                name = PurePosixPath(place).name
                file = folder / name
                file.write_bytes(content.as_py())
                unit = Unit(path=str(file), kind=kind_of_file(file) or "", packed=name.endswith(".gz"))
                try:
                    yield from read(replace(unit, end=None if unit.packed else file.stat().st_size), clock=clock)
                except DataError as error:
                    raise DataError(error.message.replace(str(file), place), hint=error.hint) from error
                file.unlink()


def _snapshot(spark: SparkSession, place: str, catalog: Catalog) -> dict[Name, DataFrame]:
    """The Parquet files of tables in a folder, a file or a folder each."""
    folder, known = HadoopFolder(spark, place), names_of_tables(catalog)
    stems = {name: name.removesuffix(".parquet") for name in folder.names()}
    found = {stem: name for name, stem in stems.items() if catalog.fold(stem) in known}
    if not found:
        hint = "They are called like usr.parquet."
        raise UsageError(f"{place} has no Parquet file of a table of the schema.", hint=hint)
    frames = {stem: spark.read.parquet(as_named(folder.subfolder(name))) for stem, name in found.items()}
    return tables_of(frames, catalog)


class DecidedBlobs(Struct, frozen=True, kw_only=True):
    """What the step made of everything: blobs with changes and outcomes by ranges of positions, and what buckets told."""

    blobs: Any
    told: DecidedRows


@contextmanager
def _decided(spark: SparkSession, conversion: Conversion, places: Addresses) -> Iterator[DecidedBlobs]:
    """Decides everything; once more where record_ids may stand at several objects, and do."""
    source, catalog = conversion.input, conversion.catalog
    assert isinstance(source, FilesInput)
    found, cut = _events(spark, places.inputs, source)
    tables = {} if places.snapshot is None or catalog is None else _snapshot(spark, places.snapshot, catalog)
    if tables:
        conversion = replace(conversion, read_back=SnapshotRows(folder=Path()))
    buckets = cut.buckets
    tasks = task_count(buckets, spark.sparkContext.defaultParallelism)
    rules = BucketRules(conversion=conversion, tables=tuple(tables))
    blobs = blobs_of(found, catalog, buckets, tables, told=tasks)
    with described(spark, "deciding"):
        made = decided_blobs(blobs, tasks, rules)
    kept = [made.blobs]
    try:
        if may_conflict(made.told.numbers):
            conflicts = conflicts_of(found, catalog, buckets, by_bucket=True).persist()
            kept.append(conflicts)
            with described(spark, "deciding rows of several objects"):
                if not conflicts.isEmpty():
                    made = decided_blobs(blobs.unionAll(conflicts), tasks, rules)
                    kept.append(made.blobs)
        yield made
    finally:
        for frame in kept:
            frame.unpersist()


def decided_blobs(blobs: DataFrame, tasks: int, rules: BucketRules) -> DecidedBlobs:
    """Has the blobs of all buckets decided; what comes of it is kept, for changes, outcomes and answers are asked of it."""
    kept = by_task(blobs, tasks).mapInArrow(named(decided, rules), SCHEMA).persist()
    answers = kept.where(f"kind = {NOTES}").collect()
    return DecidedBlobs(blobs=kept, told=together(row.content for row in answers))


def _written(conversion: Conversion, found: DecidedBlobs, target: HadoopFolder) -> Summary:
    """Writes everything and lets it appear."""
    buckets = tuple(found.told.buckets)
    tasks = PartTasks(conversion=conversion, changes=buckets, tables=None, folder="", staged="")
    summary = summary_of(sum(one.rows for one in found.told.numbers), buckets)
    moves = list(_stored(conversion, tasks, found.blobs, target)) if summary.changes else []
    ended = found.blobs.where(f"kind = {ENDED}").repartition(1).mapInArrow(outcomes_in_order, ddl(OUTCOMES))
    unique = ended.write.option("parquet.enable.dictionary#position", "false")  # positions never repeat
    unique.option("compression", "zstd").parquet(target.subfolder(f"{WORK}/outcomes"))
    moves += [(path, OUTCOMES_FILE) for path in target.parts("outcomes").values()]
    folders = {name.split("/")[0] for _, name in moves if "/" in name}
    last = last_number(conversion.after, summary.changes, buckets)
    summary = replace(summary, parts=-(-summary.changes // conversion.part_events), change_seq=last)
    target.commit(moves, replace(summary, folders=tuple(sorted(folders))))
    return summary


def _stored(
    conversion: Conversion, tasks: PartTasks, blobs: DataFrame, target: HadoopFolder
) -> Iterator[tuple[str, str]]:
    """Has Spark write the files of all parts; where each lies, and what it is to be called."""
    if not isinstance(conversion.format, TableFiles):
        files = _parted(tasks, list(tasks.each()), blobs)
        place = target.subfolder(f"{WORK}/text")
        text = files.selectExpr("path", "chunk", "text AS value").sortWithinPartitions("path", "chunk")
        text.drop("chunk").write.option("maxRecordsPerFile", 0).partitionBy("path").text(place)  # one file each
        yield from target.files_by("path", place)
        return
    files = _parted(tasks, list(tasks.each(at_once=1)), blobs).persist()
    try:
        yield from _stored_tables(files, target)
    finally:
        files.unpersist()


def _stored_tables(files: DataFrame, target: HadoopFolder) -> Iterator[tuple[str, str]]:
    """The same of tables, each with columns of its own, of which a task has one file."""
    told = [tuple(row) for row in files.select("folder", "layout", "part", "path").distinct().collect()]
    if len({(folder, part) for folder, _, part, _ in told}) < len(told):
        raise UsageError(
            "A step with do = 'route' cannot be combined with change tables at an address; `--out` needs a folder for that.",
            hint="Write into a folder that all nodes mount.",
        )
    for number, (folder, layout) in enumerate(sorted({(folder, layout) for folder, layout, *_ in told})):
        columns = pa.ipc.read_schema(pa.py_buffer(layout))
        name = f"table-{number}"
        here = files.where(files["folder"] == folder).select("content")
        here.mapInArrow(rows_of_blobs, ddl(columns)).write.parquet(target.subfolder(f"{WORK}/{name}"))
        found = target.parts(name)
        yield from [(found[part], path) for place, _, part, path in told if place == folder]


def _parted(tasks: PartTasks, several: list[Write], blobs: DataFrame) -> DataFrame:
    """The files of all parts in pieces (FILES), those of each task by one of Spark's."""
    counted = tasks.counted()
    wanted: list[list[int]] = [[] for _ in range(1 + max(counted))]
    for number, task in enumerate(several):
        for label in range(task.range, task.until + 1):
            wanted[label].append(number)
    asking = f"explode(from_json('{msgspec.json.encode(wanted).decode()}', 'array<array<int>>')[bucket])"
    meant = blobs.where(f"kind = {CHANGES}").selectExpr(f"{asking} AS task", "bucket AS label", "content")
    write = named(parted, [replace(task, rendered=()) for task in several])
    return meant.repartitionById(len(several), "task").mapInArrow(write, ddl(FILES))
