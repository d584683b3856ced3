"""Follows a log: Spark hands out its rows batch by batch, and each batch is converted as a folder
of files would be.

    _checkpoint              how far the stream is: Spark's
    _rows/batch-00000007     the rows of the batch in hand: a batch that comes again has the same
    batch-00000007           what `convert` makes of them, with `_SUCCESS`; a batch that has it is
                             not converted again
    _done/batch-00000007     notes the last batch that is done, and the change_seq that the next one
                             goes on from
    _log                     says which log it is: a second one with the checkpoint of the first
                             would lose rows
    _lock                    keeps a second command out of a folder

Law: a batch counts as done only after its `_SUCCESS`, and what comes again meets what is there, or
the note where somebody has taken it away. So each row is converted exactly once, whatever was
killed when, and messages that are sent are those of one conversion that is taken up again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.commit import SUCCESS, Summary
from eventlog.convert.pipeline import ConversionWatch
from eventlog.convert.settings import Conversion, FilesInput, LogInput
from eventlog.core.errors import SinkError, UsageError
from eventlog.daemon.signals import requests_by_signal
from eventlog.durable_files import make_folder
from eventlog.sources.stream.claim import Claim
from eventlog.sql.connect import address_of, read_url
from eventlog_spark.addresses import Addresses, convert_at
from eventlog_spark.cluster import Cluster, session
from eventlog_spark.convert import convert
from eventlog_spark.faults import arriving
from eventlog_spark.hadoop import HadoopFolder, as_named
from eventlog_spark.source import EventLogSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

CHECKPOINT: Final = "_checkpoint"
ROWS: Final = "_rows"
DONE: Final = "_done"
LOG: Final = "_log"
LOCK: Final = "_lock"
BEGUN: Final = frozenset({LOCK, ROWS, LOG, f"_{LOG}"})
"""What a first run may have left that was killed before it had a checkpoint; the last one is a note
on its way.
"""

LOOK_SECONDS: Final = 1
"""How often somebody looks whether the end is asked for."""

SLOW: Final = "failed to connect back"
MOST_TRIES: Final = 10
"""Spark waits ten seconds for a Python that begins, which is short on a busy machine; nothing was
read then.
"""

# Eight digits or more: numbers may outgrow those that are written.
_batch = re.compile(r"batch-\d{8,}").fullmatch

BatchReport = Callable[[str, Summary], None]
"""Called for each batch that is done, with its name and what it amounts to."""


class Following(Struct, frozen=True, kw_only=True):
    """How a log is followed. `address` is the destination where it is no folder; `seconds` pass
    between two looks at the log.
    """

    conversion: Conversion
    address: str | None = None
    seconds: float = 10
    until_empty: bool = False
    batch_rows: int = 200_000

    @property
    def destination(self) -> str:
        """The destination as Spark takes it."""
        return self.address or f"file:{self.conversion.destination.absolute()}"


def follow(
    following: Following,
    report: BatchReport,
    *,
    cluster: Cluster | None = None,
    watch: ConversionWatch | None = None,
) -> None:
    """Converts batch after batch until a signal asks for the end, or nothing is left; the batch in
    hand is finished first.
    """
    source = following.conversion.input
    if not isinstance(source, LogInput):
        raise UsageError("Only the log of a database can be followed.", hint="Name its URL as INPUT.")
    if following.conversion.transactions == "whole":
        message = "A log that is followed is cut into batches, and transactions with it."
        raise UsageError(message, hint="Use --transactions mixed.")
    hiding = following.conversion.hides
    with session(cluster or Cluster(), hiding=hiding) as spark, arriving(), ExitStack() as claimed:
        target = HadoopFolder(spark, following.destination)
        names = target.names()
        if names - BEGUN and CHECKPOINT not in names:
            hint = "Choose another folder, or continue there with --follow."
            raise UsageError(f"{target.address} is not empty.", hint=hint)
        if following.address is None:
            claimed.enter_context(_claimed(following.conversion.destination))
        _refuse_other(target, source)
        batches = _Batches(spark, following, target, report, watch)
        spark.dataSource.register(EventLogSource)
        options = _options(source, following.batch_rows)
        rows = spark.readStream.format("eventlog").options(**options).load()
        writer = rows.writeStream.option("checkpointLocation", target.subfolder(CHECKPOINT))
        writer = writer.foreachBatch(batches.take)
        seconds = 0 if following.until_empty else following.seconds
        writer = writer.trigger(processingTime=f"{seconds} seconds")
        # After PySpark has set its own answer to Ctrl-C.
        with requests_by_signal(batches.stop):
            query = _run(writer, batches, until_empty=following.until_empty)
            # First the batch in hand: a query that is stopped breaks it off.
            batches.end()
            query.stop()
        # The last batch may have failed after the end was asked for.
        if batches.failed is not None:
            raise batches.failed


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Keeps a second command out of the folder, and others than us from rows that Spark writes
    there.
    """
    make_folder(folder / ROWS)
    claim = Claim(folder / LOCK)
    if not claim.take():
        message = f"Another command follows a log into {folder}."
        raise SinkError(message, hint="Wait for it, or choose another folder.")
    try:
        yield
    finally:
        claim.leave()


