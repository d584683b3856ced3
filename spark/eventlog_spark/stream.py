"""Follows a log as it grows: each row once, in batches that Spark can repeat, also rows that commit or are released late."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from eventlog.convert.reading import held_rows
from eventlog.core.errors import ConfigError
from eventlog.sql.dialect import offers
from eventlog_spark.faults import travelling
from eventlog_spark.gaps import GapLook, Offset, Step, advanced, left_out, read_offset, steps
from eventlog_spark.log import BulkLog, stretches, told

if TYPE_CHECKING:
    from eventlog_spark.options import LogOptions


WORTHWHILE_NUMBERS: Final = 10_000
"""Numbers that are worth a partition of their own."""


class LogStream(DataSourceStreamReader):
    """The data source as a stream: every row whatever its status, because a status changes while the row is read."""

    def __init__(self, options: LogOptions) -> None:
        if options.status:
            raise ConfigError("A stream cannot choose rows by status, which changes.", hint="Filter what it gives.")
        self._options = options
        self._latest: object = None
        self._log: BulkLog | None = None

    def initialOffset(self) -> dict[str, object]:  # noqa: N802  # Spark calls it so
        return Offset(upto=self._options.start).written()

    def latestOffset(self, start: object = None, limit: object = None) -> dict[str, object]:  # noqa: N802  # Spark's
        """Where the next batch ends. Older versions of Spark do not say where it starts."""
        with travelling():
            before = read_offset(start or self._latest or self.initialOffset())
            latest = advanced(before, self._look(before)).written()
            self._latest = latest
            return latest

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> list[InputPartition]:
        found = steps(read_offset(start), read_offset(end))
        return [InputPartition(piece) for step in found for piece in self._pieces(step)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with travelling():
            yield from _rows(BulkLog(self._options), partition.value, transactions=self._options.transactions)

    def commit(self, end: dict[str, object]) -> None:
        """Nothing is kept for batches that were handed out: the log has them."""

    def _pieces(self, step: Step) -> Iterator[Step]:
        count = min(self._options.partitions, -(-(step.last - step.first) // WORTHWHILE_NUMBERS) or 1)
        for stretch in stretches(step.first, step.last, count):
            yield Step(first=stretch.first, last=stretch.last, without=step.without)

    def _look(self, before: Offset) -> GapLook:
        """Who writes is asked before and after the numbers, each time in a transaction of its own."""
        log = self._log = self._log or BulkLog(self._options)
        writers = self._writers(log)
        numbers = log.numbers("numbers_after", first=before.upto, limit=self._options.rows)
        found = [
            number
            for gap in before.gaps
            if not gap.held
            for number in log.numbers("numbers_within", first=gap.first, last=gap.last)
        ]
        return GapLook(
            numbers=numbers,
            found=found,
            held=held_rows(log.engine, log.names),
            before=writers,
            after=self._writers(log),
            now=time.time(),
            patience=self._options.patience,
        )

    def _writers(self, log: BulkLog) -> frozenset[str] | None:
        """The transactions that may still commit a number that was drawn; an embedded database has one writer at a time."""
        if log.dialect.embedded:
            return frozenset()
        if not offers(log.dialect, "writers"):
            return None
        with log.connection() as connection:
            return frozenset(str(row[0]) for row in log.rows(connection, "writers"))


def _rows(log: BulkLog, step: Step, *, transactions: bool) -> Iterator[pa.RecordBatch]:
    """The rows of a step; what came into a gap after the batch was made belongs to a later one."""
    for stretch in stretches(step.first, step.last, 1):
        for batch in told(log, stretch, transactions=transactions):
            if not step.without:
                yield batch
                continue
            numbers = batch.column("record_id").to_pylist()
            yield batch.filter(pa.array([not left_out(number, step.without) for number in numbers], pa.bool_()))
