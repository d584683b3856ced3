"""A publisher that is frozen, or cut off, blocks nobody for long, and stands by when it comes back."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import sleep
from typing import Final

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.core.model import Outcome, Reason, Status
from eventlog.daemon.publisher import Publisher
from eventlog.publisher.settling import settle
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import Stretches
from eventlog.sql.connect import limit_sessions
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable
from tests.hardening.proxy import Proxy
from tests.integration.publishing import Process, config_of, in_thread, published, settled, site, until

LEASE: Final = 2.0
"""Who is frozen would hold what it has for ever, so that it is replaced at all says that the lease ended that."""

FREEZING: Final = """
import os, signal
from eventlog.publisher.journal import Journal
move, frozen = Journal._move, []
def freeze(self, *given):
    move(self, *given)
    if not frozen:
        frozen.append(True)
        os.kill(os.getpid(), signal.SIGSTOP)
Journal._move = freeze
"""
"""Stops the process inside the first transaction that plans, with the journal and the lease locked."""


def state_of(process: Process) -> str:
    stat = Path(f"/proc/{process.process.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0]


@contextmanager
def standby(log: LogTable, out: Path) -> Iterator[Publisher]:
    with in_thread(Publisher(config_of(log.engine, out, lease=LEASE))) as second:
        until(lambda: second.vitals.reading().state == "standby", "the second one stands by")
        yield second


def comes_back(log: LogTable, first: Process, second: Publisher) -> None:
    """Whoever was frozen finds that it has lost the lock, stands by, and takes over when it is its turn."""
    first.tell(signal.SIGCONT)
    first.wait_for("standing_by")
    until(lambda: second.post.taken or first.actions().count("seat_taken") > 1, "one of them has the lock")
    second.stop()
    until(lambda: second.vitals.reading().state == "stopping", "the second one ends")
    second.close()
    first.wait_for("seat_taken", 2)
    log.write(2, key="idu=2")
    until(settled(log, 2), "the first one publishes again")
    assert first.stop() == 0


def test_who_is_frozen_between_two_batches_is_replaced(engine: Engine, tmp_path: Path) -> None:
    log = site(engine)
    with Process(engine, tmp_path / "out", lease=LEASE, polling_interval=1) as first:
        first.wait_for("seat_taken")
        with standby(log, tmp_path / "out") as second:
            freeze_without_locks(first, engine)
            log.write(1)
            until(settled(log, 1), "the second one publishes")
            assert state_of(first) == "T"
            comes_back(log, first, second)


def freeze_without_locks(process: Process, engine: Engine) -> None:
    """Freezes it when it has not locked an SQLite file, as it does for a moment when it renews its lease."""
    process.tell(signal.SIGSTOP)
    until(lambda: state_of(process) == "T", "it is frozen")
    while engine.dialect.name == "sqlite" and is_locked(str(engine.url.database)):
        process.tell(signal.SIGCONT)
        sleep(0.01)
        process.tell(signal.SIGSTOP)
        until(lambda: state_of(process) == "T", "it is frozen")


def is_locked(database: str) -> bool:
    with closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
        return False


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_who_is_frozen_inside_a_transaction_is_replaced(
    server: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine: Engine = request.getfixturevalue(server)
    log = site(engine)
    with Process(engine, tmp_path / "out", program=FREEZING, lease=LEASE, polling_interval=1) as first:
        first.wait_for("seat_taken")
        with standby(log, tmp_path / "out") as second:
            log.write(1)
            until(lambda: state_of(first) == "T", "the first one is frozen")
            until(settled(log, 1), "the second one publishes")
            assert state_of(first) == "T"
            comes_back(log, first, second)


@pytest.mark.parametrize(
    "server, limit, wanted",
    [
        ("postgresql", "SHOW idle_in_transaction_session_timeout", "14s"),
        ("mariadb", "SELECT @@idle_transaction_timeout", 14),
    ],
)
def test_a_transaction_may_be_idle_for_two_leases(
    server: str, limit: str, wanted: object, request: pytest.FixtureRequest
) -> None:
    made: Engine = request.getfixturevalue(server)
    engine = create_engine(made.url)
    limit_sessions(engine, None, None, 7.0)
    with engine.connect() as connection:
        assert connection.scalar(text(limit)) == wanted
    engine.dispose()


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_a_session_that_stands_still_and_has_only_locked_a_row_is_ended(
    server: str, request: pytest.FixtureRequest
) -> None:
    """Nobody else gets the row before, and the server may count such a transaction as one that reads."""
    other: Engine = request.getfixturevalue(server)
    site(other).run("INSERT INTO usr (idu) VALUES (1)")
    engine = create_engine(other.url)
    limit_sessions(engine, None, None, 0.5)
    with engine.connect() as connection:
        connection.execute(text("SELECT idu FROM usr WHERE idu = 1 FOR UPDATE"))
        with other.begin() as writing:
            writing.execute(text("UPDATE usr SET fname = 'Jack' WHERE idu = 1"))
        with pytest.raises(DBAPIError):
            connection.execute(text("SELECT 1"))
    engine.dispose()


def test_a_session_that_stands_still_after_it_has_noted_reasons_is_ended(postgresql: Engine) -> None:
    """Psycopg sends many records in a pipeline, and what ends a pipeline stops the server's clock for idle sessions."""
    log = site(postgresql)
    log.write_all([1, 2])
    engine = create_engine(postgresql.url)
    limit_sessions(engine, None, None, 0.5)
    watching = postgresql.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, watching.connect() as watch:
        mine = connection.scalar(text("SELECT pg_backend_pid()"))
        refused = Outcome(position=(1,), status=Status.ERROR, reason=Reason.REFUSED, note="no.")
        ended = dict.fromkeys((1, 2), refused)
        settle(connection, Log(engine, log.names), Stretches.of(ended), ended, LogSettings())
        alive = text(f"SELECT count(*) FROM pg_stat_activity WHERE pid = {mine}")
        until(lambda: not watch.scalar(alive), "the server ends the session")
        with pytest.raises(DBAPIError):
            connection.execute(text("SELECT 1"))
    engine.dispose()


def test_who_is_cut_off_from_the_database_is_replaced(postgresql: Engine, tmp_path: Path) -> None:
    log = site(postgresql)
    url = postgresql.url
    with Proxy(str(url.host), int(url.port or 0)) as proxy:
        behind = create_engine(url.set(port=proxy.port))
        with Process(behind, tmp_path / "out", lease=LEASE, polling_interval=1) as first:
            first.wait_for("seat_taken")
            with standby(log, tmp_path / "out") as second:
                proxy.delay = 3600.0
                log.write(1)
                until(settled(log, 1), "the second one publishes")
                proxy.delay = 0.0
                proxy.reset()
                comes_back(log, first, second)
    assert sorted(published(tmp_path / "out").values()) == [["1"], ["2"]]
