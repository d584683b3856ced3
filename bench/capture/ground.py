"""Where contestants meet: each captures the same table in a database of its own, so that none pays for another."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection, Engine, NullPool, create_engine, make_url, text

from bench.postgresql import url

TABLE: Final = (
    "CREATE TABLE usr (idu integer PRIMARY KEY, fname varchar(64), lname varchar(64), email varchar(100),"
    " phone varchar(32), dept integer, hired date) WITH (autovacuum_enabled = off)"
)
INSERT: Final = (
    "INSERT INTO usr SELECT n, 'first' || n, 'last' || n, 'user' || n || '@example.org', '+49 ' || n, mod(n, 100),"
    " date '2020-01-01' + mod(n, 1000) FROM generate_series(1, {rows}) AS n"
)
UPDATE: Final = "UPDATE usr SET fname = fname || 'x', dept = dept + 1"
UPDATE_ALL: Final = (
    "UPDATE usr SET fname = fname || 'x', lname = lname || 'x', email = email || 'x', phone = phone || 'x',"
    " dept = dept + 1, hired = hired + 1"
)
DELETE: Final = "DELETE FROM usr"
ONE_ROW: Final = "UPDATE usr SET fname = fname || 'x', dept = dept + 1 WHERE idu = {row}"
SINGLE_ROWS: Final = 10
"""More than PL/pgSQL plans anew before it keeps a plan."""


class Way(Struct, frozen=True, kw_only=True):
    """A way of capturing: what it puts into the database, and the tables that it fills.

    `single_rows` says that its session has updated single rows before the statement that is measured.
    """

    name: str
    make: Callable[[Engine], None]
    fills: tuple[str, ...] = ()
    single_rows: bool = False


class Ground:
    """One way's database, and the session that its next statement runs in."""

    def __init__(self, way: Way, rows: int) -> None:
        self.way = way
        self.rows = rows
        self.engine = create_engine(database(way.name), poolclass=NullPool)
        self._session: Connection | None = None
        with self.engine.begin() as connection:
            connection.exec_driver_sql(TABLE)
        way.make(self.engine)

    def refill(self, *, full: bool) -> None:
        """Gives the table its rows, or none, as if nothing had ever happened, and opens a session."""
        self.close()
        with self.engine.begin() as connection:
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
            connection.exec_driver_sql(f"TRUNCATE {', '.join(['usr', *self.way.fills])}")
            if full:
                connection.exec_driver_sql(INSERT.format(rows=self.rows))
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM (ANALYZE) usr")
            connection.exec_driver_sql("CHECKPOINT")
        self._session = self.engine.connect()
        for row in range(1, SINGLE_ROWS + 1 if self.way.single_rows and full else 1):
            self.execute(ONE_ROW.format(row=row))

    def forget(self) -> None:
        """Empties what the way has filled, and cleans up after single rows."""
        self.close()
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if self.way.fills:
                connection.exec_driver_sql(f"TRUNCATE {', '.join(self.way.fills)}")
            connection.exec_driver_sql("VACUUM usr")

    def execute(self, statement: str) -> None:
        """One transaction of the session."""
        assert self._session is not None  # refill opens it
        self._session.exec_driver_sql(statement)
        self._session.commit()

    def stored(self) -> int:
        """Bytes of what the way has filled, indexes and all."""
        with self.engine.connect() as connection:
            sizes = [text(f"SELECT pg_total_relation_size('{table}')") for table in self.way.fills]
            return sum(int(connection.execute(size).scalar_one()) for size in sizes)

    def close(self) -> None:
        """Ends the session."""
        if self._session is not None:
            self._session.close()
            self._session = None


def database(name: str) -> str:
    """The URL of a new database on the benchmarks' server."""
    admin = _admin()
    plain = "".join(letter if letter.isalnum() else "_" for letter in name.lower())
    with admin.connect() as connection:
        taken = connection.execute(text("SELECT count(*) FROM pg_database")).scalar_one()
        connection.exec_driver_sql(f"CREATE DATABASE {plain[:40]}_{taken}")
    return make_url(url()).set(database=f"{plain[:40]}_{taken}").render_as_string(hide_password=False)


@cache
def _admin() -> Engine:
    """The server, told not to write checkpoints into the middle of what is measured."""
    admin = create_engine(url(), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with admin.connect() as connection:
        for setting in ("max_wal_size = '8GB'", "checkpoint_timeout = '1h'"):
            connection.exec_driver_sql(f"ALTER SYSTEM SET {setting}")
        connection.exec_driver_sql("SELECT pg_reload_conf()")
    return admin
