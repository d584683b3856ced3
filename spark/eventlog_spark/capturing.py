"""Captured streams as DataFrames: a capture of GBase's or LINTER's is read in order by one task,
captures side by side.

    files      of any file system, in chunks, each capture's to one task in their order
               (binaryFile, repartitionById, sort)
    results    changes and outcomes as `eventlog convert` makes them of the stream (mapInArrow)

Images are whole and come in the order of their commits, so there is nothing to bring together and
nothing to decide afterwards: changes go to `documents`, `change_tables` and `messages` as those of
`decide` do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.forms import Rendering, TableNumbers
from eventlog.convert.rows import object_text
from eventlog.convert.settings import ChangeRows, Conversion, StreamInput
from eventlog.convert.step import CHANGE, OUTCOME, RESULT, fill_columns
from eventlog.convert.streams import PieceReading, ReadPiece
from eventlog.convert.to_changes import CHANGES, ChangeForm, cells_of
from eventlog.core.errors import DataError, UsageError
from eventlog.core.model import Change, Reason
from eventlog.core.plural import count_words
from eventlog.core.rules.meaning import STATUS
from eventlog.core.schema import Catalog, Table
from eventlog.policies.steps import Steps
from eventlog.sources.gbase.files import refuse_dirty
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.linter.settings import LinterSettings
from eventlog_spark.deciding import local_folder
from eventlog_spark.faults import arriving, travelling
from eventlog_spark.types import ddl, name_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHUNK_BYTES: Final = 1 << 20
"""How much of a file goes to its task in one row."""

NOTE: Final = "note"
TABLE: Final = "table"
RESULTS: Final = pa.schema(
    [*RESULT, *list(CHANGES)[1:], ("capture", pa.string()), ("source_position", pa.string())],
)
OUTCOMES: Final = ("capture", "position", "source_position", "status", "reason", "note")


class Captures(Struct, frozen=True, kw_only=True):
    """What captures say."""

    results: DataFrame

    @property
    def changes(self) -> DataFrame:
        """Return one row a change, as `Decisions.changes` has them, with its `capture`; `captured`
        holds its transaction.
        """
        return self.results.where(f"kind = '{CHANGE}'").select("op", *CHANGES.names, "capture")

    @property
    def outcomes(self) -> DataFrame:
        """Return one row an image.

        A capture's early end, or records left out of it, give one more row, without `position`.
        """
        return self.results.where(f"kind = '{OUTCOME}'").select(*OUTCOMES)

    @property
    def damage(self) -> DataFrame:
        """Return `capture` and `note` of missing parts; no rows if captures are whole."""
        return self.outcomes.where("position IS NULL").select("capture", "note")

    @property
    def notes(self) -> DataFrame:
        """Return `capture` and `note` of harmless findings, such as transactions left open."""
        return self.results.where(f"kind = '{NOTE}'").select("capture", "note")

    def catalog(self) -> Catalog:
        """Collect the tables, as last described, behind the policies. Runs a job of Spark's."""
        described = self.results.where(f"kind = '{TABLE}'").select("position", "note")
        with arriving():
            rows = described.orderBy("position").collect()
        tables = [msgspec.json.decode(row["note"], type=Table) for row in rows]
        # Of a table that was described several times the last one stays.
        return Catalog({(table.schema, table.name): table for table in tables}.values())

    def persisted(self) -> Captures:
        """Keep the results, so files are read once for changes, outcomes and all else."""
        return Captures(results=self.results.persist())


def captures(
    spark: SparkSession,
    places: str | Sequence[str],
    settings: GBaseSettings | LinterSettings,
    catalog: Catalog | None = None,
    *,
    policies: Steps = (),
) -> Captures:
    """Read captures; a place is a file, or a folder with a capture's files in order of names.

    `settings` name the kind of capture. LINTER's need a catalog; those of GBase describe their
    tables, with the keys in the settings.
    """
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    capture_paths = (places,) if isinstance(places, str) else tuple(places)
    if not capture_paths:
        raise UsageError("`places` names no capture.", hint="Name files or folders.")
    if isinstance(settings, LinterSettings) and catalog is None:
        message = "LINTER's queue has only numbers of tables."
        raise UsageError(message, hint="Give `captures` a catalog.")
    frames = []
    for number, path in enumerate(capture_paths):
        frames.append(_files(spark, path, settings).withColumn("capture", F.lit(number)))
    # A file goes in chunks: as one value it would be in the memory of Java, of Arrow and of Python.
    last = F.expr(f"greatest(length(content) - 1, 0) DIV {CHUNK_BYTES}").cast("int")
    files = reduce(lambda frame, other: frame.unionAll(other), frames)
    numbered = files.withColumn("chunk", F.explode(F.sequence(F.lit(0), last)))
    content = f"substring(content, chunk * {CHUNK_BYTES} + 1, {CHUNK_BYTES}) AS content"
    chunks = numbered.selectExpr("capture", "path", "chunk", content)
    by_capture = chunks.repartitionById(len(capture_paths), "capture")
    in_order = by_capture.sortWithinPartitions("capture", "path", "chunk")
    order = Conversion(
        input=StreamInput(places=(), settings=settings),
        destination=Path(),
        catalog=catalog,
        format=ChangeRows(),
        steps=policies,
    )
    read = name_function(_read, order, capture_paths)
    return Captures(results=in_order.mapInArrow(read, ddl(RESULTS)))


