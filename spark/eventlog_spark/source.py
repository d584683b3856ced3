"""The data source `eventlog`: an event log table as a DataFrame, at rest or as a stream.

    spark.dataSource.register(EventLogSource)
    spark.read.format("eventlog").option("url", url).option("log", "event_log").load()

Options: `url` (SQLAlchemy's form), `log`, `columns` (auto, new, old, or ten names), `status` (letters; all rows without
it), `partitions` (how many ranges of record_id are read side by side), `snapshot` (of PostgreSQL, exported by whoever
reads), and for streams `rows` (of one batch at most), `start` (a record_id to begin after), `patience` (seconds).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource

from eventlog.sql.names import STANDARD
from eventlog_spark.options import read_options

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

SCHEMA: Final = ", ".join(
    f"{name} {'bigint' if name in ('record_id', 'event_type') else 'string'}" for name in STANDARD
)
"""The ten columns by their standard names, whatever the table calls them; event_time as the database writes it."""


class EventLogSource(DataSource):
    """Event log tables, for `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        return "eventlog"

    def schema(self) -> StructType | str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        from eventlog_spark.reader import LogReader

        return LogReader(read_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark calls it so
        from eventlog_spark.stream import LogStream

        return LogStream(read_options(self.options))
