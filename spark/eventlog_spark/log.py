"""A log that is read in bulk, range by range, into record batches: by COPY where the driver is
psycopg, else by plain queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.csv

from eventlog.convert.reading import columns_of, context_behind, fetch_rows, transaction_behind
from eventlog.convert.rows import shape_rows, times_in_utc
from eventlog.core.errors import DataError, SourceError
from eventlog.core.times import moment
from eventlog.sql.access import in_our_words, in_text, statements_of
from eventlog.sql.clocks import zone_of
from eventlog.sql.connect import connect
from eventlog.sql.dialect import Dialect, dialect_of, log_holes, offers, statement
from eventlog.sql.names import CONTEXT, STANDARD, TRANSACTION, LogNames
from eventlog_spark.options import LogOptions, NumberRange
from eventlog_spark.snapshot import reader_name

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class BulkLog:
    """A log that is read in bulk, by the queries of bulk.sql."""

    def __init__(self, options: LogOptions) -> None:
        # With SQLAlchemy, which workers without a log do without.
        from eventlog.sql.findlog import log_columns

        self.engine: Engine = connect(options.url)
        self.dialect: Dialect = dialect_of(self.engine)
        # A log goes to other processes as it is, where an open connection would be of no use.
        try:
            self.names: LogNames = log_columns(self.engine, options.names, options.columns)
        finally:
            self.engine.dispose()
        self.zone = zone_of(self.names.clock)
        self._holes = log_holes(self.dialect, self.names)
        conditions = " AND ".join(self._conditions(options))
        self._chosen = conditions or statement(self.dialect, "chosen_all")

    @property
    def transaction(self) -> str:
        """Return the SQL for a row's transaction; empty if the log has none."""
        return transaction_behind(self.dialect, self._holes)

    @property
    def context(self) -> str:
        """Return the SQL for a row's session context; empty if the log has none."""
        return context_behind(self.dialect, self._holes)

    @property
    def copies(self) -> bool:
        """Return True if rows come by COPY."""
        return self.engine.dialect.driver == self.dialect.driver.copying_driver

    def query(self, name: str, **holes: object) -> str:
        """Return a query of bulk.sql with its holes filled."""
        filling = {hole: str(value) for hole, value in holes.items()}
        filling["log_text"] = self.dialect.literal(self._holes["log"])
        return statement(self.dialect, name, **self._holes, chosen=self._chosen, **filling)

    def _conditions(self, options: LogOptions) -> Iterator[str]:
        """Yield conditions for the rows to read; times are compared as text, if no zone is set."""
        chosen = options.chosen
        if options.status:
            yield self._condition("chosen_statuses", statuses=self._several(options.status))
        if chosen.statuses is not None:
            yield self._condition("chosen_statuses", statuses=self._several(chosen.statuses))
        if chosen.tables is not None:
            yield self._condition("chosen_tables", names=self._several(chosen.tables))
        for name, number in (("chosen_first", chosen.first), ("chosen_last", chosen.last)):
            if number is not None:
                yield self._condition(name, number=str(number))
        for name, time in (("chosen_since", chosen.since), ("chosen_upto", chosen.upto)):
            # Not every database has times as texts, and a time of another zone is another text.
            if time is not None and self.zone is None and offers(self.dialect, name):
                yield self._condition(name, time=self.dialect.literal(time))

    def _condition(self, name: str, **holes: str) -> str:
        return statement(self.dialect, name, **self._holes, **holes)

    def _several(self, texts: Iterable[str]) -> str:
        # `IN ()` is no SQL; nothing is in (NULL).
        return f"({', '.join(map(self.dialect.literal, texts)) or 'NULL'})"

    @contextmanager
    def connection(self, snapshot: str | None = None) -> Iterator[Connection]:
        """Open a read-only transaction, in an exported snapshot; end its session with the block."""
        with in_our_words(self.engine, f"The event log {self.names.table}"):
            try:
                with self.engine.connect() as connection:
                    self._begin(connection, snapshot)
                    yield connection
            finally:
                self.engine.dispose()

    def _begin(self, connection: Connection, snapshot: str | None) -> None:
        # Both before any query: PostgreSQL refuses them afterwards.
        if self.copies:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if snapshot is not None:
            self._join(connection, snapshot)
        for setting in statements_of(self.dialect, "session"):
            connection.exec_driver_sql(setting)

    def numbers(self, connection: Connection, name: str, **holes: object) -> list[int]:
        """Run a query of bulk.sql and return its numbers."""
        return [int(row[0]) for row in self.rows(connection, name, **holes)]

    def rows(self, connection: Connection, name: str, **holes: object) -> Sequence[tuple[Any, ...]]:
        """Run a query of bulk.sql and return its rows."""
        from sqlalchemy import text

        query = text(in_text(self.query(name, **holes)))
        return [tuple(row) for row in connection.execute(query)]

    def _join(self, connection: Connection, snapshot: str) -> None:
        """Join an exported snapshot; the session's name tells the snapshot's holder of a reader."""
        from sqlalchemy.exc import DBAPIError

        try:
            connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT {self.dialect.literal(snapshot)}")
        except DBAPIError as error:
            message = f"The snapshot {snapshot} of the log has ended."
            longer = "with a larger option `patience` it is kept longer for readers that come late"
            raise SourceError(message, hint=f"Read again; {longer}.", may_pass=False) from error
        name = self.dialect.literal(reader_name(snapshot))
        connection.exec_driver_sql(f"SELECT set_config('application_name', {name}, false)")


