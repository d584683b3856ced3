"""Grounds: databases on which histories happen. One server serves all of them, and each finds the
log as if it were new.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

from sqlalchemy import Engine, MetaData, Table, create_engine, text

from tests.conformance.event_logs import installed
from tests.support.servers import postgres_binaries, postgresql_database, postgresql_running
from tests.support.servers_mysql import mariadb_database, mariadb_running

TABLES: Final = ("a", "b")
"""The captured tables; policies leave the second one out."""


class Ground(Protocol):
    """One database."""

    name: str

    def fresh(self, folder: Path) -> Engine:
        """The database with an empty log, for whoever is no publisher."""
        ...


def _prepare(engine: Engine) -> None:
    """A log that may hold anything, and the tables that its rows speak of."""
    log = installed(engine)
    for table in TABLES:
        log.run(f"CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY, value VARCHAR(20))")


class SqliteGround:
    """A file, copied for each history."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._template = folder / "template.db"
        engine = create_engine(f"sqlite:///{self._template}")
        _prepare(engine)
        with engine.connect() as connection:
            # Who is stopped while he reads would keep writers out, and all take turns in one thread.
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        engine.dispose()

    def fresh(self, folder: Path) -> Engine:
        shutil.copyfile(self._template, folder / "log.db")
        return create_engine(f"sqlite:///{folder / 'log.db'}")


class ServerGround:
    """A database of a server, emptied for each history: every table gets back what it held after
    the installation.
    """

    def __init__(self, name: str, engine: Engine) -> None:
        self.name = name
        self._engine = engine
        _prepare(engine)
        tables = MetaData()
        tables.reflect(engine)
        self._tables = list(tables.sorted_tables)
        with engine.connect() as connection:
            self._held = {table.name: _rows(connection.execute(table.select()).mappings()) for table in self._tables}

    def fresh(self, folder: Path) -> Engine:
        with self._engine.begin() as connection:
            for table in reversed(self._tables):
                connection.execute(text(f"DELETE FROM {_quoted(self._engine, table)}"))
            for table in self._tables:
                if self._held[table.name]:
                    connection.execute(table.insert(), self._held[table.name])
        return self._engine


@contextmanager
def ground(name: str) -> Iterator[Ground]:
    """A ground on a server of its own, while it lasts."""
    with ExitStack() as leaving:
        if name == "sqlite":
            folder = leaving.enter_context(TemporaryDirectory(prefix="eventlog-histories-"))
            yield SqliteGround(Path(folder))
        elif name == "postgresql":
            binaries = postgres_binaries()
            assert binaries is not None, "there is no PostgreSQL"
            server = leaving.enter_context(postgresql_running(binaries))
            admin = create_engine(server + "postgres", isolation_level="AUTOCOMMIT")
            leaving.callback(admin.dispose)
            yield ServerGround(name, leaving.enter_context(postgresql_database(server, admin)))
        else:
            url = leaving.enter_context(mariadb_running())
            yield ServerGround(name, leaving.enter_context(mariadb_database(url)))


def _rows(found: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in found]


def _quoted(engine: Engine, table: Table) -> str:
    return engine.dialect.identifier_preparer.format_table(table)
