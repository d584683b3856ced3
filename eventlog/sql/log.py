"""One event log in one database: its queries with their holes filled, its transactions, and what
can be wrong with it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache, cached_property
from typing import TYPE_CHECKING

import msgspec

from eventlog.core.errors import InstallError
from eventlog.core.times import in_utc
from eventlog.sql.access import execute, fetch, in_text, make_durable, moment, transaction
from eventlog.sql.clocks import due_clock, zone_of
from eventlog.sql.dialect import dialect_of, log_holes, offers, statement
from eventlog.sql.findlog import place_log
from eventlog.sql.names import LogNames, no_log

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.sql.elements import TextClause

ALL = 2**62
"""A LIMIT that no log reaches."""


class Log:
    """The log `names` in the database behind `engine`. `clock` is SQL for the time in UTC, where it
    is not the database's.
    """

    def __init__(self, engine: Engine, names: LogNames, *, clock: str | None = None) -> None:
        self.engine = engine
        self._asked = names
        self.dialect = dialect_of(engine)
        self.name = names.whole
        self.zone = zone_of(names.clock)
        self._clock = clock or self.dialect.now
        self._kept_query = cache(self._make_query)

    @cached_property
    def names(self) -> LogNames:
        """Return the log's names; of one without a schema, with that in which it is: only a connection tells it."""
        if self._asked.schema is not None or not offers(self.dialect, "searched_schemas"):
            return self._asked
        with self.transaction() as connection:
            return place_log(connection, self._asked)

    @cached_property
    def _holes(self) -> dict[str, str]:
        holes = {hole: in_text(sql) for hole, sql in log_holes(self.dialect, self.names).items()}
        holes["log_text"] = self.dialect.literal(holes["log"])
        holes["number_text"] = self.dialect.literal(in_text(self.names.column("record_id")))
        return holes | {"now": self.dialect.now, "clock": self._clock}

    def query(self, name: str, **fragments: str) -> TextClause:
        """Make a query of log.sql; `fragments` names queries of that file for further holes, "" for none."""
        local = self._clock
        if self.zone is not None:
            # In logs that others fill a row is due by the time of some place, which changes with the seasons.
            local = due_clock(self.dialect, self._clock, self.zone, dt.datetime.now(dt.UTC))
        return self._kept_query(local, name, **fragments)

    def _make_query(self, local: str, name: str, **fragments: str) -> TextClause:
        from sqlalchemy import text

        holes = self._holes | {"local": local}
        parts = dict.fromkeys(fragments, "")
        for hole, part in fragments.items():
            if part:
                parts[hole] = statement(self.dialect, part, **holes)
        return text(statement(self.dialect, name, **holes, **parts))

    def utc(self, time: dt.datetime | str | None) -> str | None:
        if time is None:
            return None
        if self.zone is None:
            return str(time)
        return in_utc(str(time), self.zone)

    rows = staticmethod(fetch)
    execute = staticmethod(execute)

    def now(self, connection: Connection) -> dt.datetime:
        """Read the database's clock, in UTC."""
        now = connection.execute(self.query("clock_now")).scalar_one()
        if isinstance(now, dt.datetime):
            return now
        # SQLite has no type for times, and says a text.
        return dt.datetime.fromisoformat(str(now))

    def transaction(self, *, lone: bool = False) -> AbstractContextManager[Connection]:
        """Open a transaction on the log, or `lone` statements; raise SourceError if the database refuses."""
        return transaction(self.engine, f"The event log {self.name}", lone=lone, dialect=self.dialect)

    def make_durable(self, connection: Connection) -> None:
        """Make a transaction durable at commit, whatever the session's settings."""
        make_durable(connection, self.dialect)

    def moment(self) -> AbstractContextManager[Connection]:
        """Open a read-only transaction with one snapshot of all tables."""
        return moment(self.engine, f"The event log {self.name}")

    def check(self) -> None:
        """Raise InstallError if the log, a column or a state table is missing."""
        from sqlalchemy import inspect
        from sqlalchemy.exc import NoSuchTableError

        with transaction(self.engine, f"The event log {self.name}") as connection:
            inspector = inspect(connection)
            try:
                columns = inspector.get_columns(self.names.table, schema=self.names.schema)
            except NoSuchTableError as error:
                raise no_log(self.names) from error
            present = {column["name"].casefold() for column in columns}
            missing = [name for name in self.names.columns if name.casefold() not in present]
            if missing:
                message = f"The event log {self.name} has no column {', '.join(missing)}."
                hint = "A log has ten columns; add it, or say in `columns` what it is called."
                raise InstallError(message, hint=hint)
            # At once; then those that are no tables, or that SQLAlchemy leaves out, one by one.
            there = {name.casefold() for name in inspector.get_table_names(schema=self.names.schema)}
            for companion in self.names.companions.values():
                if companion.casefold() not in there and not inspector.has_table(companion, schema=self.names.schema):
                    message = f"The table {companion} beside the event log {self.name} is missing."
                    new = f"`eventlog install --log {self.name}` makes it for a log that has no such tables yet"
                    raise InstallError(message, hint=f"{new}; else restore it from a backup.")


def id_list(numbers: Sequence[int]) -> str:
    """Write numbers as the one parameter of queries in log.sql."""
    return msgspec.json.encode(numbers).decode()
