"""Logs of any length on SQLite and PostgreSQL, filled by statements, and the publisher that takes what waits in them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, create_engine, text

from bench.backlog import BATCH_SIZE, LIMIT, temporary_folder
from bench.ending import at_end
from bench.growth.series import contestant
from bench.growth.shape import Series, Shape
from bench.measure import Contestant
from bench.postgresql import url
from eventlog.capture.install import install
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.names import LogNames

AT_ONCE: Final = 500_000
COUNTED: Final = {
    "postgresql": "counted (n) AS (SELECT generate_series(:first, :last - 1))",
    "sqlite": (
        "RECURSIVE counted (n) AS (SELECT CAST(:first AS integer) UNION ALL SELECT n + 1 FROM counted WHERE n + 1 < :last)"
    ),
}
FILL: Final = """
INSERT INTO {log} (table_key, status, event_type, event_time, perpetrator, table_name, column_name, old_value, new_value)
WITH {counted}
SELECT 'idu=' || (n % :objects), :status, CASE WHEN n / :objects < :columns THEN 1 ELSE 2 END, CURRENT_TIMESTAMP, 'app',
       :table || (n % :objects % :tables), 'c' || (n / :objects % :columns),
       CASE WHEN n / :objects < :columns THEN NULL ELSE CAST(:former AS text) END, CAST(:latter AS text) FROM counted ORDER BY n
"""
"""The rows of a shape; both databases understand it."""


CYCLES: Final = (
    "Per-field rows into XDS files, by a publisher that has seen the tables, in cycles of 10,000 rows. Objects take turns, row by row."
    " PostgreSQL is vacuumed and has written a checkpoint before each run."
)


class GrownLog:
    """A log in which rows of a shape wait, beside others that were processed; its publisher is there when it is wanted."""

    def __init__(self, address: str, name: str, waiting: Shape, processed: int = 0) -> None:
        self.name = name
        self.engine = engine_of(address)
        self._address = address
        self._waiting = waiting
        self._processed = Shape(rows=processed)
        self._folder = temporary_folder() / "out"
        self._boundary: int | None = None
        self._publisher: Publisher | None = None

    def ready(self) -> None:
        """What is processed stays, other rows make way for rows that wait, and a publisher has seen the tables."""
        self.clear()
        self._publisher = Publisher(self._config())
        self._publisher.run_once()
        self._fill(self._waiting, "N")
        self.settle()

    def publish(self) -> None:
        """Publishes what waits."""
        assert self._publisher is not None  # ready opens it
        published = sum(report.finished for report in self._publisher.rounds(until_empty=True))
        if published != self._waiting.rows:
            raise AssertionError(f"{published} of {self._waiting.rows} rows were published")

    def close(self) -> None:
        """Ends the publisher and removes what it wrote."""
        if self._publisher is not None:
            self._publisher.close()
            self._publisher = None
        for document in self._folder.glob("*.xml"):
            document.unlink()

    def clear(self) -> None:
        """Leaves only what was processed before anything else; the first time it makes the log."""
        if self._boundary is None:
            self._make()
        empty = f"TRUNCATE {self.name}" if self.postgresql and not self._processed.rows else None
        with self.engine.begin() as connection:
            connection.execute(text(empty or f"DELETE FROM {self.name} WHERE record_id > {self._boundary}"))

    def settle(self) -> None:
        """Brings the log into the state that it has after a while, and everything to the disk."""
        statements = (f"VACUUM ANALYZE {self.name}", "CHECKPOINT") if self.postgresql else ("ANALYZE",)
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for statement in statements:
                connection.execute(text(statement))

    @property
    def postgresql(self) -> bool:
        return self.engine.dialect.name == "postgresql"

    def _make(self) -> None:
        install(self.engine, LogNames(table=self.name))
        make_tables(self.engine, self._waiting)
        with self.engine.begin() as connection:
            if self.postgresql:  # it would run meanwhile
                connection.execute(text(f"ALTER TABLE {self.name} SET (autovacuum_enabled = false)"))
        self._fill(self._processed, "S")
        with self.engine.connect() as connection:
            self._boundary = int(
                connection.execute(text(f"SELECT coalesce(max(record_id), 0) FROM {self.name}")).scalar_one()
            )

    def _config(self) -> Config:
        return Config(
            source=SourceConfig(url=self._address, log=self.name, tables=self._waiting.names),
            publisher=PublisherConfig(batch_size=BATCH_SIZE, query_limit=LIMIT),
            output=(FilesOutput(path=str(self._folder)),),
        )

    def _fill(self, shape: Shape, status: str) -> None:
        former, latter = shape.texts
        sizes = {"objects": shape.objects, "columns": shape.columns, "tables": shape.tables, "table": shape.table}
        sql = FILL.format(log=self.name, counted=COUNTED[self.engine.dialect.name])
        for first in range(0, shape.rows, AT_ONCE):
            bounds = {"first": first, "last": min(first + AT_ONCE, shape.rows)}
            with self.engine.begin() as connection:
                values = {"status": status, "former": former, "latter": latter}
                connection.execute(text(sql), {**sizes, **bounds, **values})


def published(database: str, series: Series) -> Iterator[Contestant]:
    """What publishes the rows of each shape."""
    for name, sizes in series.items():
        for shape in sizes:
            log = GrownLog(
                addresses()[database],
                f"grown_{shape.rows}_{shape.each}_{shape.columns}_{shape.tables}_{shape.characters}",
                shape,
            )
            yield contestant(f"{name}, {database}", shape, prepare=log.ready, run=log.publish, done=log.close)


def make_tables(engine: Engine, shape: Shape) -> None:
    """The tables that rows of the shape speak of."""
    columns = ", ".join(f"c{number} text" for number in range(shape.columns))
    with engine.begin() as connection:
        for name in shape.names:
            connection.execute(text(f"CREATE TABLE IF NOT EXISTS {name} (idu integer PRIMARY KEY, {columns})"))


@cache
def engine_of(address: str) -> Engine:
    """An engine on it, closed at the end."""
    engine = create_engine(address)
    at_end(engine.dispose)
    return engine


@cache
def addresses() -> dict[str, str]:
    """A database of each kind: its name for people, and its URL."""
    return {"PostgreSQL": url(), "SQLite": f"sqlite:///{Path(temporary_folder()) / 'grown.db'}"}
