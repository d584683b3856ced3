"""A log that is read in bulk, stretch by stretch, by the queries of bulk.sql."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from eventlog.core.errors import SourceError
from eventlog.sql.access import in_our_words, in_text, session_statements
from eventlog.sql.connect import connect
from eventlog.sql.dialect import Dialect, dialect_of
from eventlog.sql.findlog import log_columns
from eventlog.sql.names import LogNames
from eventlog.sql.queries import log_holes, statement
from eventlog_spark.options import LogOptions
from eventlog_spark.snapshot import reader_name

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class NumberRange(Struct, frozen=True, kw_only=True):
    """Rows whose numbers lie between two numbers, both of them included, as one snapshot sees them."""

    first: int
    last: int
    snapshot: str | None = None


class BulkLog:
    """A log that is read in bulk, by the queries of bulk.sql."""

    def __init__(self, options: LogOptions) -> None:
        self.engine: Engine = connect(options.url)
        self.dialect: Dialect = dialect_of(self.engine)
        try:
            self.names: LogNames = log_columns(self.engine, options.names, options.columns)
        finally:
            self.engine.dispose()
        self._letters = options.status
        self._holes = log_holes(self.dialect, self.names)

    @property
    def copies(self) -> bool:
        """Whether rows come by COPY."""
        return self.engine.dialect.driver == self.dialect.copying_driver

    def query(self, name: str, **holes: object) -> str:
        """A query of bulk.sql as the driver gets it."""
        log_text = self.dialect.literal(self._holes["log"])
        letters = ", ".join(self.dialect.literal(letter) for letter in self._letters)
        chosen = statement(
            self.dialect, "chosen_letters" if letters else "chosen_all", **self._holes, letters=f"({letters})"
        )
        filling = {hole: str(value) for hole, value in holes.items()}
        return statement(self.dialect, name, **self._holes, chosen=chosen, log_text=log_text, **filling)

    @contextmanager
    def connection(self, snapshot: str | None = None) -> Iterator[Connection]:
        """A transaction that only reads, in the snapshot that somebody exported; its session ends with it."""
        with in_our_words(self.engine, f"The event log {self.names.table}"):
            try:
                with self.engine.connect() as connection:
                    self._begin(connection, snapshot)
                    yield connection
            finally:
                self.engine.dispose()

    def _begin(self, connection: Connection, snapshot: str | None) -> None:
        if self.copies:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if snapshot is not None:
            self._join(connection, snapshot)
        for setting in session_statements(self.dialect):
            connection.exec_driver_sql(setting)

    def numbers(self, name: str, **holes: object) -> list[int]:
        """The numbers that a query of bulk.sql finds, as they stand now."""
        with self.connection() as connection:
            return [int(row[0]) for row in self.rows(connection, name, **holes)]

    def rows(self, connection: Connection, name: str, **holes: object) -> Sequence[tuple[Any, ...]]:
        """What a query of bulk.sql finds."""
        from sqlalchemy import text

        return [tuple(row) for row in connection.execute(text(in_text(self.query(name, **holes))))]

    def _join(self, connection: Connection, snapshot: str) -> None:
        """Sees what the one who exported the snapshot sees; the name tells its holder that somebody reads."""
        from sqlalchemy.exc import DBAPIError

        try:
            connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT {self.dialect.literal(snapshot)}")
        except DBAPIError as error:
            hint = "Read again; with a larger option `patience` it is kept longer for readers that come late."
            raise SourceError(f"The snapshot {snapshot} of the log has ended.", hint=hint, may_pass=False) from error
        name = self.dialect.literal(reader_name(snapshot))
        connection.exec_driver_sql(f"SELECT set_config('application_name', {name}, false)")


def stretches(first: int, last: int, count: int, snapshot: str | None = None) -> list[NumberRange]:
    """Up to `count` stretches of numbers, equally wide, that cover all from the first to the last."""
    width = max(1, -(-(last - first + 1) // count))
    return [
        NumberRange(first=start, last=min(start + width - 1, last), snapshot=snapshot)
        for start in range(first, last + 1, width)
    ]
