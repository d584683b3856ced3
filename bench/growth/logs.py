"""Logs of any length on SQLite and PostgreSQL: some rows were published long ago, some wait, and a publisher takes them."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path
from typing import Final

from sqlalchemy import create_engine, text

from bench.backlog import BATCH_SIZE, LIMIT, temporary_folder
from bench.postgresql import url
from eventlog.config import Config, FilesOutput, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sql.install import install
from eventlog.sql.names import LogNames

COLUMNS: Final = 6
TABLE: Final = f"CREATE TABLE thing (idu integer PRIMARY KEY, {', '.join(f'c{n} text' for n in range(COLUMNS))})"
AT_ONCE: Final = 500_000
FILL: Final = """
INSERT INTO {log} (table_key, status, event_type, event_time, perpetrator, table_name, column_name, old_value, new_value)
WITH RECURSIVE counted (n) AS (SELECT CAST(:first AS integer) UNION ALL SELECT n + 1 FROM counted WHERE n + 1 < :last)
SELECT 'idu=' || (n / 8), :status, CASE WHEN n % 8 < 6 THEN 1 ELSE 2 END, CURRENT_TIMESTAMP, 'app', 'thing',
       'c' || (n % 8 % 6), CASE WHEN n % 8 < 6 THEN NULL ELSE 'old ' || n END, 'new ' || n FROM counted ORDER BY n
"""
"""An object is inserted, six columns, and two of them are updated; both databases understand it."""


class GrownLog:
    """A log in which so many rows are processed and so many wait; its publisher stays open, as a daemon does."""

    def __init__(self, address: str, name: str, *, processed: int, waiting: int) -> None:
        self._name = name
        self._waiting = waiting
        self._engine = create_engine(address)
        atexit.register(self._engine.dispose)
        install(self._engine, LogNames(table=name))
        self._fill(processed, "S")
        self._boundary = self._number(f"SELECT coalesce(max(record_id), 0) FROM {name}")
        self._folder = temporary_folder() / "out"
        self._publisher = Publisher(self._config(address))
        atexit.register(self._publisher.close)

    def refill(self) -> None:
        """The processed rows stay, others make way for rows that wait."""
        for document in self._folder.glob("*"):
            document.unlink()
        with self._engine.begin() as connection:
            connection.execute(text(f"DELETE FROM {self._name} WHERE record_id > {self._boundary}"))
        self._fill(self._waiting, "N")
        postgresql = self._engine.dialect.name == "postgresql"
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for statement in (f"VACUUM ANALYZE {self._name}", "CHECKPOINT") if postgresql else ("ANALYZE",):
                connection.execute(text(statement))

    def publish(self) -> None:
        """Publishes what waits."""
        published = sum(report.settled for report in self._publisher.rounds(until_empty=True))
        if published != self._waiting:
            raise AssertionError(f"{published} of {self._waiting} rows were published")

    def _config(self, address: str) -> Config:
        return Config(
            source=SourceConfig(url=address, log=self._name, tables=("thing",)),
            publisher=PublisherConfig(batch_size=BATCH_SIZE, query_limit=LIMIT),
            output=(FilesOutput(path=str(self._folder)),),
        )

    def _fill(self, count: int, status: str) -> None:
        for first in range(0, count, AT_ONCE):
            bounds = {"first": first, "last": min(first + AT_ONCE, count), "status": status}
            with self._engine.begin() as connection:
                connection.execute(text(FILL.format(log=self._name)), bounds)

    def _number(self, question: str) -> int:
        with self._engine.connect() as connection:
            return int(connection.execute(text(question)).scalar_one())


@cache
def databases() -> dict[str, str]:
    """A database of each kind that has the table which the rows speak of: its name for people, and its URL."""
    found = {"PostgreSQL": url(), "SQLite": f"sqlite:///{Path(temporary_folder()) / 'grown.db'}"}
    for address in found.values():
        engine = create_engine(address)
        with engine.begin() as connection:
            connection.execute(text(TABLE))
        engine.dispose()
    return found
