"""The full load: writes rows into the log which ask the publisher to tell every row of a table as it is.

Law: a row that is there when its stretch is read, and is not changed afterwards, is told as it is; what changes later is
logged by its own trigger, behind. The place reached is marked in the transaction that writes the stretch, so a load that
was broken off goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.errors import DataError, SourceError, UsageError, shortened
from eventlog.marks import Marks
from eventlog.model import REFRESH, Kind, Status
from eventlog.schema import Table
from eventlog.sql.access import fetched, in_text
from eventlog.sql.dialect import Dialect
from eventlog.sql.keyorder import KeyOrder
from eventlog.sql.log import Log
from eventlog.sql.queries import log_holes, number_holes, statement
from eventlog.sql.triggers.words import Row

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.sql.elements import TextClause

    from eventlog.sql.names import LogNames

CHUNK: Final = 10_000
"""Rows of a transaction, unless somebody says otherwise."""

PATIENCE: Final = 1.0
"""Seconds between two looks at a backlog that is too long."""


class Load(Struct, frozen=True, kw_only=True):
    """What is to be told: a class under the name that the log has for it, the rows for which the conditions hold.

    `tracked` says that the class has triggers of this log; `when` is the condition that they have, `where` one more.
    """

    table: Table
    called: str
    tracked: bool = False
    when: str | None = None
    where: str | None = None


class Pace(Struct, frozen=True, kw_only=True):
    """How many rows a transaction writes, and how many may wait in the log when it begins; 0 is no bound."""

    chunk: int = CHUNK
    backlog: int = 0


class Stand(Struct, frozen=True, kw_only=True):
    """How far a load is: the key of the last row written, the number of rows, and how many there were at the start."""

    where: str | None = None
    after: str = ""
    rows: int = 0
    total: int = 0


def loads(engine: Engine, names: LogNames, tables: Sequence[str], schema: str | None, where: str | None) -> list[Load]:
    """The loads of classes by their names; InstallError where a table is missing or has no key."""
    from eventlog.sql.reflect import reflect
    from eventlog.sql.triggers import installed, plan
    from eventlog.sql.triggers.clauses import logged_name

    found = []
    with engine.connect() as connection:
        options = {trigger.marker.table: trigger.marker.options for trigger in installed(connection, names)}
        for table in reflect(connection, tables, schema):
            asked = options.get(f"{table.schema}.{table.name}" if table.schema else table.name)
            found.append(
                Load(
                    table=table,
                    called=logged_name(plan(table), names),
                    tracked=asked is not None,
                    when=asked.when if asked is not None else None,
                    where=where,
                )
            )
    return found


class Refresh:
    """A full load of one class, which somebody runs step by step. `pause` waits so many seconds."""

    def __init__(
        self, log: Log, load: Load, pace: Pace | None = None, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._log = log
        self._load = load
        self._pace = pace or Pace()
        self._pause = pause
        self._marks = Marks(log)
        self._mark = f"refresh: {load.called}"[:200]
        self._sql = Statements(log.dialect, log.names, load)

    def begin(self, *, again: bool = False) -> Stand:
        """Where the load goes on: behind what was written when it was broken off, unless it is to begin `again`."""
        with self._log.transaction() as connection:
            mark = None if again else self._marks.get(connection, self._mark)
        stand = None if mark is None else _read(mark, self._mark)
        if stand is not None and stand.where == self._load.where:
            return stand
        return Stand(where=self._load.where, total=self._count())

    def steps(self, stand: Stand) -> Iterator[Stand]:
        """Writes stretch after stretch, and says after each how far the load is; the mark goes with the last one."""
        more = True
        while more:
            self._wait()
            with self._log.transaction() as connection:
                stand, more = self._stretch(connection, stand)
            yield stand

    def _stretch(self, connection: Connection, stand: Stand) -> tuple[Stand, bool]:
        sql = self._sql
        sql.settle(connection)
        keys = self._keys(connection, stand)
        more = len(keys) == self._pace.chunk
        if keys and keys[-1] == stand.after:
            problem = f"The row {shortened(keys[-1])} of {self._load.table.name} comes after itself."
            raise DataError(problem, hint="Leave that row out with --where.")
        distinct = dict.fromkeys(keys)  # a view may have several rows of one object
        if distinct:
            sql.write(connection, list(distinct), self._columns(connection))
            stand = replace(stand, after=keys[-1], rows=stand.rows + len(keys))
        if more:
            self._marks.set(connection, self._mark, msgspec.json.encode(stand).decode())
        else:
            self._marks.clear(connection, self._mark)
        return stand, more

    def _columns(self, connection: Connection) -> dict[str, object]:
        """What all rows of a stretch have; as parameters, because PyMySQL sends many rows at once only then."""
        now = connection.execute(self._log.query("clock_now")).scalar_one()
        kind, status = int(Kind.INSERT_ROW_BACK), Status.NEW.value
        return {"status": status, "kind": kind, "time": now, "perpetrator": REFRESH, "called": self._load.called}

    def _keys(self, connection: Connection, stand: Stand) -> list[str]:
        sql, limit = self._sql, {"limit": self._pace.chunk}
        if not stand.after:
            found = fetched(connection, sql.first, limit)
        else:
            found = fetched(connection, sql.next, limit | sql.order.parameters(stand.after))
        return [str(key) for (key,) in found]

    def _count(self) -> int:
        try:
            with self._log.transaction() as connection:
                self._sql.settle(connection)
                return int(connection.execute(self._sql.count).scalar_one())
        except SourceError as error:
            if error.may_pass or self._load.where is None:
                raise
            problem = f"The condition {self._load.where!r} cannot be asked of {self._load.table.name}"
            said = str(getattr(error.__cause__, "orig", error)).partition("\n")[0].rstrip(".")
            raise UsageError(f"{problem}: {said}.", hint="Write it with the names of the table's columns.") from None

    def _wait(self) -> None:
        """Returns when fewer rows wait than may, so that what changes meanwhile is not told much later for our sake."""
        most = self._pace.backlog
        while most and self._waiting(most) >= most:
            self._pause(PATIENCE)

    def _waiting(self, most: int) -> int:
        with self._log.transaction(lone=True) as connection:
            return int(connection.execute(self._sql.waiting, {"limit": most}).scalar_one())


class Statements:
    """The SQL of one load, its holes filled."""

    def __init__(self, dialect: Dialect, names: LogNames, load: Load) -> None:
        from sqlalchemy import text

        table = load.table
        row = dialect.quoted(table.name)
        self._dialect = dialect
        self.order = KeyOrder(dialect, table, in_text(row))
        conditions = [f"({condition})" for condition in (load.when, load.where) if condition]
        holes = {
            "table": in_text(dialect.qualified(table.schema, table.name)),
            "row": in_text(row),
            "chosen": " AND ".join([self.order.filled, *map(in_text, conditions)]),
            "key": in_text(Row(dialect=dialect, alias=row).key(table.key_columns)),
            "columns": self.order.columns,
        }
        own = {name: in_text(filling) for name, filling in log_holes(dialect, names).items()}
        own |= {"now": in_text(dialect.now)} | number_holes(dialect, names)

        def made(query: str, **others: str) -> TextClause:
            return text(statement(dialect, query, **own | holes | others))

        self.count = made("refresh_count")
        self.first = made("refresh_keys", after="(1 = 1)")
        self.next = made("refresh_keys", after=self.order.after)
        self.row = made("refresh_row")
        self.waiting = made("refresh_waiting")

    def write(self, connection: Connection, keys: list[str], same: Mapping[str, object]) -> None:
        """Writes a row for each key, in a list where the database takes one; `same` is what all rows have."""
        if ":keys" in self.row.text:
            connection.execute(self.row, {"keys": keys, **same})
        else:
            connection.execute(self.row, [{"key": key, **same} for key in keys])

    def settle(self, connection: Connection) -> None:
        """Makes the texts of keys what triggers write, whatever the session has."""
        setting = statement(self._dialect, "refresh_session")
        if setting:
            connection.exec_driver_sql(setting)


def _read(mark: str, name: str) -> Stand:
    try:
        return msgspec.json.decode(mark, type=Stand)
    except msgspec.DecodeError as error:
        raise DataError(f"The mark {name!r} cannot be read: {error}.", hint="Begin anew with --again.") from None
