"""Random transactions of two tables, which every database takes: what they had, and what readers of whole rows must be told.

Nested savepoints, keys that change, NULLs, long values, statements of several rows, what is refused and what is rolled back; TRUNCATE
where triggers see it. `Told` is what was told or must be told of one row, however it came: from the tables, from a database's
own log, out of messages or change tables.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from random import Random
from typing import Any

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.sql.dialect import dialect_of

TABLES = (
    "CREATE TABLE item (id INTEGER NOT NULL PRIMARY KEY, name TEXT, note TEXT, amount NUMERIC(12, 2), born DATE, done BOOLEAN)",
    "CREATE TABLE pair (a INTEGER NOT NULL, b VARCHAR(40) NOT NULL, v INTEGER, PRIMARY KEY (a, b))",
)
KEYS = {"item": ("id",), "pair": ("a", "b")}
TYPES: dict[str, Any] = {
    **dict.fromkeys(("id", "a", "v"), int),
    **dict.fromkeys(("name", "note", "b", "born"), str),
    "amount": Decimal,
    "done": lambda said: said in ("1", "True"),
}
LONG = 2000
"""Characters from which on PostgreSQL keeps a value in a table of its own (TOAST); an update need not look at it there."""

ODD = ["", "a", "b", "'q\"\\+=,;", "{ü}\n\t", " x "]
MANY = "INSERT INTO item VALUES (:id, :name, NULL, :id, :born, NULL), (:id + 1, :name, NULL, 1, :born, NULL) "
MET = {"mysql": "ON DUPLICATE KEY UPDATE name = :name, done = :done"}
ELSE_MET = "ON CONFLICT (id) DO UPDATE SET name = :name, done = :done"


class Had(StrEnum):
    """What a run must have had."""

    NESTED = "a change inside of two savepoints"
    RELEASED = "a savepoint with changes that was released"
    TAKEN_BACK = "a savepoint with changes that was rolled back to"
    ROLLED_BACK = "a transaction with changes that was rolled back"
    REFUSED = "a statement that the database refused"
    MANY_ROWS = "a statement that changed several rows"
    KEY_CHANGED = "a change of a key"
    TRUNCATED = "a TRUNCATE"
    SEVERAL_TABLES = "a transaction with changes of several tables"
    NULLS = "a row with NULLs"
    LONG_CHANGED = "a row with a long value that is new"
    LONG_KEPT = "an update that left a long value as it was"


STATEMENTS: tuple[tuple[float, str, Had | None], ...] = (
    (8, "INSERT INTO item VALUES (:id, :name, :note, :amount, :born, :done)", None),
    (2, MANY, None),
    (5, "UPDATE item SET name = :name, done = :done WHERE id = :id", None),
    (4, "UPDATE item SET note = :note, amount = :amount WHERE id >= :id", None),
    (1, "UPDATE item SET name = name, note = note", None),
    (4, "UPDATE item SET id = :other WHERE id = :id AND id <> :other", Had.KEY_CHANGED),
    (1, "UPDATE item SET id = id + 50 WHERE id BETWEEN :id AND :id + 4", Had.KEY_CHANGED),
    (3, "DELETE FROM item WHERE id = :id", None),
    (1, "DELETE FROM item WHERE id > :id", None),
    (6, "INSERT INTO pair VALUES (:id, coalesce(:name, 'n'), :other)", None),
    (2, "UPDATE pair SET v = :other WHERE a < :id", None),
    (3, "UPDATE pair SET b = coalesce(:name, 'n'), v = NULL WHERE a = :id AND v = :other", Had.KEY_CHANGED),
    (2, "DELETE FROM pair WHERE a = :id", None),
)
TRUNCATES: tuple[tuple[float, str, Had | None], ...] = (
    (0.3, "TRUNCATE item", Had.TRUNCATED),
    (0.2, "TRUNCATE item, pair", Had.TRUNCATED),
)

Row = dict[str, Any]
Told = tuple[str, str, Any, Any]
"""Table, operation, row before and after as sorted pairs; a delete has the row that went in the place of the one after."""


class RandomWork:
    """Does transactions; `watched` says that it looks at the tables after each statement, and so knows what must be told."""

    def __init__(self, engine: Engine, chance: Random, *, truncates: bool = False, watched: bool = False) -> None:
        self.had: Counter[Had] = Counter()
        self.told: list[list[Told]] = []
        """What each transaction that was committed must be told as, where the work is watched."""
        self.engine = engine
        self._chance = chance
        self._watched = watched
        self._statements = [*STATEMENTS, *(TRUNCATES if truncates else ())]

    def transact(self) -> None:
        """Run one transaction with nested savepoints; a few are rolled back."""
        had: Counter[Had] = Counter()
        told: list[Told] = []
        changed = 0
        before: list[
            tuple[int, int]
        ] = []  # at each open savepoint: how many rows had changed, and how much is to be told
        with self.engine.connect() as connection:
            if dialect_of(self.engine).embedded:
                connection.exec_driver_sql("BEGIN")  # else releasing the first savepoint would end the transaction
            for _ in range(self._chance.randint(1, 9)):
                what = self._chance.random()
                if what < 0.2:
                    connection.execute(text(f"SAVEPOINT s{len(before)}"))
                    before.append((changed, len(told)))
                elif what < 0.35 and before:
                    rows, length = before.pop()
                    released = self._chance.random() < 0.5
                    how = "RELEASE SAVEPOINT" if released else "ROLLBACK TO SAVEPOINT"
                    connection.execute(text(f"{how} s{len(before)}"))
                    had[Had.RELEASED if released else Had.TAKEN_BACK] += changed > rows
                    told = told if released else told[:length]
                else:
                    rows, found = self._change(connection, had)
                    changed += rows
                    told += found
                    had[Had.NESTED] += rows > 0 and len(before) > 1
            if self._chance.random() < 0.1:
                connection.rollback()
                self.had[Had.ROLLED_BACK] += changed > 0
                return
            connection.commit()
        self.had.update(had)
        self.told.append(told)

    def _change(self, connection: Connection, had: Counter[Had]) -> tuple[int, list[Told]]:
        """Run one statement; return how many rows it changed, and how.

        One the database refuses is undone by its own savepoint.
        """
        weights = [weight for weight, _, _ in self._statements]
        _, statement, what = self._chance.choices(self._statements, weights)[0]
        if statement == MANY:
            statement += MET.get(dialect_of(self.engine).name, ELSE_MET)
        stood = self._standing(connection)
        connection.execute(text("SAVEPOINT mine"))
        try:
            rows = connection.execute(text(statement), values(self._chance)).rowcount
        except DBAPIError:
            connection.execute(text("ROLLBACK TO SAVEPOINT mine"))
            had[Had.REFUSED] += 1
            return 0, []
        had[Had.MANY_ROWS] += rows > 1
        if what is not None:
            had[what] += rows != 0  # a TRUNCATE says -1
        return max(0, rows), difference(stood, self._standing(connection))

    def _standing(self, connection: Connection) -> dict[tuple[str, Any], Row]:
        return state(connection) if self._watched else {}


def state(connection: Connection) -> dict[tuple[str, Any], Row]:
    """Read the rows of both tables, by table and key."""
    found = {}
    for table in KEYS:
        for row in connection.execute(text(f"SELECT * FROM {table}")).mappings():
            one = typed(dict(row))
            found[table, keyed(table, one)] = one
    return found


def values(chance: Random) -> dict[str, Any]:
    return {
        "id": chance.randint(1, 12),
        "other": chance.randint(1, 14),
        "name": chance.choice([*ODD, None]),
        "note": chance.choice([None, "short", chance.randbytes(3000).hex()]),
        "amount": chance.choice([None, "0.10", "-12.5", f"{chance.randint(0, 10**9) / 100:.2f}"]),
        "born": chance.choice([None, "2024-02-29", "1970-01-01"]),
        "done": chance.choice([None, True, False]),
    }


def difference(before: dict[tuple[str, Any], Row], after: dict[tuple[str, Any], Row]) -> list[Told]:
    """Return a statement's changes; a changed key is a delete and an insert."""
    found: list[Told] = []
    for place in before.keys() | after.keys():
        found += told_of(place[0], before.get(place), after.get(place))
    return found


