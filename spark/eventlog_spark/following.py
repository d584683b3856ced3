"""Follows a log: Spark hands out its rows batch by batch, and each batch is converted (`batches`). How far the
stream is stands in `_checkpoint`, which is Spark's.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.pipeline import ConversionWatch
from eventlog.convert.settings import Conversion, FilesInput, LogInput
from eventlog.convert.transactions import MIXED
from eventlog.core.errors import UsageError
from eventlog.daemon.signals import requests_by_signal
from eventlog.sql.connect import address_of, read_url
from eventlog_spark.batches import BatchConversion, BatchReport
from eventlog_spark.cluster import Cluster, session
from eventlog_spark.faults import arriving
from eventlog_spark.source import EventLogSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

CHECKPOINT: Final = "_checkpoint"

LOOK_SECONDS: Final = 1
"""How often somebody looks whether the end is asked for."""

SLOW: Final = "failed to connect back"
MOST_TRIES: Final = 10
"""Spark waits ten seconds for a Python that begins, which is short on a busy machine; nothing was
read then.
"""


class Following(Struct, frozen=True, kw_only=True):
    """How a log is followed. `address` is the destination where it is no folder; `seconds` pass
    between two looks at the log.
    """

    conversion: Conversion
    address: str | None = None
    seconds: float = 10
    until_empty: bool = False
    batch_rows: int = 200_000


def follow(
    following: Following,
    report: BatchReport,
    *,
    cluster: Cluster | None = None,
    watch: ConversionWatch | None = None,
) -> None:
    """Convert batch after batch until a signal, or nothing is left; finish the batch in hand."""
    source = following.conversion.input
    if not isinstance(source, LogInput):
        raise UsageError("Only the log of a database can be followed.", hint="Name its URL as INPUT.")
    if following.conversion.transactions == "whole":
        message = "A log that is followed is cut into batches, and transactions with it."
        raise UsageError(message, hint=MIXED)
    conversion = following.conversion
    with session(cluster or Cluster(), hiding=conversion.hides) as spark, arriving(), ExitStack() as claimed:
        converting = BatchConversion(
            spark,
            conversion.destination,
            following.address,
            # Where the rows lie is set there.
            lambda _rows: replace(conversion, input=FilesInput(places=())),
            report,
            watch,
        )
        claimed.enter_context(converting.claimed())
        converting.begin(f"the log {source.log} of {address_of(read_url(source.url))}")
        batches = _Batches(converting)
        spark.dataSource.register(EventLogSource)
        options = _options(source, following.batch_rows)
        rows = spark.readStream.format("eventlog").options(**options).load()
        writer = rows.writeStream.option("checkpointLocation", converting.target.subfolder(CHECKPOINT))
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


def _run(writer: DataStreamWriter, batches: _Batches, *, until_empty: bool) -> StreamingQuery:
    """Run the stream until a stop is asked for or nothing is left; retry a slow start."""
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
        # Every digit and every text that is no time reaches the rules as it is.
        "event_time": "text",
    }


def _wait(query: StreamingQuery, batches: _Batches, *, until_empty: bool) -> None:
    """Wait until a stop is asked for or nothing is left; raise the error of a failed query."""
    emptied = Event()
    if until_empty:
        # In a thread, because it cannot be told to give up when a signal asks for the end.
        Thread(target=_wait_until_empty, args=(query, emptied), daemon=True).start()
    while not batches.stopping.is_set() and not emptied.is_set():
        if query.awaitTermination(LOOK_SECONDS):
            return


def _wait_until_empty(query: StreamingQuery, emptied: Event) -> None:
    from pyspark.errors import PySparkException

    # What ended the query is raised where somebody waits for it.
    with suppress(PySparkException):
        query.processAllAvailable()
        emptied.set()


class _Batches:
    """Takes the batches of the stream, one at a time, until the end is asked for."""

    def __init__(self, converting: BatchConversion) -> None:
        self.stopping = Event()
        self.failed: Exception | None = None
        self._converting = converting
        self._busy = Lock()
        self._ended = False

    def stop(self) -> None:
        """Ask for a stop."""
        self.stopping.set()

    def end(self) -> None:
        """Wait for the batch in hand; no other is taken after it."""
        with self._busy:
            self._ended = True

    def take(self, batch: DataFrame, number: int) -> None:
        """Convert a batch, unless a former try has done so before Spark could note it."""
        with self._busy:
            if self._ended or self.stopping.is_set():
                raise InterruptedError("The end was asked for; the batch comes again.")
            try:
                self._converting.take(batch, number)
            except Exception as error:
                self.failed = error
                raise