def _refuse_other(target: HadoopFolder, source: LogInput) -> None:
    """Notes whose log is followed into a folder, and refuses another one: its rows up to the
    other's last number would be passed over.
    """
    here = f"the log {source.log} of {address_of(read_url(source.url))}"
    if LOG not in target.names():
        target.note(LOG, here.encode())
        return
    before = target.read(LOG).decode(errors="replace")
    if before != here:
        raise UsageError(
            f"{target.address} has what was followed of {before}, and this is {here}.",
            hint=f"Choose another folder, or remove {LOG} from this one if the log has only moved.",
        )


def _run(writer: DataStreamWriter, batches: _Batches, *, until_empty: bool) -> StreamingQuery:
    """The stream when the end was asked for, or nothing is left. One whose Python began too slowly
    is begun again.
    """
    from pyspark.errors import PySparkException

    for tried in range(1, MOST_TRIES + 1):
        query = writer.start()
        try:
            _wait(query, batches, until_empty=until_empty)
        except PySparkException as error:
            # Spark has only a text of it.
            if batches.failed is not None:
                raise batches.failed from error
            if batches.stopping.is_set():
                break
            if tried < MOST_TRIES and SLOW in str(error):
                continue
            raise
        break
    return query


def _options(source: LogInput, rows: int) -> dict[str, str]:
    columns = source.columns if isinstance(source.columns, str) else ",".join(source.columns)
    return {
        "url": source.url,
        "log": source.log,
        "columns": columns,
        "clock": source.clock,
        "rows": str(rows),
        "transactions": "true",
    }


def _wait(query: StreamingQuery, batches: _Batches, *, until_empty: bool) -> None:
    """Returns when the end was asked for, or when nothing is left; what ended the query is
    raised.
    """
    emptied = Event()
    if until_empty:
        # In a thread, because it cannot be told to give up when a signal asks for the end.
        Thread(target=_emptied, args=(query, emptied), daemon=True).start()
    while not batches.stopping.is_set() and not emptied.is_set():
        if query.awaitTermination(LOOK_SECONDS):
            return


def _emptied(query: StreamingQuery, emptied: Event) -> None:
    from pyspark.errors import PySparkException

    # What ended the query is raised where somebody waits for it.
    with suppress(PySparkException):
        query.processAllAvailable()
        emptied.set()


class _Batches:
    """Takes the batches of the stream, one at a time."""

    def __init__(
        self,
        spark: SparkSession,
        following: Following,
        target: HadoopFolder,
        report: BatchReport,
        watch: ConversionWatch | None,
    ) -> None:
        self.stopping = Event()
        self.failed: Exception | None = None
        self._spark = spark
        self._following = following
        self._target = target
        self._report = report
        self._watch = watch
        self._busy = Lock()
        self._ended = False

    def stop(self) -> None:
        """Asks for the end."""
        self.stopping.set()

    def end(self) -> None:
        """Returns when no batch is in hand; none is taken after that."""
        with self._busy:
            self._ended = True

    def take(self, batch: DataFrame, number: int) -> None:
        """Converts a batch, unless that was done before Spark could note it."""
        with self._busy:
            if self._ended or self.stopping.is_set():
                raise InterruptedError("The end was asked for; the batch comes again.")
            try:
                self._take(batch, f"batch-{number:08d}")
            except Exception as error:
                self.failed = error
                raise

    def _take(self, batch: DataFrame, name: str) -> None:
        done = HadoopFolder(self._spark, self._target.subfolder(DONE))
        before = max(filter(_batch, done.names()), default="")
        if name > before:
            after = ""
            if before:
                after = done.read(before).decode()
            # The new note first: in between a crash leaves both, and the greater one counts.
            done.note(name, self._done(batch, name, after).encode())
            if before:
                done.remove(before)
        self._target.remove(f"{ROWS}/{name}")

    def _done(self, batch: DataFrame, name: str, after: str) -> str:
        """Has the batch converted unless it is; the last change_seq then."""
        rows = f"{ROWS}/{name}"
        output = HadoopFolder(self._spark, self._target.subfolder(name))
        if SUCCESS in output.names():
            # Only its folder of work may be left.
            output.discard()
            return output.summary().change_seq
        kept = HadoopFolder(self._spark, self._target.subfolder(rows))
        # Spark writes a `_SUCCESS` too, when all rows are there.
        if SUCCESS not in kept.names():
            batch.write.mode("overwrite").parquet(kept.address)
        # A number may turn out to be nobody's, so that a batch has no rows.
        if self._spark.read.parquet(as_named(kept.address)).isEmpty():
            return after
        summary = self._converted(name, rows, after)
        self._report(name, summary)
        return summary.change_seq

    def _converted(self, name: str, rows: str, after: str) -> Summary:
        following = self._following
        destination = following.conversion.destination
        # The rows in files have their times in UTC already.
        if following.address is not None:
            conversion = replace(
                following.conversion,
                input=FilesInput(places=()),
                destination=destination / name,
                after=after,
            )
            places = Addresses(
                destination=self._target.subfolder(name),
                inputs=(as_named(self._target.subfolder(rows)),),
            )
            return convert_at(conversion, places)
        conversion = replace(
            following.conversion,
            input=FilesInput(places=(str(destination / rows),)),
            destination=destination / name,
            after=after,
        )
        return convert(conversion, watch=self._watch)
