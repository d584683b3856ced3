"""No session waits for ever: limits of statements and locks, by default and as configured, on servers and Oracle's driver."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import oracledb
import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

from eventlog.core.errors import ConfigError, SourceError
from eventlog.daemon.publisher import Publisher
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.sql.access import is_passing, transaction
from eventlog.sql.connect import connect, limit_sessions
from tests.integration.publishing import config_of, site
from tests.oracle.recorder import Recorder
from tests.support.logged import with_bare_names
from tests.support.servers import databases, mysqls

ENDLESS = {"postgresql": "SELECT pg_sleep(60)", "mysql": "SELECT SLEEP(60) FROM usr"}


@pytest.fixture(params=[name for name in databases() if name != "sqlite"])
def server(request: pytest.FixtureRequest) -> Engine:
    """An engine on each server."""
    found: Engine = request.getfixturevalue(request.param)
    return found


def named_so(connection: Connection) -> str | None:
    """What the session's program is called; MySQL would tell by a part of it that the tests' server has not switched on."""
    if connection.dialect.name == "postgresql":
        query = "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        return connection.execute(text(query)).scalar()
    named: str = connection.connection.driver_connection._connect_attrs["program_name"]  # type: ignore[union-attr]  # it is open
    return named


@pytest.mark.parametrize(
    "database, option", [("postgresql", "application_name"), ("mariadb", "program_name"), ("mysql", "program_name")]
)
def test_whoever_looks_at_sessions_sees_which_are_ours(
    request: pytest.FixtureRequest, database: str, option: str
) -> None:
    url = request.getfixturevalue(database).url
    for given, seen in ((url, "eventlog"), (url.update_query_dict({option: "nightly"}), "nightly")):
        engine = connect(given.render_as_string(hide_password=False))
        with engine.connect() as connection:
            assert named_so(connection) == seen
        engine.dispose()


@contextmanager
def limited(engine: Engine, statements: float | None = None, locks: float | None = None) -> Iterator[Engine]:
    found = with_bare_names(connect(engine.url.render_as_string(hide_password=False)))
    limit_sessions(found, statements, locks)
    yield found
    found.dispose()


def refusal(engine: Engine, statement: str) -> tuple[SourceError, float]:
    """What is said of a statement that does not come to its end, and after how many seconds."""
    began = time.monotonic()
    with pytest.raises(SourceError) as told, transaction(engine, "The log") as connection:
        connection.execute(text(statement))
    return told.value, time.monotonic() - began


def test_a_statement_that_takes_too_long_is_ended_and_may_be_tried_again(server: Engine) -> None:
    site(server).run("INSERT INTO usr (idu) VALUES (1)")
    with limited(server, statements=0.3) as engine:
        error, seconds = refusal(engine, ENDLESS[server.dialect.name])
    assert error.may_pass
    assert seconds < 20


def test_a_row_and_a_table_that_somebody_locks_are_not_waited_for_for_ever(server: Engine) -> None:
    site(server).run("INSERT INTO usr (idu) VALUES (1)")
    with limited(server, locks=0.3) as engine, server.begin() as holder:
        holder.execute(text("SELECT * FROM usr FOR UPDATE")).all()
        for statement in ("UPDATE usr SET fname = 'a'", "ALTER TABLE usr ADD COLUMN v INTEGER"):
            error, seconds = refusal(engine, statement)
            assert error.may_pass
            assert re.search("ock (wait )?timeout", error.message)
            assert seconds < 20


def test_a_limit_that_a_database_cannot_keep_is_refused(sqlite: Engine) -> None:
    with pytest.raises(ConfigError, match=r"source.statement_timeout cannot be set: sqlite has no such limit"):
        limit_sessions(sqlite, 5.0, None)


def test_a_server_that_does_not_answer_is_given_up(postgresql: Engine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        engine = connect(f"postgresql+psycopg://postgres@127.0.0.1:{silent.getsockname()[1]}/app?connect_timeout=2")
        limit_sessions(engine, None, None)
        with pytest.raises(OperationalError, match="timeout"):
            engine.connect()
    with limited(postgresql) as engine, engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        assert driver.info.get_parameters()["tcp_user_timeout"] == "30000"


@pytest.mark.parametrize("database", mysqls())
def test_without_being_told_it_waits_for_five_minutes_and_half_a_minute(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server: Engine = request.getfixturevalue(database)
    site(server)
    with Publisher(config_of(server, tmp_path / "out")) as publisher:
        assert publisher.run_once().events == 0
        with publisher.post.engine.connect() as connection:
            waits = connection.execute(text("SELECT @@lock_wait_timeout, @@innodb_lock_wait_timeout")).one()
            names = ("max_statement_time", "max_execution_time")
            asked = [connection.execute(text(f"SHOW SESSION VARIABLES LIKE '{name}'")).all() for name in names]
            driver: Any = connection.connection.driver_connection
            assert driver._read_timeout == 330  # a server that has vanished does not answer at all
    assert tuple(waits) == (30, 30)
    assert {float(value) for rows in asked for _, value in rows} <= {300.0, 300_000.0}
    assert any(asked)


@pytest.mark.parametrize("lease, action", [(None, "read"), (60.0, "publish")])
def test_oracles_sessions_say_to_a_dba_who_they_are(lease: float | None, action: str) -> None:
    oracle = Recorder()
    limit_sessions(oracle.engine, None, None, lease)
    with oracle.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        assert (driver.module, driver.action) == ("eventlog", action)


def test_oracles_driver_ends_calls_and_what_it_says_then_may_pass() -> None:
    oracle = Recorder()
    limit_sessions(oracle.engine, None, None)
    with oracle.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        assert driver.call_timeout == 300_000
    with pytest.raises(ConfigError, match="lock_timeout cannot be set: oracle has no such limit"):
        limit_sessions(oracle.engine, 5.0, 5.0)


class Told:
    """What oracledb puts into its errors."""

    def __init__(self, code: int, full_code: str, recoverable: bool = False) -> None:
        self.code, self.full_code, self.isrecoverable = code, full_code, recoverable


@pytest.mark.parametrize(
    "told, passes",
    [
        (Told(0, "DPY-4024"), True),  # the call took too long
        (Told(0, "DPY-4011", recoverable=True), True),  # the connection was closed
        (Told(3113, "ORA-03113", recoverable=True), True),
        (Told(60, "ORA-00060"), True),  # a deadlock
        (Told(942, "ORA-00942"), False),
        (Told(0, "DPY-4009"), False),
    ],
)
def test_which_of_oracles_errors_pass_by_waiting(told: Told, passes: bool) -> None:
    assert is_passing(ORACLE, oracledb.DatabaseError(told)) is passes
