"""The data source `eventlog`: an event log table as a DataFrame, at rest or as a stream.

    spark.dataSource.register(EventLogSource)
    spark.read.format("eventlog").option("url", url).option("log", "event_log").load()

Options: `url` (SQLAlchemy's form), `log`, `columns` (auto, new, old, or ten names), `clock` (whose
time event_time is), `status` (letters; all rows without it), `partitions` (how many ranges of
record_id are read side by side), `pushdown` (true: the database evaluates filters), `snapshot` (of
PostgreSQL, exported by whoever reads), `transactions` (true: an eleventh column), and for streams
`rows` (of one batch at most), `start` (a record_id to begin after), `patience` (seconds). Those of
its sink are in `sink`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from eventlog.core.errors import ConfigError
from eventlog.sql.names import STANDARD, TRANSACTION
from eventlog_spark.faults import travelling
from eventlog_spark.log import BulkLog, NumberRange, source_batches, stretches
from eventlog_spark.options import read_options
from eventlog_spark.pushdown import chosen_by
from eventlog_spark.snapshot import hold

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter, Filter
    from pyspark.sql.types import StructType

    from eventlog_spark.options import LogOptions

SCHEMA: Final = ", ".join(
    f"{name} {'bigint' if name in ('record_id', 'event_type') else 'string'}" for name in STANDARD
)
"""The ten columns by their standard names, whatever the table calls them; event_time as the
database writes it, or in UTC where `clock` names another zone.
"""

OUT: Final = "out"
"""The option of the sink that no reader has."""


class EventLogSource(DataSource):
    """Event log tables, for `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        return "eventlog"

    def schema(self) -> StructType | str:
        # Spark asks also whoever is to take rows, whose options are other ones.
        if OUT in self.options or read_options(self.options).transactions:
            return f"{SCHEMA}, {TRANSACTION} string"
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        options = read_options(self.options)
        if options.pushdown:
            return FilteredLogReader(options)
        return LogReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark calls it so
        from eventlog_spark.stream import LogStream

        return LogStream(read_options(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # likewise
        from eventlog_spark.sink import LogSink, sink_options

        with travelling():
            if overwrite:
                raise ConfigError("The sink eventlog appends.", hint='Leave outputMode out, or name "append".')
            return LogSink(sink_options(self.options))


class LogReader(DataSourceReader):
    """The data source at rest."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        with travelling():
            return [InputPartition(stretch) for stretch in planned(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with travelling():
            stretch: NumberRange = partition.value
            log, transactions = BulkLog(self._options), self._options.transactions
            yield from source_batches(log, stretch, transactions=transactions)


class FilteredLogReader(LogReader):
    """The same, whose rows the database filters; a class of its own, because Spark refuses one with
    `pushFilters` unless it is told to push.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark calls it so
        """Spark evaluates all of them again: the database may compare texts in another way."""
        self._options = replace(self._options, chosen=chosen_by(filters))
        return filters


def planned(options: LogOptions) -> list[NumberRange]:
    """The stretches to read; an empty log has one without rows, because Spark takes no empty
    list.
    """
    log = BulkLog(options)
    snapshot = options.snapshot
    if snapshot is None and log.copies:
        # Partitions are read over connections of their own, and must see one state.
        snapshot = hold(log.engine, options.patience)
    with log.connection(snapshot) as connection:
        ((first, last),) = log.rows(connection, "extent")
    if first is None:
        return [NumberRange(first=1, last=0, snapshot=snapshot)]
    return stretches(int(first), int(last), options.partitions, snapshot)
