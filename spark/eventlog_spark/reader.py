"""Reads a log as a DataFrame: stretches of record_id side by side, on PostgreSQL all as of one moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from eventlog_spark.bulk import BulkLog, NumberRange, stretches
from eventlog_spark.faults import travelling
from eventlog_spark.reading import batches
from eventlog_spark.snapshot import hold

if TYPE_CHECKING:
    from eventlog_spark.options import LogOptions


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
            yield from batches(BulkLog(self._options), stretch)


def planned(options: LogOptions) -> list[NumberRange]:
    """The stretches to read; an empty log has one without rows, because Spark takes no empty list."""
    log = BulkLog(options)
    snapshot = options.snapshot
    if snapshot is None and log.copies:
        snapshot = hold(log.engine, options.patience)
    with log.connection(snapshot) as connection:
        ((first, last),) = log.rows(connection, "extent")
    if first is None:
        return [NumberRange(first=1, last=0, snapshot=snapshot)]
    return stretches(int(first), int(last), options.partitions, snapshot)
