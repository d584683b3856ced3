"""Logs full of waiting rows, the same ones for every run, and the publisher that empties them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Engine, create_engine, text

from bench.postgresql import url
from eventlog.config import Config, FilesOutput, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sql.install import install
from eventlog.sql.names import LogNames

COLUMNS: Final = ("fname", "lname", "mail", "phone", "city", "title")
PER_CHANGE: Final = 4
"""Log rows of one row change on average: an insert logs six columns, an update two."""

LIMIT: Final = 10_000
BATCH_SIZE: Final = 128

TABLE: Final = f"CREATE TABLE IF NOT EXISTS usr (idu integer PRIMARY KEY, {', '.join(f'{c} text' for c in COLUMNS)})"
FIELDS: Final = """
INSERT INTO {log} (table_key, event_type, perpetrator, table_name, column_name, old_value, new_value)
SELECT 'idu=' || n / 8, CASE WHEN n % 8 < 6 THEN 1 ELSE 2 END, 'app', 'usr', (CAST(:columns AS text[]))[n % 8 % 6 + 1],
       CASE WHEN n % 8 < 6 THEN NULL ELSE 'old ' || n END, CASE WHEN n % 10 = 0 THEN 'R&D ' ELSE 'new ' END || n
FROM generate_series(0, :count - 1) AS n ORDER BY n
"""
"""An object is inserted, six columns, and two of them are updated; one value in ten needs escaping."""
ROWS: Final = """
INSERT INTO {log} (table_key, event_type, perpetrator, table_name)
SELECT 'idu=' || n, 6, 'app', 'usr' FROM generate_series(0, :count - 1) AS n ORDER BY n
"""
"""One row for each object, whose values are read back."""
OBJECTS: Final = f"""
INSERT INTO usr SELECT n, {", ".join(f"'{column} ' || n" for column in COLUMNS)} FROM generate_series(0, :count - 1) AS n
ON CONFLICT DO NOTHING
"""


class Backlog(Struct, frozen=True, kw_only=True):
    """A log of `count` rows that can be made to wait again and again, and a folder for documents."""

    name: str
    count: int
    folder: Path
    workers: int = 1

    def refill(self) -> None:
        """Every row waits again, in a table as a vacuum leaves it; nothing that came before is in a queue for the disk."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with engine().begin() as connection:
            for table in (self.name, f"{self.name}_outcome", f"{self.name}_mark"):
                connection.execute(text(f"TRUNCATE {table}"))
            connection.execute(text(f"INSERT INTO {self.name} SELECT * FROM {self.name}_kept ORDER BY record_id"))
        settle_down(self.name)

    def publish(self) -> None:
        """Empties the log as `eventlog run --until-empty` does."""
        with Publisher(self.config()) as publisher:
            published = sum(report.settled for report in publisher.rounds(until_empty=True))
        if published != self.count:
            raise AssertionError(f"{published} of {self.count} rows were published")

    def config(self) -> Config:
        """A configuration with cycles of 10,000 rows and documents of 128 changes."""
        return Config(
            source=SourceConfig(url=url(), log=self.name, tables=("usr",)),
            publisher=PublisherConfig(batch_size=BATCH_SIZE, query_limit=LIMIT),
            output=(FilesOutput(path=str(self.folder)),),
        )


@cache
def engine() -> Engine:
    """The benchmarks' own connection to their server."""
    return create_engine(url())


def backlog(name: str, count: int, rows: str = FIELDS, columns: Sequence[str] = COLUMNS, **settings: Any) -> Backlog:
    """A log whose rows are kept aside, for `refill` to bring them back."""
    install(engine(), LogNames(table=name))
    with engine().begin() as connection:
        connection.execute(text(TABLE))
        connection.execute(text(f"ALTER TABLE {name} SET (autovacuum_enabled = false)"))  # it would run meanwhile
        parameters = {"count": count} | ({"columns": list(columns)} if ":columns" in rows else {})
        connection.execute(text(rows.format(log=name)), parameters)
        connection.execute(text(f"CREATE TABLE {name}_kept AS SELECT * FROM {name}"))
    return Backlog(name=name, count=count, folder=Path(mkdtemp(prefix="eventlog-bench-")) / "out", **settings)


def settle_down(table: str) -> None:
    """Brings the table into the state that it has after a while, and everything to the disk."""
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in (f"VACUUM ANALYZE {table}", "CHECKPOINT"):
            connection.execute(text(statement))
