"""A database of MariaDB or MySQL that is dumped and restored beside itself: the copy's triggers write into the copy's log."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.servers import absent, mysqls
from tests.support.servers_mysql import mysql_shell

TABLES = (
    "CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname VARCHAR(40), seen TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP)",
    (
        "CREATE TABLE usr_phone (idu INTEGER NOT NULL, phone VARCHAR(40) NOT NULL, PRIMARY KEY (idu, phone),"
        " FOREIGN KEY (idu) REFERENCES usr (idu))"
    ),
)


@pytest.fixture(params=mysqls())
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def copy(engine: Engine) -> Iterator[Engine]:
    """A database beside the first one, which is empty."""
    url = engine.url.set(database=f"{engine.url.database}_copy")
    run(engine, f"CREATE DATABASE {url.database}")
    made = create_engine(url)
    yield made
    made.dispose()
    run(engine, f"DROP DATABASE {url.database}")


def run(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def logged(engine: Engine, log: str = "event_log") -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        rows = connection.execute(text(f"SELECT table_name, table_key FROM {log} ORDER BY record_id")).all()
    return [tuple(row) for row in rows]


def restore(engine: Engine, copy: Engine) -> None:
    """Restore a dump of one database as another one, as its documentation says."""
    if shutil.which("mariadb-dump") is None:
        absent("mariadb", "mariadb-dump is not on this machine")
    url = engine.url
    is_mysql = not getattr(engine.dialect, "is_mariadb", False)
    dump, shell = (mysql_shell("mysqldump"), mysql_shell()) if is_mysql else (["mariadb-dump"], ["mariadb"])
    login = ["-h", str(url.host), "-P", str(url.port), "--protocol=tcp", "-u", str(url.username)]
    command = [*dump, *login, *(["--set-gtid-purged=OFF"] if is_mysql else []), str(url.database)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    subprocess.run([*shell, *login, str(copy.url.database)], check=True, capture_output=True, text=True, input=told)


@pytest.mark.parametrize("style", ["row-back", "field-back", "field", "image"])
@pytest.mark.parametrize("named", ["the log", "the log and the tables", "the schema of the tables", "nothing"])
def test_a_copy_writes_into_its_own_log(engine: Engine, copy: Engine, style: str, named: str) -> None:
    own = engine.url.database
    names = LogNames() if named == "nothing" else LogNames(schema=own)
    usr = f"{own}.usr" if named == "the log and the tables" else "usr"
    run(engine, *TABLES)
    install(engine, names)
    options = TriggerOptions(style=Style(style), children=("usr_phone",))
    track(engine, [usr], options, names, own if named == "the schema of the tables" else None)
    run(engine, "INSERT INTO usr VALUES (1, 'Ada', NULL)")
    restore(engine, copy)
    before = logged(engine)
    assert logged(copy) == before
    run(copy, "UPDATE usr SET fname = 'Bob'", "INSERT INTO usr_phone VALUES (1, '123')", "DELETE FROM usr_phone")
    assert logged(engine) == before
    assert len(logged(copy)) >= len(before) + 3
    copied = LogNames(schema=copy.url.database)
    for log in (LogNames(), copied):
        assert {state.state for state in trigger_states(copy, log)} == {TriggerCondition.CURRENT}
    assert track(copy, ["usr"], None, copied)
    run(copy, "UPDATE usr SET fname = 'Eve'")
    assert logged(engine) == before


def test_a_log_in_another_database_gets_the_changes_of_each(engine: Engine, copy: Engine) -> None:
    """A name without a database would mean the one of the table."""
    names = LogNames(schema=engine.url.database)
    install(engine, names)
    run(copy, *TABLES)
    track(copy, ["usr"], TriggerOptions(), names)
    run(engine, *TABLES)
    track(engine, ["usr", f"{copy.url.database}.usr"], TriggerOptions(), names)
    run(copy, "INSERT INTO usr VALUES (1, 'Ada', NULL)")
    run(engine, "INSERT INTO usr VALUES (2, 'Bob', NULL)")
    assert logged(engine) == [(f"{copy.url.database}.usr", "idu=1"), ("usr", "idu=2")]
    assert {state.state for state in trigger_states(engine, names)} == {TriggerCondition.CURRENT}
