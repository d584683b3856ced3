"""The SQL of one load, its holes filled: how many rows there are, which keys come next, and the rows of the log."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.sql.elements import TextClause

from eventlog.admin.refresh.loads import Load
from eventlog.admin.refresh.ranges import Stand
from eventlog.core.errors import DataError
from eventlog.sql.access import fetched, in_text
from eventlog.sql.dialect import Dialect, log_holes, number_holes, offers, statement
from eventlog.sql.lookup import KeyOrder
from eventlog.sql.names import LogNames
from eventlog.sql.triggers.words import Row

Bounded = tuple[bool, bool]
"""Whether a range has a bound below, and one above."""


class Statements:
    """The SQL of one load. `keys` gives those of the next rows of a range, `bound` the one so many rows further on."""

    def __init__(self, dialect: Dialect, names: LogNames, load: Load) -> None:
        from sqlalchemy import DateTime, bindparam

        self._dialect = dialect
        self._order = KeyOrder(dialect, load.table, in_text(dialect.quoted(load.table.name)))
        self._holes = _holes(dialect, names, load, self._order)
        self.count = self._made("refresh_count")
        self.keys = {
            bounded: self._within("refresh_keys", bounded) for bounded in product((False, True), (False, True))
        }
        self.bound = {bounded: self._within("refresh_bound", bounded) for bounded in self.keys}
        # Said to be a time: sqlite3 would take it for one by itself, and since Python 3.12 it warns that it will not for ever.
        self.row = self._made("refresh_row").bindparams(bindparam("time", type_=DateTime()))
        self.waiting = self._made("refresh_waiting")

    def next_keys(self, connection: Connection, stand: Stand, limit: int) -> list[str]:
        """The keys of the next rows of a range, in their order."""
        found = fetched(connection, self.keys[_bounded(stand)], {"limit": limit} | self._parameters(stand))
        return [str(key) for (key,) in found]

    def bounds(self, connection: Connection, stand: Stand, pieces: int, share: int) -> list[str]:
        """Keys of rows that cut what is left of a range into so many pieces, as far as such rows are found."""
        found: list[str] = []
        after = stand.after
        while len(found) < pieces - 1:
            parameters = {"skip": share - 1, **self._parameters(stand, after)}
            rows = fetched(connection, self.bound[bool(after), bool(stand.upto)], parameters)
            if not rows or not self._can_bound(str(rows[0][0])) or str(rows[0][0]) == after:
                break
            after = str(rows[0][0])
            found.append(after)
        return found

    def write(self, connection: Connection, keys: list[str], same: Mapping[str, object]) -> None:
        """Writes a row for each key, in a list where the database takes one; `same` is what all rows have."""
        if ":keys" in self.row.text:
            connection.execute(self.row, {"keys": keys, **same})
        else:
            connection.execute(self.row, [{"key": key, **same} for key in keys])

    def settle(self, connection: Connection) -> None:
        """Makes the texts of keys what triggers write, whatever the session has."""
        if offers(self._dialect, "refresh_session"):
            connection.exec_driver_sql(statement(self._dialect, "refresh_session"))

    def _can_bound(self, key: str) -> bool:
        """Whether rows after a key can be asked for; where not, the range before it goes on behind it."""
        try:
            return bool(self._order.parameters(key))
        except DataError:
            return False

    def _parameters(self, stand: Stand, after: str | None = None) -> dict[str, Any]:
        below = stand.after if after is None else after
        parameters = self._order.parameters(below) if below else {}
        return parameters | (self._order.parameters(stand.upto, "u") if stand.upto else {})

    def _within(self, query: str, bounded: Bounded) -> TextClause:
        after = self._order.after if bounded[0] else "(1 = 1)"
        return self._made(query, after=after, upto=self._order.upto if bounded[1] else "(1 = 1)")

    def _made(self, query: str, **holes: str) -> TextClause:
        return text(statement(self._dialect, query, **self._holes | holes))


def _bounded(stand: Stand) -> Bounded:
    return bool(stand.after), bool(stand.upto)


def _holes(dialect: Dialect, names: LogNames, load: Load, order: KeyOrder) -> dict[str, str]:
    table = load.table
    row = dialect.quoted(table.name)
    conditions = [f"({condition})" for condition in (load.when, load.where) if condition]
    holes = {name: in_text(filling) for name, filling in log_holes(dialect, names).items()}
    holes |= {"now": in_text(dialect.now)} | number_holes(dialect, names)
    return holes | {
        "table": in_text(dialect.qualified(table.schema, table.name)),
        "row": in_text(row),
        "chosen": " AND ".join([order.filled, *map(in_text, conditions)]),
        "key": in_text(Row(dialect=dialect, alias=row).key(table.key_columns)),
        "columns": order.columns,
    }