def told_of(table: str, before: Row | None, after: Row | None) -> list[Told]:
    """Return the changes to expect of a row, from its state before and after."""
    if before is None and after is not None:
        return [(table, "INSERT", None, pairs(after))]
    if after is None and before is not None:
        return [(table, "DELETE", None, pairs(before))]
    if before is None or after is None or before == after:
        return []
    return [(table, "UPDATE", pairs(before), pairs(after))]


def had_in(transactions: Iterable[Sequence[Told]]) -> Counter[Had]:
    """Count the features of rows in the expected changes."""
    had: Counter[Had] = Counter()
    for told in transactions:
        had[Had.SEVERAL_TABLES] += len({table for table, *_ in told}) > 1
        for _, operation, before, after in told:
            former, latter = dict(before or ()), dict(after)
            if operation == "DELETE":
                continue
            had[Had.NULLS] += None in latter.values()
            long = len(latter.get("note") or "") > LONG
            had[Had.LONG_KEPT] += long and former.get("note") == latter["note"]
            had[Had.LONG_CHANGED] += long and former.get("note") != latter["note"]
    return had


def by_object(changes: Iterable[Told]) -> dict[Any, list[Told]]:
    """Group changes by object, in order; a statement's order over several rows is undefined."""
    found: dict[Any, list[Told]] = defaultdict(list)
    for one in changes:
        found[one[0], keyed(one[0], dict(one[3]))].append(one)
    return dict(found)


def typed(row: Mapping[str, Any]) -> Row:
    """Convert the row's values to comparable types."""
    return {name: None if value is None else TYPES[name](str(value)) for name, value in row.items()}


def pairs(row: Row | None) -> Any:
    return None if row is None else tuple(sorted(row.items()))


def keyed(table: str, row: Row) -> Any:
    return tuple(row[name] for name in KEYS[table])
