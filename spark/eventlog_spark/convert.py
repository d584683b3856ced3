"""Bulk conversion on Spark: the local engine's steps, one shuffle between them, and equal bytes in the end.

    scattering   pieces of the input to blobs of rows, each for the bucket of its objects        mapInArrow
    the shuffle  every bucket's blobs to one task                                                repartitionById
    deciding     whole objects through the rules and the writer, into files by ranges            mapInArrow
    writing      ranges to parts and outcomes                                                    mapInArrow

Law: only counts and names of files come to the driver, never rows. Where ranges begin is known before anything runs,
because Spark's own range partitioning would run the conversion twice to find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.commit import Destination, Summary
from eventlog.convert.conflicts import may_conflict
from eventlog.convert.lanes import LanePlan
from eventlog.convert.local import ConversionWatch, Unwatched
from eventlog.convert.parttasks import PartTasks
from eventlog.convert.scatter import Scattered
from eventlog.convert.sending import SENDING, is_sending, reach, refuse_other
from eventlog.convert.settings import Conversion, FilesInput, SentMessages, SentTables, SnapshotRows, StreamInput
from eventlog.convert.sheaf import Sheaf
from eventlog.convert.stages import DecidedBucket, Write, WriteOutcomes
from eventlog.convert.streams import StreamResult, pieces_of
from eventlog.convert.summaries import (
    stream_summary,
    summary_of,
    tables_of,
    until_damage,
    with_refused,
)
from eventlog.convert.unmarked import order_of
from eventlog.core.errors import UsageError
from eventlog.core.schema import Table
from eventlog_spark.blobs import SCHEMA
from eventlog_spark.cutting import Cut, RowSpan, boundaries, cut
from eventlog_spark.deciding import (
    ANSWERS,
    BucketResult,
    BucketRules,
    Compare,
    compared,
    decided,
    produced,
    read_pieces,
)
from eventlog_spark.faults import arriving
from eventlog_spark.progress import watched
from eventlog_spark.sampling import sampled
from eventlog_spark.scattering import Noted, Scattering, scattered
from eventlog_spark.sending import Sending, Step, order_name
from eventlog_spark.session import Cluster, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_TASKS: Final = 10_000
EMPTY: Final[Mapping[int, str]] = {}


def convert(conversion: Conversion, *, cluster: Cluster | None = None, watch: ConversionWatch | None = None) -> Summary:
    """Converts on Spark. The destination must be a folder that the driver and all executors see under one name."""
    conversion = _absolute(conversion)
    if isinstance(conversion.format, SentTables):
        raise UsageError("Spark sends nothing to a database.", hint="Say --engine local.")
    destination, order = Destination(conversion.destination), order_name(conversion)
    if not conversion.overwrite:
        refuse_other(order, destination.work)
    resumed = (destination.work / order / SENDING).exists()
    if not resumed:
        reach(conversion.format)
    with destination.occupied(overwrite=conversion.overwrite, resume=resumed):
        try:
            with _cut(conversion, resumed=resumed) as found, session(cluster or Cluster()) as spark:
                folders = Folders(work=str(destination.begun(order)), staged=str(destination.staged))
                run = Run(conversion, folders, spark, found, watch or Unwatched())
                summary = run.resumed() if resumed else run.converted()
        except BaseException:
            if not is_sending(destination.work):  # nothing of it can be gone on with
                destination.discard()
            raise
        destination.commit(summary, order_of(conversion))
    return summary


class Folders(Struct, frozen=True, kw_only=True):
    """Where steps leave what the next ones need, and where the output is made."""

    work: str
    staged: str


class Run:
    """One conversion on its way through the steps."""

    def __init__(
        self, conversion: Conversion, folders: Folders, spark: SparkSession, found: Cut, watch: ConversionWatch
    ) -> None:
        self._conversion = conversion
        self._staged = folders.staged
        self._folder = folders.work
        self._spark = spark
        self._cut = found
        self._watch = watch

    def converted(self) -> Summary:
        """Goes through all steps; the summary counts what they did."""
        return self._streamed() if isinstance(self._conversion.input, StreamInput) else self._decided_rows()

    def resumed(self) -> Summary:
        """Sends what is not sent yet."""
        return self._sent(self._sending().taken_up())

    def _decided_rows(self) -> Summary:
        """Brings rows together by their objects, and decides those."""
        spans = [*self._cut.spans, *self._sampled()]
        places = boundaries(spans)
        answers = self._decided(places, ())
        noted = [one for answer in answers for one in answer.noted]
        if _may_conflict(noted):
            contested = self._contested(answers, places)
            if contested:
                answers = self._decided(places, contested)
        rows = sum(one.rows for one in noted)
        buckets = [answer.decided for answer in answers]
        return self._written(summary_of(rows, buckets), buckets)

    def _streamed(self) -> Summary:
        """Reads the pieces of a captured stream side by side, and writes what they hold in their order."""
        tasks = pieces_of(self._conversion, self._folder)
        answers = self._collected("reading", len(tasks), partial(read_pieces, tasks))
        pieces = until_damage([msgspec.json.decode(answer, type=StreamResult) for answer in answers])
        return self._written(stream_summary(pieces), pieces, tables_of(pieces))

    def _sampled(self) -> list[RowSpan]:
        """Where record_ids lie in the pieces that do not say so."""
        found = self._cut.unknown
        answers = self._collected("looking", len(found), partial(sampled, self._conversion, found))
        return [span for answer in answers for span in msgspec.json.decode(answer, type=list[RowSpan])]

    def _decided(self, places: tuple[int, ...], conflicts: tuple[int, ...]) -> list[BucketResult]:
        """Scatters, shuffles and decides, in one job of Spark's."""
        work = Scattering(
            conversion=self._conversion, pieces=self._cut.pieces, buckets=self._cut.buckets, held=self._cut.held
        )
        deciding = BucketRules(
            conversion=self._conversion,
            tables=work.tables,
            boundaries=places,
            conflicts=conflicts,
            folder=self._folder,
        )
        blobs = self._numbered(len(work.pieces)).mapInArrow(partial(scattered, work), SCHEMA)
        whole = blobs.repartitionById(work.buckets, "bucket")
        answers = whole.mapInArrow(partial(decided, deciding), ANSWERS)
        with watched(self._spark, self._watch, "deciding", self._cut.rows), arriving():
            return [msgspec.json.decode(row.content, type=BucketResult) for row in answers.collect()]

    def _contested(self, answers: Sequence[BucketResult], places: tuple[int, ...]) -> tuple[int, ...]:
        """The record_ids that have several outcomes: those of several objects, and of one that contradicts itself."""
        ended = tuple(answer.decided.ended for answer in answers)
        tasks = [Compare(name=f"compare-{label}", ended=ended, label=label) for label in range(len(places) + 1)]
        found = self._collected("comparing numbers", len(tasks), partial(compared, tasks))
        return tuple(number for answer in found for number in msgspec.json.decode(answer, type=list[int]))

    def _written(
        self, summary: Summary, buckets: Sequence[DecidedBucket], tables: dict[int, Table] | None = None
    ) -> Summary:
        """Writes everything, or sends it; the summary knows then how many parts there are, or documents."""
        tasks = PartTasks(
            conversion=self._conversion,
            decided=tuple(buckets),
            tables=tables,
            folder=self._folder,
            staged=self._staged,
        )
        parts = list(tasks.each())
        if isinstance(self._conversion.format, SentMessages):
            return self._sent(self._sending().planned(summary, buckets, parts, tables))
        return replace(summary, parts=self._produced(tuple(one.ended for one in buckets), parts))

    def _sending(self) -> Sending:
        return Sending(self._conversion, Path(self._folder), self._collected)

    def _sent(self, plan: LanePlan) -> Summary:
        """Sends all changes, and writes what became of the events."""
        sent = self._sending().sent(plan)
        self._produced(plan.ended, [], sent.refused)
        return with_refused(replace(plan.summary, parts=sent.documents), len(sent.refused))

    def _produced(self, ended: tuple[Sheaf, ...], parts: Sequence[Write], refused: Mapping[int, str] = EMPTY) -> int:
        """Writes parts, and outcomes; says how many parts."""
        outcomes = WriteOutcomes(
            name="outcomes",
            ended=ended,
            folder=self._folder,
            staged=self._staged,
            streamed=isinstance(self._conversion.input, StreamInput),
            refused=dict(refused),
        )
        tasks: list[Write | WriteOutcomes] = [outcomes, *parts]
        found = self._collected("writing", len(tasks), partial(produced, tasks))
        counts = [msgspec.json.decode(answer, type=int) for answer in found]
        return sum(counts) - sum(sum(sheaf.rows) for sheaf in ended)

    def _collected(self, stage: str, count: int, step: Step, rows: int | None = None) -> list[bytes]:
        """What the tasks of a step answer, a few bytes each."""
        if not count:
            return []
        with watched(self._spark, self._watch, stage, rows), arriving():
            return [bytes(row.content) for row in self._numbered(count).mapInArrow(step, ANSWERS).collect()]

    def _numbered(self, count: int) -> Any:
        """The numbers of so many tasks, one in each partition."""
        return self._spark.range(0, count, 1, min(count, MOST_TASKS) or 1)


@contextmanager
def _cut(conversion: Conversion, *, resumed: bool) -> Iterator[Cut]:
    """The cut of the input; nothing is read any more where everything was decided before."""
    if resumed:
        yield Cut(pieces=(), rows=0)
        return
    with cut(conversion) as found:
        yield found


def _absolute(conversion: Conversion) -> Conversion:
    """Executors work in folders of their own, where relative names mean something else."""
    source = conversion.input
    if isinstance(source, FilesInput):
        source = FilesInput(
            places=tuple(str(Path(place).absolute()) for place in source.places), statuses=source.statuses
        )
    back = conversion.read_back
    if isinstance(back, SnapshotRows):
        back = SnapshotRows(folder=back.folder.absolute())
    return replace(conversion, input=source, destination=conversion.destination.absolute(), read_back=back)


def _may_conflict(noted: Sequence[Noted]) -> bool:
    nothing = Sheaf(path="", labels=(), rows=())
    return may_conflict(
        [
            Scattered(sheaf=nothing, rows=one.rows, ascending=one.ascending, lowest=one.lowest, highest=one.highest)
            for one in noted
        ]
    )
