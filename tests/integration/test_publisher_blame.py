"""A table that cannot be read back keeps its own rows waiting, and those of no other table."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, create_engine

from eventlog.care.status import facts
from eventlog.config.settings import Config
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import Process, config_of, in_thread, publish_all, published, site, until
from tests.support.servers import absent

OBJECTS = 6
LOCKS = {
    "postgresql": ("LOCK TABLE usr IN ACCESS EXCLUSIVE MODE", "ROLLBACK"),
    "mysql": ("LOCK TABLES usr WRITE", "UNLOCK TABLES"),
}


@pytest.fixture(params=["postgresql", "mariadb"])
def log(request: pytest.FixtureRequest) -> LogTable:
    engine: Engine = request.getfixturevalue(request.param)
    log = site(engine)
    log.run("CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40))")
    for number in range(1, OBJECTS + 1):
        log.run("INSERT INTO usr VALUES (:id, 'a', 'b')", {"id": number})
        log.run("INSERT INTO grp VALUES (:id, 'a')", {"id": number})
    return log


def write(log: LogTable, first: int, last: int) -> None:
    """Rows of both tables in turn: those of usr have odd numbers."""
    for number in range(first, last + 1):
        table, key = ("usr", "idu") if number % 2 else ("grp", "idg")
        key = f"{key}={(number // 2) % OBJECTS + 1}"
        log.write(number, key=key, table_name=table, event_type=6, column_name=None, new_value=None)


def statuses(log: LogTable) -> dict[str, str]:
    """The letters of each table's rows, in the order of their numbers."""
    told = log.statuses()
    return {
        "usr": "".join(told[number] for number in sorted(told) if number % 2),
        "grp": "".join(told[number] for number in sorted(told) if not number % 2),
    }


@contextmanager
def locked(engine: Engine) -> Iterator[None]:
    """Somebody works with the table usr, and lets nobody read it."""
    lock, unlock = LOCKS[engine.dialect.name]
    with engine.connect() as connection:
        connection.exec_driver_sql(lock)
        try:
            yield
        finally:
            connection.exec_driver_sql(unlock)


def several(log: LogTable, folder: Path, *names: str, **settings: Any) -> Config:
    settings = {"read_back_timeout": 0.3, "retry_first": 0.1, "retry_longest": 0.3, "polling_interval": 1, **settings}
    config = config_of(log.engine, folder, **settings)
    return replace(config, output=tuple(FilesOutput(name=name, path=str(folder / name)) for name in names))