def _files(spark: SparkSession, path: str, settings: GBaseSettings | LinterSettings) -> DataFrame:
    with arriving():
        files = spark.read.format("binaryFile").load(path).select("path", "content")
        names = files.inputFiles()
    if not names:
        raise DataError(f"There is no file at {path}.", hint="Name one, or a folder that has some.")
    if isinstance(settings, GBaseSettings) and settings.dirty:
        refuse_dirty(map(Path, names))
    return files


def _read(
    order: Conversion,
    places: Sequence[str],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Copy captures to this node's disk, one after the other, and yield their results."""
    with travelling(), local_folder() as folder:
        for number, chunks in groupby(_chunks(batches), key=lambda chunk: chunk[0]):
            files = _copied(folder, chunks)
            yield from _Capture(order, places[number], number, files, folder).results()
            for file in files:
                Path(file).unlink()


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, str, Any]]:
    for batch in batches:
        numbers, paths = batch.column("capture").to_pylist(), batch.column("path").to_pylist()
        # Contents stay Arrow's until each is written: as Python's they would be there twice.
        yield from zip(numbers, paths, batch.column("content"), strict=True)


def _copied(folder: Path, chunks: Iterable[tuple[int, str, Any]]) -> dict[str, str]:
    """Copy the files of a capture to this node, and return each copy's path with the original's."""
    files: dict[str, str] = {}
    for path, contents in groupby(chunks, key=lambda chunk: chunk[1]):
        # Numbered: files of several folders may have one name, and their order must stay.
        file = folder / f"{len(files):06d}-{PurePosixPath(path).name}"
        with file.open("wb") as opened:
            for _, _, content in contents:
                opened.write(content.as_py())
        files[str(file)] = path
    return files


class _CapturedForm(ChangeForm):
    """Changes as rows, with what the step writes beside those of a log."""

    schema = pa.schema([*CHANGES, ("object", pa.string()), ("op", pa.string())])

    def rendering(self, catalog: Catalog | None, numbers: TableNumbers | None = None) -> Rendering:
        def cells(change: Change) -> tuple[object, ...]:
            return *cells_of(change), object_text(change.row), change.op.value

        return Rendering(self.schema, iter, cells)


class _Capture:
    """One capture, as results."""

    def __init__(
        self,
        order: Conversion,
        path: str,
        number: int,
        files: dict[str, str],
        folder: Path,
    ) -> None:
        assert isinstance(order.input, StreamInput)
        source = StreamInput(places=tuple(files), settings=order.input.settings)
        task = ReadPiece(
            name="capture",
            conversion=replace(order, input=source),
            number=number,
            split=None,
            folder=str(folder),
        )
        self._path = path
        self._files = files
        self._reading = PieceReading(task, _CapturedForm())

    def results(self) -> Iterator[pa.RecordBatch]:
        """Yield changes and outcomes as they are read; tables and notes come last."""
        for _, rows, is_outcomes in self._reading.results():
            columns = {name: rows.column(name) for name in rows.schema.names}
            if is_outcomes:
                # A place is one number, by which frames can be put in order; a position is several.
                columns["source_position"], columns["position"] = columns["position"], columns.pop("place")
            yield self._batch(OUTCOME if is_outcomes else CHANGE, columns)
        tables = self._reading.tables
        described = [msgspec.json.encode(table).decode() for table in tables.values()]
        columns = {
            "position": pa.array(tables, pa.int64()),
            "note": pa.array(described, pa.string()),
        }
        yield self._batch(TABLE, columns)
        notes = map(self._with_addresses, self._reading.notes)
        yield self._batch(NOTE, {"note": pa.array(notes, pa.string())})
        missing = self._missing()
        words = {"status": STATUS[Reason.INVALID].value, "reason": Reason.INVALID.value}
        columns = {name: pa.array([word] * len(missing), pa.string()) for name, word in words.items()}
        yield self._batch(OUTCOME, {**columns, "note": pa.array(missing, pa.string())})

    def _missing(self) -> list[str]:
        missing = []
        if self._reading.damage is not None:
            missing.append(f"{self._reading.damage} Everything before it is there.")
        if self._reading.lost:
            records = count_words(self._reading.lost, "record")
            missing.append(f"Left out: {records} that could not be understood.")
        return list(map(self._with_addresses, missing))

    def _with_addresses(self, sentence: str) -> str:
        """Put the given names of files in the place of their copies' names."""
        for file, path in self._files.items():
            sentence = sentence.replace(file, path)
        return sentence

    def _batch(self, kind: str, columns: dict[str, pa.Array]) -> pa.RecordBatch:
        count = len(columns["note"] if "note" in columns else columns["op"])
        known = {
            "kind": pa.repeat(pa.scalar(kind, pa.string()), count),
            "capture": pa.repeat(pa.scalar(self._path, pa.string()), count),
            **columns,
        }
        return fill_columns(RESULTS, count, known)
