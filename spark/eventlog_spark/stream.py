"""Follows a log as it grows: each row once, in batches that Spark can repeat, also rows that commit
or are released late.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from eventlog.convert.taken import has_journal
from eventlog.core.errors import ConfigError, SourceError
from eventlog.sql.dialect import offers
from eventlog.sql.log import ALL, Log
from eventlog_spark.faults import travelling
from eventlog_spark.gaps import (
    MOST_GAPS,
    GapLook,
    Offset,
    Step,
    advance_offset,
    extend_offset,
    read_offset,
    steps,
    together,
)
from eventlog_spark.limits import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from eventlog_spark.log import BulkLog, cut_numbers, source_batches
from eventlog_spark.options import NumberRange

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog_spark.options import LogOptions


WORTHWHILE_NUMBERS: Final = 10_000
"""Numbers that are worth a partition of their own."""


LOOK_NUMBERS: Final = 1_000_000
"""Numbers that are read at once where a batch may have any number of rows."""


class LogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The data source as a stream: every row whatever its status, because a status changes while
    the row is read.
    """

    def __init__(self, options: LogOptions) -> None:
        if options.status:
            message = "A stream cannot choose rows by status, which changes."
            raise ConfigError(message, hint="Filter what it gives.")
        self._options = options
        self._latest: object = None
        self._log: BulkLog | None = None
        self._target: int | None = None

    def initialOffset(self) -> dict[str, object]:  # noqa: N802  # Spark calls it so
        return Offset(upto=self._options.start).written()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # likewise
        return ReadMaxRows(self._options.rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # likewise
        """Note the end of this run: the last row of the log by now."""
        with travelling():
            self._target = self._highest()

    def reportLatestOffset(self) -> dict[str, object] | None:  # noqa: N802  # likewise
        with travelling():
            return Offset(upto=self._highest()).written()

    def latestOffset(  # noqa: N802  # likewise
        self, start: object = None, limit: ReadLimit | None = None
    ) -> dict[str, object]:
        """Choose the next batch's end; Spark before 4.2 passes neither its start nor a limit."""
        with travelling():
            # The first offset is an empty one.
            known = self._latest if start is None else start
            before = read_offset(self.initialOffset() if known is None else known)
            latest = self._advance(before, limit or self.getDefaultReadLimit())
            # Kept for versions of Spark that do not say where a batch starts.
            self._latest = latest.written()
            return self._latest

    def _advance(self, before: Offset, limit: ReadLimit) -> Offset:
        everything = isinstance(limit, ReadAllAvailable)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.rows
        if everything:
            most = LOOK_NUMBERS
        look = self._look(before, most)
        latest = advance_offset(before, look)
        # There are new rows, and no room for the gaps among them.
        if look.numbers and latest.upto == before.upto:
            held = sum(gap.held for gap in latest.gaps)
            # A stream that waits for transactions goes on by itself; one that waits for people says so.
            if held >= MOST_GAPS:
                problem = f"Held rows are at {held:,} separate places of the log, and a stream keeps no more."
                raise SourceError(problem, hint="Release some of them: `eventlog release`.")
        # As many at a time as have room in memory.
        while everything and look.numbers and latest.upto == look.numbers[-1]:
            look = self._look(Offset(upto=latest.upto), most)
            latest = extend_offset(latest, look)
        return latest

    def _highest(self) -> int:
        log = self._log = self._log or BulkLog(self._options)
        with log.connection() as connection:
            ((_, highest),) = log.rows(connection, "extent")
        return int(highest or 0)

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> list[InputPartition]:
        """Cut new numbers into equal pieces; spread late ones, in small steps, over partitions."""
        partitions: list[InputPartition] = []
        small: list[Step] = []
        for step in steps(read_offset(start), read_offset(end)):
            if step.last - step.first >= WORTHWHILE_NUMBERS:
                partitions += [InputPartition((piece,)) for piece in self._pieces(step)]
            else:
                # A question costs more than its few rows, so several share a partition.
                small.append(step)
        count = self._options.partitions
        for number in range(min(count, len(small))):
            partitions.append(InputPartition(tuple(small[number::count])))
        return partitions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with travelling():
            log = BulkLog(self._options)
            for step in partition.value:
                yield from _rows(log, step, self._options)

    def commit(self, end: dict[str, object]) -> None:
        """Do nothing: no batch leaves anything here, the log has its rows."""

    def _pieces(self, step: Step) -> Iterator[Step]:
        worthwhile = -(-(step.last - step.first) // WORTHWHILE_NUMBERS) or 1
        for piece in cut_numbers(step.first, step.last, min(self._options.partitions, worthwhile)):
            yield Step(first=piece.first, last=piece.last, without=step.without.within(piece.first, piece.last))

    def _look(self, before: Offset, most: int) -> GapLook:
        """Read the numbers, and the writers before and after, each in a transaction of its own."""
        log = self._log = self._log or BulkLog(self._options)
        writers = self._writers(log)
        arrived: list[int] = []
        with log.connection() as connection:
            numbers = log.numbers(connection, "numbers_after", first=before.upto, limit=most)
            there_are_none = not numbers
            if self._target is not None:
                numbers = [number for number in numbers if number <= self._target]
            # Rows of held gaps are known to be there; whether they still wait is asked below.
            gaps = [(gap.first, gap.last) for gap in before.gaps if not gap.held]
            for step in together(gaps):
                present = log.numbers(connection, "numbers_within", first=step.first, last=step.last)
                arrived += [number for number in present if number not in step.without]
            if before.upto and there_are_none:
                _refuse_restarted(log, connection, before.upto)
        last = numbers[-1] if numbers else before.upto
        return GapLook(
            numbers=numbers,
            arrived=arrived,
            held=_list_held(Log(log.engine, log.names), before.upto, last),
            before=writers,
            after=self._writers(log),
            now=time.time(),
            patience=self._options.patience,
        )

    def _writers(self, log: BulkLog) -> frozenset[str] | None:
        """Read the transactions that may still commit a drawn number.

        An embedded database has none: one writer at a time.
        """
        if log.dialect.embedded:
            return frozenset()
        if not offers(log.dialect, "writers"):
            return None
        with log.connection() as connection:
            return frozenset(str(row[0]) for row in log.rows(connection, "writers"))


def _refuse_restarted(log: BulkLog, connection: Connection, upto: int) -> None:
    """Refuse a log with numbers begun anew: no look finds its new rows.

    TRUNCATE … RESTART IDENTITY or a backup do so. A purge may remove its last rows, but it moves no
    sequence back.
    """
    if not offers(log.dialect, "last_drawn"):
        return
    ((_, highest),) = log.rows(connection, "extent")
    column = log.dialect.literal(log.names.column("record_id"))
    rows = log.rows(connection, "last_drawn", number_text=column)
    # A sequence from which nobody has drawn yet says NULL.
    drawn = [number for (number, *_) in rows if number is not None]
    if drawn and max(int(drawn[0]), int(highest or 0)) < upto:
        what = f"The numbers of the log begin again: its last one is {drawn[0]}"
        raise SourceError(
            f"{what}, and rows up to {upto} were read before.",
            hint="Follow into another folder, or with another checkpoint.",
            may_pass=False,
        )


def _rows(log: BulkLog, step: Step, options: LogOptions) -> Iterator[pa.RecordBatch]:
    """Read the rows of a step; leave out rows that came into a gap later, for a later batch."""
    row_range = NumberRange(first=step.first, last=step.last)
    for batch in source_batches(log, row_range, options):
        if not step.without:
            yield batch
            continue
        taken = [number not in step.without for number in batch.column("record_id").to_pylist()]
        yield batch.filter(pa.array(taken, pa.bool_()))


def _list_held(log: Log, first: int, last: int) -> frozenset[int]:
    """List held rows, and the rows behind them between two numbers; none without a journal."""
    if not has_journal(log):
        return frozenset()
    with log.transaction(lone=True) as connection:
        everything = {"first": -(2**63), "last": 2**63 - 1, "limit": ALL}
        held = {int(number) for (number,) in log.rows(connection, log.query("hold_numbers"), everything)}
        if not held:
            return frozenset()
        # From the first row that is held, which may stand far before: what is behind it is held
        # too.
        behind = log.rows(connection, log.query("behind_held"), {"first": min(first, *held), "last": last})
        return frozenset(held | {int(number) for (number,) in behind})
