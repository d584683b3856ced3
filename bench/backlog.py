"""Logs full of waiting rows, the same ones for every run, and the publisher that empties them."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from msgspec import Struct
from sqlalchemy import Engine, create_engine, text

from bench.ending import at_end
from bench.postgresql import url
from eventlog.capture.install import install
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.names import LogNames

TABLE_NAME: Final = "usr"
COLUMNS: Final = ("fname", "lname", "mail", "phone", "city", "title")
PER_CHANGE: Final = 4
"""Log rows of one row change on average: an insert logs six columns, an update two."""

NAMES: Final = f"ARRAY{list(COLUMNS)}"

LIMIT: Final = 10_000
BATCH_SIZE: Final = 128

TABLE: Final = f"CREATE TABLE IF NOT EXISTS usr (idu integer PRIMARY KEY, {', '.join(f'{c} text' for c in COLUMNS)})"
"""What the rows speak of: seven columns, the key among them."""
FIELDS: Final = """
INSERT INTO {log} (table_key, event_type, perpetrator, table_name, column_name, old_value, new_value)
SELECT 'idu=' || n / 8, CASE WHEN n % 8 < 6 THEN 1 ELSE 2 END, 'app', 'usr', ({names})[n % 8 % 6 + 1],
       CASE WHEN n % 8 < 6 THEN NULL ELSE 'old ' || n END, CASE WHEN n % 10 = 0 THEN 'R&D ' ELSE 'new ' END || n
FROM generate_series(0, :count - 1) AS n ORDER BY n
"""
"""An object is inserted, six columns, and two of them are updated; one value in ten needs escaping."""


NAMES_OF: Final = """
SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
WHERE attrelid = CAST(:log AS regclass) AND attnum > 0 AND NOT attisdropped AND attname <> 'record_id'
"""
"""The columns of a log but its number."""

TOLD: Final = """
SELECT NOT EXISTS (SELECT FROM {log} WHERE status = 'N') OR (
  (SELECT max(record_id) FROM {log}) = greatest(
    (SELECT max((records::json -> -1 ->> 1)::bigint) FROM {log}_batch),
    (SELECT max((records::json -> -1 ->> 1)::bigint) FROM {log}_planned WHERE output = :late),
    (SELECT max(record_id) FROM {log}_parked WHERE output = :late))
  AND NOT EXISTS (SELECT FROM {log}_output WHERE name <> :late
    AND position < greatest((SELECT max(id) FROM {log}_batch), (SELECT max(position) FROM {log}_output)))
  AND NOT EXISTS (SELECT FROM {log}_planned WHERE output <> :late))
"""
"""Whether every output but the late one has all rows: they have their status, or wait for that output alone."""

MARK: Final = "UPDATE {log} SET status = 'S' WHERE record_id BETWEEN {first} AND {last} AND status = 'N'"


class Backlog(Struct, frozen=True, kw_only=True):
    """A log of `count` rows that can be made to wait again and again, and a folder for documents."""

    name: str
    count: int
    folder: Path
    table: str

    def refill(self) -> None:
        """Every row waits again, in a table as a vacuum leaves it; nothing that came before is in a queue for the disk."""
        for document in self.folder.glob("*.xml"):
            document.unlink()
        with engine().begin() as connection:
            connection.execute(text(f"TRUNCATE {self.name}, {self.name}_outcome"))
            # With new numbers: among those that are over a publisher that stays open looks seldom.
            names = connection.execute(text(NAMES_OF), {"log": self.name}).scalar_one()
            rows = f"SELECT {names} FROM {self.name}_kept ORDER BY record_id"
            connection.execute(text(f"INSERT INTO {self.name} ({names}) {rows}"))
        settle_down(self.name)

    def is_told(self, late: str) -> bool:
        """Whether every output but this one has all rows."""
        with engine().connect() as connection:
            return bool(connection.execute(text(TOLD.format(log=self.name)), {"late": late}).scalar_one())

    def config(self) -> Config:
        """A configuration with cycles of 10,000 rows and documents of 128 changes."""
        return Config(
            source=SourceConfig(url=url(), log=self.name, tables=(self.table,)),
            publisher=PublisherConfig(batch_size=BATCH_SIZE, query_limit=LIMIT),
            output=(FilesOutput(path=str(self.folder)),),
        )


class Standing:
    """A publisher that stays open from one run to the next, as a daemon does."""

    def __init__(self, log: Backlog) -> None:
        self._log = log
        self._publisher = Publisher(self.config())
        at_end(self._publisher.close)

    def config(self) -> Config:
        """How it publishes."""
        return self._log.config()

    def publish(self) -> None:
        """Empties the log."""
        published = sum(report.finished for report in self._publisher.rounds(until_empty=True))
        if published != self._log.count:
            raise AssertionError(f"{published} of {self._log.count} rows were published")


@cache
def engine() -> Engine:
    """The benchmarks' own connection to their server."""
    return closed_at_the_end(create_engine(url()))


def closed_at_the_end(engine: Engine) -> Engine:
    """The engine, whose connections are closed before the server ends."""
    at_end(engine.dispose)
    return engine


def backlog(name: str, count: int, rows: str = FIELDS, table: str = TABLE_NAME) -> Backlog:
    """A log with rows made by this statement, which are kept aside for `refill` to bring them back."""
    install(engine(), LogNames(table=name))
    with engine().begin() as connection:
        connection.execute(text(TABLE))
        connection.execute(text(f"ALTER TABLE {name} SET (autovacuum_enabled = false)"))  # it would run meanwhile
        connection.execute(text(rows.format(log=name, names=NAMES)), {"count": count})
        connection.execute(text(f"CREATE TABLE {name}_kept AS SELECT * FROM {name}"))
    return Backlog(name=name, count=count, folder=temporary_folder() / "out", table=table)


def written_config(config: Config) -> Path:
    """The configuration as a file, for a publisher that is a process of its own."""
    file = temporary_folder() / "eventlog.toml"
    [output] = config.output
    assert isinstance(output, FilesOutput)
    source, publisher = config.source, config.publisher
    tables = ", ".join(f'"{table}"' for table in source.tables)
    file.write_text(
        f'[source]\nurl = "{source.url}"\nlog = "{source.log}"\ntables = [{tables}]\n'
        f"[publisher]\nbatch_size = {publisher.batch_size}\nquery_limit = {publisher.query_limit}\n"
        f'[[output]]\nsink = "files"\npath = "{output.path}"\n'
    )
    return file


def temporary_folder() -> Path:
    """A folder that is gone when the benchmarks end."""
    folder = Path(mkdtemp(prefix="eventlog-bench-"))
    at_end(shutil.rmtree, folder, ignore_errors=True)
    return folder


def settle_down(table: str) -> None:
    """Brings the table into the state that it has after a while, and everything to the disk."""
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in (f"VACUUM ANALYZE {table}", "CHECKPOINT"):
            connection.execute(text(statement))
