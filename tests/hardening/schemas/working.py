"""Random work on any tables, found out by asking the database: what columns, keys and references they have.

Several sessions have transactions open at the same time. What the database refuses is rolled back, to a savepoint or
altogether; so is some of what it takes.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError, InternalError

from tests.hardening.schemas.replaying import Shape

NUMBERS = ("0", "1", "2", "3", "7", "11")
WORDS = ("a", "B", "b c", "O''Neil", "<&>", "ä☃", "")
KEYS = ("1", "2", "3", "4", "5", "6", "7", "8")
VALUES: dict[str, tuple[str, ...]] = {
    "INT": NUMBERS,
    "SMALLINT": NUMBERS,
    "BIGINT": ("0", "-9223372036854775808", "9223372036854775807", "18446744073709551615"),
    "NUMERIC": ("1.50", "-2.00", "0.00", "7.25"),
    "DECIMAL": ("1.50", "-2.00", "0.00", "7.25"),
    "BOOL": ("true", "false"),
    "TINYINT": ("0", "1"),
    "DOUBLE": ("1.5", "-0.25", "5", "100000", "0"),
    "DATETIME": ("1969-07-20 20:17:40", "9999-12-31 23:59:59.999999", "1000-01-01 00:00:00", "2005-05-24 01:02:03.40"),
    "TIMESTAMP": ("1969-07-20 20:17:40", "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00", "2005-05-24 01:02:03.40"),
    "TIME": ("00:00:00", "23:59:59.999999", "07:08:09.5"),
    "CHAR": ("a", "ab ", "abc"),
    "ENUM": ("G", "PG", "R"),
    "SET": ("a", "a,c", ""),
    "DATE": ("1969-07-20", "1996-07-04", "2005-05-24", "1948-12-08"),
    "BYTEA": ("\\x0001ff", "\\x", "\\xdeadbeef"),
    "BLOB": ("a", "", "☃b"),
    "JSON": ('{{"a": 1}}', "[1, null]", '"x"'),
    "UUID": ("00000000-0000-0000-0000-000000000001", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "ARRAY": ("{{a,b}}", "{{}}", "{{NULL,c}}"),
    "YEAR": ("1969", "2005"),
    "RATING": ("G", "PG", "R"),
    "NULL": ("(a,)", "(,)", "(a,b)"),
}
_ROLLED_BACK = (1205, 1213)
"""Errors after which MariaDB and MySQL may have ended the transaction: somebody else held a lock."""

DEFERRABLE = ("seat", "ticket")
"""Tables whose keys are looked at when the transaction ends."""

NAMED = {"released": "YEAR", "told": "JSON"}
"""Columns of which databases tell the type beneath: of a domain, and MariaDB of JSON."""


@dataclass(frozen=True)
class Reference:
    """A foreign key: columns, the other table, and its columns."""

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]


@dataclass(frozen=True)
class Worked:
    """A table, what work needs to know of it, and whether its keys may change places within a transaction."""

    shape: Shape
    kinds: dict[str, str]
    nullable: frozenset[str]
    computed: frozenset[str]
    references: tuple[Reference, ...]
    deferrable: bool = False

    @property
    def name(self) -> str:
        return self.shape.name

    @property
    def given(self) -> list[str]:
        """The columns that somebody may write."""
        return [name for name in self.kinds if name not in self.computed]


def looked_at(engine: Engine) -> list[Worked]:
    """The tables of a database as they are, without eventlog's and without partitions."""
    ask = inspect(engine)
    with engine.connect() as connection:
        parts = set[str]()
        if engine.dialect.name == "postgresql":
            parts = set(connection.execute(text("SELECT relname FROM pg_class WHERE relispartition")).scalars())
    names = [name for name in sorted(ask.get_table_names()) if not name.startswith("event_log") and name not in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLAlchemy knows no composite types
        return [_worked(ask, name) for name in names]


def _worked(ask: Any, name: str) -> Worked:
    columns = ask.get_columns(name)
    key = tuple(ask.get_pk_constraint(name)["constrained_columns"])
    references = tuple(
        Reference(tuple(one["constrained_columns"]), one["referred_table"], tuple(one["referred_columns"]))
        for one in ask.get_foreign_keys(name)
    )
    kinds = {one["name"]: _kind(one) for one in columns}
    parent = references[0] if not key and references else None
    shape = Shape(
        name=name,
        columns=tuple(kinds.items()),
        key=key,
        parent=parent.table if parent else None,
        parent_key=parent.columns if parent else (),
    )
    return Worked(
        shape=shape,
        kinds=kinds,
        nullable=frozenset(one["name"] for one in columns if one["nullable"]),
        computed=frozenset(one["name"] for one in columns if one.get("computed")),
        references=references,
        deferrable=name in DEFERRABLE,
    )


def _kind(column: Any) -> str:
    if column["name"] in NAMED:
        return NAMED[column["name"]]
    if getattr(column["type"], "name", None) == "rating":
        return "RATING"
    return type(column["type"]).__name__.upper()


class Session:
    """One who works: a connection, a transaction on it that is open or not, and dice."""

    def __init__(self, engine: Engine, tables: list[Worked], seed: int) -> None:
        self.engine, self.tables, self.dice = engine, tables, random.Random(seed)
        self.by_name = {one.name: one for one in tables}
        self.database = "mysql" if engine.dialect.name == "mariadb" else engine.dialect.name
        self.connection: Connection | None = None
        self.done: list[str] = []
        """What was done and not refused, for whoever looks for a fault."""

    def step(self) -> None:
        """One thing of a transaction: its beginning, a statement, or its end."""
        if self.connection is None:
            self._begin()
        elif self.dice.random() < 0.25:
            self.end(commit=self.dice.random() < 0.85)
        else:
            self._try(self.dice.choice(self._work()))

    @property
    def keeps_out(self) -> bool:
        """Whether a publisher or a full load would wait for the transaction that is open, and in this thread for ever.

        A table that was truncated is locked. On MySQL so is the end of the log, after a statement that failed.
        """
        begun = max((place for place, one in enumerate(self.done) if one == "BEGIN"), default=0)
        locking = ("TRUNCATE", "refused") if self.database == "mysql" else ("TRUNCATE",)
        return self.connection is not None and any(one.startswith(locking) for one in self.done[begun:])

    def fill(self) -> None:
        """Some rows in every table, those that others refer to first, as far as the database takes them."""
        for _ in range(3):
            for table in self.tables:
                self._begin()
                self._try(lambda table=table: self._insert(table))  # type: ignore[misc]  # mypy does not know its type
                self.end(commit=True)

    def _begin(self) -> None:
        connection = self.connection = self.engine.connect()
        self.done.append("BEGIN")
        if self.database == "postgresql":
            if self.dice.random() < 0.1:
                connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
            connection.execute(text("SET LOCAL lock_timeout = '50ms'"))
        elif self.database == "mysql":
            # What is locked is refused, at once where the server can: the one who would let go is in this thread too.
            least = 0 if connection.dialect.is_mariadb else 1  # type: ignore[attr-defined]  # dialects of MySQL have it
            connection.execute(text(f"SET innodb_lock_wait_timeout = {least}"))
            if self.dice.random() < 0.5:
                connection.execute(text("SET TRANSACTION ISOLATION LEVEL READ COMMITTED"))
        elif self.database == "sqlite":
            connection.execute(text("PRAGMA foreign_keys = ON"))

    def end(self, *, commit: bool) -> None:
        """Ends the transaction, if there is one."""
        if self.connection is None:
            return
        try:
            (self.connection.commit if commit else self.connection.rollback)()
            self.done.append("COMMIT" if commit else "ROLLBACK")
        except DBAPIError:
            self.connection.rollback()
            self.done.append("ROLLBACK (refused)")
        self.connection.close()
        self.connection = None

    def _try(self, work: Callable[[], Iterator[str]]) -> None:
        """Does it behind a savepoint; what is refused, and some of what is not, is rolled back to there.

        SQLite's driver begins transactions by itself and too late for savepoints; there a statement is refused by itself.
        """
        connection = self.connection
        assert connection is not None
        try:
            with nullcontext() if self.database == "sqlite" else connection.begin_nested() as point:
                for statement in work():
                    self._run(connection, statement)
                if point is not None and self.dice.random() < 0.1:
                    point.rollback()
                    self.done.append("ROLLBACK TO")
        except DBAPIError as error:
            self.done.append(f"refused: {str(error.orig).splitlines()[0]}")
            if self.database == "mysql" and getattr(error.orig, "args", (0,))[0] in _ROLLED_BACK:
                with suppress(DBAPIError, InternalError):
                    self.end(commit=False)

    def _run(self, connection: Connection, statement: str) -> None:
        self.done.append(statement)
        if statement.startswith("COPY"):
            _copy(connection, *statement.split("\n", 1))
            return
        connection.execute(text(statement.replace(":", "\\:")))

    def _work(self) -> list[Callable[[], Iterator[str]]]:
        common: list[Callable[[], Iterator[str]]] = [
            *[self._insert] * 6,
            *[self._update] * 4,
            *[self._rekey] * 2,
            *[self._delete] * 2,
            self._move,
        ]
        if self.database == "postgresql":
            late = [self._swap, self._replace_deferred, self._replace_parent]
            return [*common, self._truncate, self._copy, self._merge, self._upsert, self._in_one, *late]
        return [*common, self._upsert, *([] if self.database == "sqlite" else [self._replace])]

    def _table(self, *, keyed: bool = True) -> Worked:
        return self.dice.choice([one for one in self.tables if one.shape.key or not keyed])

    def _row(self, table: Worked) -> dict[str, str]:
        """A row as SQL texts, whose references lead to keys that may be there."""
        row = {name: self._value(table, name) for name in table.given}
        for reference in table.references:
            value = self._key_of(reference.table, reference.referred)
            empty = self.dice.random() < 0.25 and all(
                name in table.nullable and name not in table.shape.key for name in reference.columns
            )
            for name, other in zip(reference.columns, value, strict=True):
                row[name] = "NULL" if empty else other
        return row

    def _key_of(self, table: str, columns: tuple[str, ...]) -> list[str]:
        connection = self.connection
        assert connection is not None
        found = connection.execute(text(f"SELECT {', '.join(columns)} FROM {table}")).all()
        chosen = self.dice.choice(found) if found else ["1"] * len(columns)
        return [_literal(str(value)) for value in chosen]

    def _value(self, table: Worked, name: str) -> str:
        if name in table.nullable and self.dice.random() < 0.2:
            return "NULL"
        kind = table.kinds[name]
        pool = next((values for start, values in VALUES.items() if kind.startswith(start)), WORDS)
        if name in table.shape.key and kind != "DATE":
            pool = KEYS
        return f"'{self.dice.choice(pool)}'".replace("{{", "{").replace("}}", "}")

    def _where(self, table: Worked) -> str:
        """Some rows: all, or some by the first column of the key or of the row."""
        column = (table.shape.key or tuple(table.given))[0]
        chosen = self.dice.random()
        if chosen < 0.15:
            return "1 = 1"
        if chosen < 0.4:
            return f"{column} > '{self.dice.choice(KEYS)}'"
        return f"{column} = '{self.dice.choice(KEYS)}'"

    def _insert(self, table: Worked | None = None) -> Iterator[str]:
        table = table or self._table(keyed=False)
        rows = [self._row(table) for _ in range(self.dice.choice((1, 1, 2, 3)))]
        values = ", ".join(f"({', '.join(row.values())})" for row in rows)
        yield f"INSERT INTO {table.name} ({', '.join(rows[0])}) VALUES {values}"

    def _update(self) -> Iterator[str]:
        table = self._table(keyed=False)
        row = self._row(table)
        names = [name for name in row if name not in table.shape.key]
        if names:
            some = self.dice.sample(names, self.dice.randint(1, len(names)))
            yield f"UPDATE {table.name} SET {', '.join(f'{name} = {row[name]}' for name in some)} WHERE {self._where(table)}"

    def _rekey(self) -> Iterator[str]:
        table = self._table()
        column = self.dice.choice(table.shape.key)
        extra = next((name for name in table.given if name not in table.shape.key), None)
        more = f", {extra} = {self._row(table)[extra]}" if extra and self.dice.random() < 0.4 else ""
        yield f"UPDATE {table.name} SET {column} = {self._value(table, column)}{more} WHERE {self._where(table)}"

    def _move(self) -> Iterator[str]:
        """All keys at once, to others that are free."""
        table = self._table()
        column = table.shape.key[0]
        if table.kinds[column].startswith("INT"):
            by = self.dice.choice((10, -10, 1, -1))
            yield f"UPDATE {table.name} SET {column} = {column} + {by} WHERE {self._where(table)}"

    def _delete(self) -> Iterator[str]:
        table = self._table(keyed=False)
        yield f"DELETE FROM {table.name} WHERE {self._where(table)}"

    def _truncate(self) -> Iterator[str]:
        if self.dice.random() < 0.3:
            yield f"TRUNCATE {self._table(keyed=False).name} CASCADE"

    def _copy(self) -> Iterator[str]:
        table = self._table(keyed=False)
        rows = [self._row(table) for _ in range(3)]
        lines = ["\t".join("\\N" if value == "NULL" else _plain(value) for value in row.values()) for row in rows]
        yield f"COPY {table.name} ({', '.join(rows[0])}) FROM STDIN\n" + "".join(f"{line}\n" for line in lines)

    def _merge(self) -> Iterator[str]:
        """Updates and deletes rows, and inserts one where there is none."""
        table = self._table()
        row = self._row(table)
        key = " AND ".join(f"t.{name} = {row[name]}" for name in table.shape.key[1:])
        first = table.shape.key[0]
        names = [name for name in row if name not in table.shape.key]
        change = f"UPDATE SET {names[0]} = {row[names[0]]}" if names else "DO NOTHING"
        yield (
            f"MERGE INTO {table.name} AS t USING (VALUES ('1'), ('2'), ('3'), ('4')) AS s (k)"
            f" ON t.{first}::text = s.k{' AND ' + key if key else ''}"
            f" WHEN MATCHED AND s.k = '{self.dice.choice(KEYS[:4])}' THEN DELETE WHEN MATCHED THEN {change}"
            f" WHEN NOT MATCHED AND s.k = '{self.dice.choice(KEYS[:4])}'"
            f" THEN INSERT ({', '.join(row)}) VALUES ({', '.join(row.values())})"
        )

    def _upsert(self) -> Iterator[str]:
        table = self._table()
        row = self._row(table)
        names = [name for name in row if name not in table.shape.key]
        change = f"UPDATE SET {names[0]} = {row[names[0]]}" if names else "NOTHING"
        if self.database == "mysql":
            same = names[0] if names else table.shape.key[0]
            yield (
                f"INSERT INTO {table.name} ({', '.join(row)}) VALUES ({', '.join(row.values())})"
                f" ON DUPLICATE KEY UPDATE {same} = {row[same]}"
            )
        elif not table.deferrable:
            yield (
                f"INSERT INTO {table.name} ({', '.join(row)}) VALUES ({', '.join(row.values())})"
                f" ON CONFLICT ({', '.join(table.shape.key)}) DO {change}"
            )

    def _replace(self) -> Iterator[str]:
        """A row goes, if there is one, and comes anew."""
        table = self._table()
        row = self._row(table)
        yield f"REPLACE INTO {table.name} ({', '.join(row)}) VALUES ({', '.join(row.values())})"

    def _swap(self) -> Iterator[str]:
        """Two keys change places in one statement, where the database looks at them at its end."""
        name = self.dice.choice(DEFERRABLE)
        low, high = self.dice.choice(((1, 2), (2, 5)))
        yield f"UPDATE {name} SET {name}_id = {low + high} - {name}_id WHERE {name}_id IN ({low}, {high})"

    def _replace_deferred(self) -> Iterator[str]:
        """A row comes before the one goes that has its key."""
        name = self.dice.choice(DEFERRABLE)
        row = self._row(self.by_name[name])
        same = f"{name} WHERE {name}_id = {row[f'{name}_id']}"
        yield f"INSERT INTO {name} ({', '.join(row)}) VALUES ({', '.join(row.values())})"
        yield f"DELETE FROM {same} AND ctid = (SELECT min(ctid) FROM {same} HAVING count(*) > 1)"

    def _replace_parent(self) -> Iterator[str]:
        """A parent goes and comes again, and its children wait for it."""
        row = self._row(self.by_name["wish"])
        yield f"DELETE FROM wish WHERE wish_id = {row['wish_id']}"
        yield f"INSERT INTO wish ({', '.join(row)}) VALUES ({', '.join(row.values())})"

    def _in_one(self) -> Iterator[str]:
        """A row is deleted and comes anew in one statement, whatever becomes of its child rows."""
        table = self._table()
        row = self._row(table)
        match = " AND ".join(f"{name} = {row[name]}" for name in table.shape.key)
        yield (
            f"WITH gone AS (DELETE FROM {table.name} WHERE {match} RETURNING 1)"
            f" INSERT INTO {table.name} ({', '.join(row)}) SELECT {', '.join(row.values())} FROM gone"
        )


def _copy(connection: Connection, head: str, rows: str) -> None:
    """COPY goes by the driver, whose errors are made those of the others."""
    driver = connection.connection.driver_connection
    assert driver is not None
    try:
        with driver.cursor() as cursor, cursor.copy(head) as copy:
            copy.write(rows)
    except driver_error() as error:
        raise DBAPIError(head, None, error) from error


def driver_error() -> type[Exception]:
    import psycopg

    return psycopg.Error


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _plain(literal: str) -> str:
    return literal[1:-1].replace("''", "'").replace("\\", "\\\\")
