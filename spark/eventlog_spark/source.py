"""The data source `eventlog`: an event log table as a DataFrame, at rest or as a stream.

    spark.dataSource.register(EventLogSource)
    spark.read.format("eventlog").option("url", url).option("log", "event_log").load()

Options: `url` (SQLAlchemy's form), `log`, `columns` (auto, new, old, or ten names), `clock` (whose
time event_time is), `status` (letters; all rows without it), `partitions` (how many ranges of
record_id are read side by side), `pushdown` (false: the database evaluates no filters), `snapshot`
(of PostgreSQL, exported by whoever reads), `transactions`, `context` (true: a column more each), `event_time` (text: as the database writes it), and for streams `rows` (of one batch at most), `start` (a
record_id to begin after), `patience` (seconds). Nothing is written into a log.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

import pyarrow as pa
from msgspec.structs import replace
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from eventlog.core.errors import UsageError
from eventlog.sql.names import STANDARD
from eventlog_spark.faults import travelling
from eventlog_spark.log import BulkLog, cut_numbers, source_batches
from eventlog_spark.options import NumberRange, read_options
from eventlog_spark.pushdown import choose_by
from eventlog_spark.snapshot import hold

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter, DataSourceWriter, Filter
    from pyspark.sql.types import StructType

    from eventlog_spark.options import LogOptions

TYPES: Final = {"record_id": "bigint", "event_type": "bigint", "event_time": "timestamp"}
"""The types of the columns that are not text. The columns have their standard names, whatever the
table calls them; event_time is UTC, and NULL where it is no time.
"""

PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
PUSHING: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The module of the process to which Spark gives filters. Everywhere else it refuses a reader that
takes some, unless the setting is on.
"""


class EventLogSource(DataSource):
    """Event log tables, for `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        # Spark asks for it when it registers the source, and has no other moment for us there.
        allow_pushdown()
        return "eventlog"

    def schema(self) -> StructType | str:
        with travelling():
            types = dict(TYPES)
            names = list(STANDARD)
            # Spark asks also whoever wants to write, whose options are other ones.
            if "url" in self.options:
                options = read_options(self.options)
                if options.event_time == "text":
                    types["event_time"] = "string"
                names += options.more
            return ", ".join(f"{name} {types.get(name, 'string')}" for name in names)

    def reader(self, schema: StructType) -> DataSourceReader:
        with travelling():
            options = read_options(self.options)
            if options.pushdown and _gets_filters():
                return FilteredLogReader(options)
            return LogReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark calls it so
        from eventlog_spark.stream import LogStream

        with travelling():
            return LogStream(read_options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        _refuse_writing("write")

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # likewise
        _refuse_writing("writeStream")


def _refuse_writing(what: str) -> NoReturn:
    with travelling():
        raise UsageError(
            f'{what}.format("eventlog") writes nothing: only triggers write into an event log.',
            hint="To convert the rows of a stream: writeStream.foreachBatch(eventlog_spark.convert_batches(...)).",
        )


def allow_pushdown() -> None:
    """Let Spark hand out filters, in the active session. Elsewhere, as in workers, do nothing."""
    from pyspark.sql import SparkSession

    # A platform may forbid it; then all rows are read, and the answers are the same.
    with suppress(PySparkException):
        session = SparkSession.getActiveSession()
        if session is not None:
            session.conf.set(PUSHDOWN, "true")


def _gets_filters() -> bool:
    """Return True in the process that gets Spark's filters."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return PUSHING in sys.modules or getattr(main, "name", "") == PUSHING


class LogReader(DataSourceReader):
    """The data source at rest."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        with travelling():
            return [InputPartition(row_range) for row_range in plan_ranges(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with travelling():
            row_range: NumberRange = partition.value
            yield from source_batches(BulkLog(self._options), row_range, self._options)


class FilteredLogReader(LogReader):
    """The same, whose rows the database filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark calls it so
        """Spark evaluates all of them again: the database may compare texts in another way."""
        self._options = replace(self._options, chosen=choose_by(filters))
        return filters


def plan_ranges(options: LogOptions) -> list[NumberRange]:
    """Plan the ranges to read; an empty log has one, because Spark takes no empty list."""
    log = BulkLog(options)
    snapshot = options.snapshot
    if snapshot is None and log.copies:
        # Partitions are read over connections of their own, and must see one state.
        snapshot = hold(log.engine, options.patience)
    with log.connection(snapshot) as connection:
        ((first, last),) = log.rows(connection, "extent")
    if first is None:
        return [NumberRange(first=1, last=0, snapshot=snapshot)]
    return cut_numbers(int(first), int(last), options.partitions, snapshot)
