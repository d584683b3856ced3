"""What a full load publishes, how fast it may be, and its SQL.

RowRanges are kept back while too many rows wait in the log, for all jobs of a load together, and
once it is to end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from threading import Event, Lock
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, text
from sqlalchemy.sql.elements import TextClause

from eventlog.capture.column_sql import Row, row_holes
from eventlog.capture.plan import plan
from eventlog.core.errors import DataError
from eventlog.core.schema import Table
from eventlog.core.table_names import write_log_name
from eventlog.refresh import CHUNK_ROWS
from eventlog.refresh.key_order import KeyOrder
from eventlog.refresh.ranges import RangeState
from eventlog.sql.access import fetch, in_text
from eventlog.sql.dialect import Dialect, log_holes, offers, statement
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import Classes
from eventlog.tracked.registry import read_registry


class Load(Struct, frozen=True, kw_only=True):
    """What is to be published: a class under the name that the log has for it, the rows for which
    the conditions hold.

    `tracked` says that the class has triggers of this log; `when` is the condition that they have,
    `where` one more. `only` is the one output that gets them, if not all do.
    """

    table: Table
    called: str
    tracked: bool = False
    when: str | None = None
    where: str | None = None
    only: str = ""

    @property
    def mark(self) -> str:
        """Return the base of its marks' names."""
        return f"{self.called} for {self.only}" if self.only else self.called


class RefreshPace(Struct, frozen=True, kw_only=True):
    """How many rows a transaction writes, and how many may wait in the log when it begins; 0 is no
    bound.
    """

    chunk: int = CHUNK_ROWS
    backlog: int = 0


def loads(
    engine: Engine, names: LogNames, tables: Sequence[str], schema: str | None, where: str | None, only: str = ""
) -> list[Load]:
    """Plan the loads of classes by their names, for one output `only` if it is given.

    Raise InstallError where a table is missing or has no key.
    """
    wanted = []
    with engine.connect() as connection:
        options = {owner: tracked.options for owner, tracked in read_registry(connection, names).items()}
        classes = Classes(connection, schema)
        for named in classes.find_named(tables):
            table, asked = named, options.get(named.whole)
            # The key that its triggers write, which may not be the primary one.
            if asked is not None and asked.key:
                table = classes.one(named.whole, (), asked.key)
            plan(table, asked if table.whole_row else None)  # refuses a table without a key
            called = write_log_name(table.schema, table.name, names.schema)
            load = Load(table=table, called=called, where=where, only=only)
            if asked is not None:
                load = replace(load, tracked=True, when=asked.when)
            wanted.append(load)
    return wanted


LOOK_SECONDS: Final = 1.0
"""Seconds between two looks at a backlog that is too long."""


class Gate:
    """Who has entered may write one range and then leaves.

    `waiting` counts rows that wait, up to so many.
    """

    def __init__(
        self, pace: RefreshPace, waiting: Callable[[int], int], pause: Callable[[float], object] | None = None
    ) -> None:
        self._pace = pace
        self._waiting = waiting
        self._closed = Event()
        self._pause = pause or self._closed.wait
        self._turn = Lock()
        self._count = Lock()
        self._inside = 0

    def close(self) -> None:
        """Lets nobody enter from now on."""
        self._closed.set()

    def enter(self) -> bool:
        """Wait until few enough rows wait or are being written by others; return True if a range may be
        written.
        """
        most = self._pace.backlog
        with self._turn:
            while most and not self._closed.is_set():
                # Before the log is looked at, so that no range escapes both.
                writing = self._inside * self._pace.chunk
                if writing + self._waiting(most) < most:
                    break
                self._pause(LOOK_SECONDS)
            if self._closed.is_set():
                return False
            with self._count:
                self._inside += 1
        return True

    def leave(self) -> None:
        """Count written rows with those that wait."""
        with self._count:
            self._inside -= 1


Bounded = tuple[bool, bool]
"""Whether a range has a bound below, and one above."""