def in_order(folder: Path) -> bool:
    """Whether the documents say of each object what is later behind what is earlier."""
    told = [int(event.split("-")[-1]) for events in published(folder).values() for event in events]
    of_objects: dict[tuple[int, int], list[int]] = {}
    for number in told:
        of_objects.setdefault((number % 2, (number // 2) % OBJECTS), []).append(number)
    return all(numbers == sorted(numbers) for numbers in of_objects.values())


def test_a_lock_on_one_table_holds_its_rows_and_no_others(log: LogTable, tmp_path: Path) -> None:
    write(log, 1, 40)
    config = several(log, tmp_path, "one", "two")
    with in_thread(Publisher(config)):
        with locked(log.engine):
            until(lambda: statuses(log) == {"usr": "N" * 20, "grp": "S" * 20}, "rows of grp")
            write(log, 41, 60)
            until(lambda: statuses(log)["grp"] == "S" * 30, "later rows of grp")
            assert statuses(log)["usr"] == "N" * 30
            [(table, note)] = facts(log.engine, log.names).unread.items()
            assert (table, "usr is locked, or does not answer in time: " in note) == ("usr", True), note
        began = time.monotonic()
        until(lambda: set(statuses(log)["usr"]) == {"S"}, "rows of usr, once nobody holds the lock")
        assert time.monotonic() - began < 60
    assert in_order(tmp_path / "one")
    assert in_order(tmp_path / "two")
    assert log.ask("SELECT COUNT(*) FROM event_log_parked") == [(0,)]


def test_a_publisher_begins_while_a_table_is_locked(log: LogTable, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"read_back_timeout": 0.3, "retry_first": 0.1, "retry_longest": 0.3}
    write(log, 1, 20)
    with locked(log.engine):
        with Process(log.engine, tmp_path / "out", **settings) as process:
            until(lambda: statuses(log) == {"usr": "N" * 10, "grp": "S" * 10}, "rows of grp")
            process.tell(signal.SIGKILL)
        write(log, 21, 40)
        with Process(log.engine, tmp_path / "out", **settings) as process:
            until(lambda: statuses(log) == {"usr": "N" * 20, "grp": "S" * 20}, "rows of grp, by another publisher")
            process.tell(signal.SIGKILL)
    publish_all(config_of(log.engine, tmp_path / "out", **settings))
    assert statuses(log) == {"usr": "S" * 20, "grp": "S" * 20}
    assert in_order(tmp_path / "out")


def test_one_row_tries_a_locked_table_for_all_others(log: LogTable, tmp_path: Path) -> None:
    """An attempt costs the same, however many rows wait: those of all objects but one stay as they are."""
    write(log, 1, 60)
    waiting = "SELECT record_id, attempts, due FROM event_log_parked ORDER BY record_id"

    def tried() -> int:
        return max([attempts for _, attempts, _ in log.ask(waiting)], default=0)

    with in_thread(Publisher(several(log, tmp_path, "one"))), locked(log.engine):
        until(lambda: tried() >= 2, "a second attempt")
        before = log.ask(waiting)
        until(lambda: tried() >= 4, "two more attempts")
        changed = {record for record, *_ in set(log.ask(waiting)) - set(before)}
        # The first row, with those of its object behind it.
        assert changed == {record for record, *_ in before if (record // 2) % OBJECTS == 0}
        assert len(before) == 30


RAISING = """CREATE OR REPLACE FUNCTION reading() RETURNS text LANGUAGE plpgsql IMMUTABLE AS
$$BEGIN RAISE EXCEPTION 'nobody can read this' USING ERRCODE = '{code}'; END$$"""
READING = "CREATE OR REPLACE FUNCTION reading() RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''a''::text'"


@pytest.mark.parametrize("code", ["XX001", "P0001"])
def test_a_view_that_nobody_can_read_holds_its_rows_until_it_is_mended(
    postgresql: Engine, tmp_path: Path, code: str
) -> None:
    log = site(postgresql)
    log.run(READING)
    # A constant is computed when a statement is planned: not even a question about no object has an answer.
    log.run("CREATE VIEW people AS SELECT id AS pk_id, said FROM (SELECT 1 AS id, reading() AS said OFFSET 0) AS one")
    log.run("INSERT INTO usr VALUES (1, 'a', 'b')")
    for number in range(1, 7):
        table, key = ("people", "pk_id=1") if number % 2 else ("usr", "idu=1")
        log.write(number, key=key, table_name=table, event_type=6, column_name=None, new_value=None)
    log.run(RAISING.format(code=code))
    with in_thread(Publisher(several(log, tmp_path, "one"))):
        until(lambda: "".join(log.statuses().values()) == "NSNSNS", "rows of usr")
        [note] = facts(postgresql, log.names).unread.values()
        assert "people cannot be read: nobody can read this" in note, note
        log.run(READING)
        until(lambda: "".join(log.statuses().values()) == "SSSSSS", "rows of the view")


def test_a_damaged_page_holds_the_rows_of_its_table(postgresql: Engine, tmp_path: Path) -> None:
    log = site(postgresql)
    log.run("CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40))")
    log.run("INSERT INTO usr VALUES (1, 'a', 'b')")
    log.run("INSERT INTO grp VALUES (1, 'a')")
    for number in range(1, 7):
        table, key = ("usr", "idu=1") if number % 2 else ("grp", "idg=1")
        log.write(number, key=key, table_name=table, event_type=6, column_name=None, new_value=None)
    [(data,)] = log.ask("SHOW data_directory")
    [(file,)] = log.ask("SELECT pg_relation_filepath('usr')")
    [(number,)] = log.ask("SELECT oid FROM pg_database WHERE datname = current_database()")
    if not Path(data).is_dir():
        absent("postgres", "the server's files are on another machine")
    copy = f"{postgresql.url.database}_damaged"
    admin = create_engine(postgresql.url.set(database="template1"), isolation_level="AUTOCOMMIT")
    postgresql.dispose()
    # A copy, of whose pages the server has none in its memory.
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {copy} TEMPLATE {postgresql.url.database} STRATEGY file_copy")
        [(copied,)] = connection.exec_driver_sql(f"SELECT oid FROM pg_database WHERE datname = '{copy}'").all()
    page = Path(data, file.replace(f"/{number}/", f"/{copied}/"))
    good = page.read_bytes()
    damaged = create_engine(postgresql.url.set(database=copy))
    try:
        with page.open("r+b") as opened:
            opened.write(b"\xff" * 64)
        log = LogTable(damaged, names=log.names)
        with in_thread(Publisher(several(log, tmp_path, "one"))):
            until(lambda: "".join(log.statuses().values()) == "NSNSNS", "rows of grp")
            [note] = facts(damaged, log.names).unread.values()
            assert "usr cannot be read: invalid page in block 0" in note
            with page.open("r+b") as opened:
                opened.write(good)
            until(lambda: "".join(log.statuses().values()) == "SSSSSS", "rows of usr, once the page is mended")
    finally:
        damaged.dispose()
        with admin.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {copy} WITH (FORCE)")
        admin.dispose()
