"""`eventlog refresh --jobs` on PostgreSQL as a process: killed, interrupted, robbed of a session, and gone on with."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Any

import pytest
from sqlalchemy import Connection, Engine, NullPool, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.refresh.chunks import GO_ON
from eventlog.tracked.options import TriggerOptions
from tests.acceptance.command import eventlog
from tests.integration.publishing import until, url_of
from tests.support.forking import Forked
from tests.support.logged import run

COUNT = 3000


@pytest.fixture
def site(postgresql: Engine) -> Engine:
    """A tracked table whose rows nobody logged, and a smaller one beside it."""
    run(
        postgresql,
        "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(20))",
        "CREATE TABLE grp (name VARCHAR(20) NOT NULL PRIMARY KEY)",
        f"INSERT INTO usr SELECT n, 'n' FROM generate_series(1, {COUNT}) AS n",
        "INSERT INTO grp SELECT 'group ' || n FROM generate_series(1, 100) AS n",
    )
    install(postgresql)
    track(postgresql, ["usr", "grp"], TriggerOptions())
    return postgresql


def asked(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def written(engine: Engine) -> int:
    [(rows,)] = asked(engine, "SELECT count(*) FROM event_log")
    return int(rows)


def refresh(engine: Engine, *options: str) -> tuple[str, ...]:
    return ("refresh", "usr", *options, "--database", url_of(engine))


def refreshed(engine: Engine, *options: str) -> str:
    """What is said of a load that came to its end."""
    done = eventlog(*refresh(engine, *options))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


class Broken:
    """A load that has written rows of each of its three ranges and can write no more until it is let go."""

    def __init__(self, process: Forked, err: IO[str], gate: Connection) -> None:
        self.process = process
        self._err = err
        self._gate = gate

    def let_go(self) -> None:
        self._gate.execute(text("SELECT pg_advisory_unlock_all()"))

    def said(self) -> str:
        """What it says in the end, once it can go on."""
        self.let_go()
        self.process.wait(120)
        self._err.seek(0)
        return self._err.read()


@contextmanager
def on_its_way(engine: Engine, program: str = "") -> Iterator[Broken]:
    """A load in three jobs, a row at a time; a trigger has each wait in the middle of its range."""
    run(
        engine,
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN PERFORM pg_advisory_xact_lock_shared(18); RETURN NEW; END$$",
        "CREATE TRIGGER gate BEFORE INSERT ON event_log FOR EACH ROW"
        " WHEN (NEW.table_key LIKE '%50') EXECUTE FUNCTION wait()",
    )
    command = refresh(engine, "--jobs", "3", "--chunk", "1")
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    gatekeeper = create_engine(engine.url, poolclass=NullPool)
    with gatekeeper.connect() as gate:
        gate.execute(text("SELECT pg_advisory_lock(18)"))
        with TemporaryFile("w+") as err:
            process = Forked(*command, environment=os.environ, err=err, program=program)
            try:
                until(lambda: asked(engine, waiting) == [(3,)], "three ranges are begun")
                yield Broken(process, err, gate)
            finally:
                process.kill()
                process.wait(60)


def check_it_goes_on(engine: Engine, jobs: int) -> None:
    before = written(engine)
    assert 3 <= before < COUNT
    said = f"usr: {COUNT:,} rows wait to be published, {before} of them before it was interrupted.\n"
    assert refreshed(engine, "--jobs", str(jobs)) == said
    assert asked(engine, "SELECT count(*), count(DISTINCT table_key) FROM event_log") == [(COUNT, COUNT)]
    assert asked(engine, "SELECT 1 FROM event_log_mark WHERE name LIKE 'refresh%'") == []


@pytest.mark.parametrize("jobs", [1, 5])
def test_one_that_was_killed_goes_on_with_another_number_of_jobs(site: Engine, jobs: int) -> None:
    with on_its_way(site) as load:
        os.kill(load.process.pid, signal.SIGKILL)
        assert load.process.wait() == -signal.SIGKILL
        load.let_go()
    until(lambda: len(asked(site, "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()")) == 1, "its end")
    check_it_goes_on(site, jobs)


def test_a_session_that_is_lost_ends_all_with_a_sentence(site: Engine) -> None:
    with on_its_way(site) as load:
        asked(
            site, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted LIMIT 1"
        )
        said = load.said()
    assert load.process.returncode == 75
    assert said.startswith("eventlog: The event log public.event_log cannot be used: ")
    assert said.strip().endswith(GO_ON)
    check_it_goes_on(site, 3)