def cut_numbers(first: int, last: int, count: int, snapshot: str | None = None) -> list[NumberRange]:
    """Cut the numbers from first to last into up to `count` ranges of equal width."""
    # Rounded up, or there would be a range more than was asked for.
    width = max(1, -(-(last - first + 1) // count))
    return [
        NumberRange(first=start, last=min(start + width - 1, last), snapshot=snapshot)
        for start in range(first, last + 1, width)
    ]


NUMBERS: Final = ("record_id", "event_type")
ROWS: Final = pa.schema([(name, pa.int64() if name in NUMBERS else pa.string()) for name in STANDARD])


def source_batches(log: BulkLog, numbers: NumberRange, options: LogOptions) -> Iterator[pa.RecordBatch]:
    """Read the rows of a range as the data source gives them: with their transactions and contexts, NULL where the
    log does not say them, and with times as Spark has them.
    """
    there = {TRANSACTION: log.transaction, CONTEXT: log.context}
    schema = pa.schema([*ROWS, *(pa.field(name, pa.string()) for name in options.more if there[name])])
    for read in batches(log, numbers, schema):
        batch = read
        for name in options.more:
            if not there[name]:
                batch = batch.append_column(name, pa.nulls(len(read), pa.string()))
        if options.more:
            batch = batch.select([*STANDARD, *options.more])
        yield batch if options.event_time == "text" else with_timestamps(batch)


INSTANT: Final = pa.timestamp("us", "UTC")


def with_timestamps(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Read event_time as a time; NULL where it is none."""
    at = batch.schema.get_field_index("event_time")
    texts = batch.column(at)
    try:
        times = texts.cast(pa.timestamp("us")).cast(INSTANT)
    except pa.ArrowInvalid:
        # Some have a zone, or are written in another way; each that occurs is looked at once.
        known = texts.dictionary_encode()
        moments = [moment(text) for text in known.dictionary.to_pylist()]
        times = pa.array(moments, pa.timestamp("us")).cast(INSTANT).take(known.indices)
    return batch.set_column(at, pa.field("event_time", INSTANT), times)


def batches(log: BulkLog, numbers: NumberRange, schema: pa.Schema = ROWS) -> Iterator[pa.RecordBatch]:
    """Read the rows of a range, with the times of the log's zone in UTC."""
    for rows in _batches(log, numbers, schema):
        yield times_in_utc(rows, log.zone)


def _batches(log: BulkLog, numbers: NumberRange, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with log.connection(numbers.snapshot) as connection:
        behind = log.transaction if TRANSACTION in schema.names else ""
        who = log.context if CONTEXT in schema.names else ""
        query = log.query("row_range", first=numbers.first, last=numbers.last, transaction=behind, context=who)
        if not log.copies:
            yield from _fetch(connection, query, schema)
            return

        try:
            yield from copy_rows(connection.connection.driver_connection, query, schema)
        except BaseException:
            # Also when a reader wants no more rows: the server would go on sending.
            connection.invalidate()
            raise


def _fetch(connection: Connection, query: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for read in fetch_rows(connection, query):
        rows = shape_rows(columns_of(read, context=CONTEXT in schema.names))
        yield pa.RecordBatch.from_arrays([rows.column(field.name).cast(field.type) for field in schema], schema=schema)


BLOCK_BYTES: Final = 2 << 20
"""How much is collected before Arrow reads it; always whole rows."""


def copy_rows(connection: Any, query: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read a query's rows by COPY, in the current transaction of a psycopg connection.

    In CSV an empty string stands in quotes and NULL does not, so they stay apart. libpq hands out
    one row at a time; asked by psycopg's own iterator, that alone would cost twice as much as
    reading them.
    """
    session = connection.pgconn
    _check(session.exec_(f"COPY ({query}) TO STDOUT (FORMAT csv)".encode()), copying=True)
    block = bytearray()
    while True:
        # 0: libpq waits until there is a row.
        size, row = session.get_copy_data(0)
        if size <= 0:
            break
        block += row
        if len(block) >= BLOCK_BYTES:
            yield from _read(block, schema)
            block = bytearray()
    while (result := session.get_result()) is not None:
        _check(result, copying=False)
    if block:
        yield from _read(block, schema)


def _read(block: bytearray, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    convert = pyarrow.csv.ConvertOptions(
        column_types=schema,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    # The block as a whole: Arrow would cut it where a row may go on.
    read = pyarrow.csv.ReadOptions(use_threads=False, column_names=schema.names, block_size=len(block) + 1)
    # A value in quotes may have line breaks.
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    try:
        table = pyarrow.csv.read_csv(pa.BufferReader(pa.py_buffer(block)), read, parse, convert)
    except pa.ArrowInvalid as error:
        message = f"A value of the log is not what its column should hold: {error}."
        hint = "Correct the row, or say with `columns` which column is which."
        raise DataError(message, hint=hint) from error
    yield from table.to_batches()


def _check(result: Any, *, copying: bool) -> None:
    from psycopg.pq import ExecStatus, error_message

    expected = ExecStatus.COPY_OUT if copying else ExecStatus.COMMAND_OK
    if result.status != expected:
        lines = error_message(result).strip().splitlines()
        cause = "no answer"
        if lines:
            cause = lines[0].rstrip(".")
        raise SourceError(f"The event log cannot be read: {cause}.")