class Statements:
    """The SQL of one load. `keys` gives those of the next rows of a range, `bound` the one so many
    rows further on.
    """

    def __init__(self, dialect: Dialect, names: LogNames, load: Load) -> None:
        from sqlalchemy import DateTime, bindparam

        self._dialect = dialect
        self._order = KeyOrder(dialect, load.table, in_text(dialect.quote(load.table.name)))
        self._holes = fill_holes(dialect, names, load, self._order)
        self.count = self._make("refresh_count")
        # A query for each way in which a range can be bounded, below and above.
        ways = list(product((False, True), (False, True)))
        self.keys = {bounded: self._within("refresh_keys", bounded) for bounded in ways}
        self.bound = {bounded: self._within("refresh_bound", bounded) for bounded in ways}
        # Said to be a time: sqlite3 would take it for one by itself, and since Python 3.12 warns
        # that it will not for ever.
        self.row = self._make("refresh_row").bindparams(bindparam("time", type_=DateTime()))
        self.waiting = self._make("refresh_waiting")

    def next_keys(self, connection: Connection, state: RangeState, limit: int) -> list[str]:
        """Read the keys of the next rows of a range, in their order."""
        query = self.keys[bool(state.after), bool(state.upto)]
        rows = fetch(connection, query, {"limit": limit} | self._parameters(state, state.after))
        return [str(key) for (key,) in rows]

    def bounds(self, connection: Connection, state: RangeState, pieces: int, share: int) -> list[str]:
        """Find keys that cut the rest of a range into so many pieces, if there are such rows."""
        bounds: list[str] = []
        after = state.after
        while len(bounds) < pieces - 1:
            parameters = {"skip": share - 1, **self._parameters(state, after)}
            rows = fetch(connection, self.bound[bool(after), bool(state.upto)], parameters)
            if not rows:
                break
            key = str(rows[0][0])
            # Rows after some keys cannot be asked for; the range before such a one goes on behind
            # it.
            try:
                parameters_after = self._order.parameters(key)
            except DataError:
                break
            if key == after or not parameters_after:
                break
            after = key
            bounds.append(key)
        return bounds

    def write(self, connection: Connection, keys: list[str], same: Mapping[str, object]) -> None:
        """Writes a row for each key, in a list where the database takes one; `same` is what all
        rows have.
        """
        if ":keys" in self.row.text:
            connection.execute(self.row, {"keys": keys, **same})
        else:
            connection.execute(self.row, [{"key": key, **same} for key in keys])

    def prepare_session(self, connection: Connection) -> None:
        """Makes the texts of keys what triggers write, whatever the session has."""
        if offers(self._dialect, "refresh_session"):
            connection.exec_driver_sql(statement(self._dialect, "refresh_session"))

    def _parameters(self, state: RangeState, after: str) -> dict[str, Any]:
        parameters: dict[str, Any] = {}
        if after:
            parameters |= self._order.parameters(after)
        if state.upto:
            parameters |= self._order.parameters(state.upto, "u")
        return parameters

    def _within(self, query: str, bounded: Bounded) -> TextClause:
        below, above = bounded
        after = self._order.after if below else "(1 = 1)"
        upto = self._order.upto if above else "(1 = 1)"
        return self._make(query, after=after, upto=upto)

    def _make(self, query: str, **holes: str) -> TextClause:
        return text(statement(self._dialect, query, **self._holes | holes))


def fill_holes(dialect: Dialect, names: LogNames, load: Load, order: KeyOrder) -> dict[str, str]:
    """Fill the holes of the queries of a load."""
    table = load.table
    row = dialect.quote(table.name)
    conditions = [f"({condition})" for condition in (load.when, load.where) if condition]
    holes = {name: in_text(filling) for name, filling in log_holes(dialect, names).items()}
    holes |= row_holes(dialect, names) | {"now": in_text(dialect.now)}
    return holes | {
        "table": in_text(dialect.qualify(table.schema, table.name)),
        "row": in_text(row),
        "chosen": " AND ".join([order.filled, *map(in_text, conditions)]),
        "key": in_text(Row(dialect=dialect, alias=row).key(table.key_columns)),
        "columns": order.columns,
    }
