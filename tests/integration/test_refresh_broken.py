"""`eventlog refresh --jobs` on PostgreSQL as a process: killed, interrupted, robbed of a session, and gone on with."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.refresh import GO_ON
from eventlog.sql.install import install
from eventlog.sql.triggers import Options, track
from tests.integration.publishing import until, url_of
from tests.logged import run

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
    track(postgresql, ["usr", "grp"], Options())
    return postgresql


def asked(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def written(engine: Engine) -> int:
    [(rows,)] = asked(engine, "SELECT count(*) FROM event_log")
    return int(rows)


def refresh(engine: Engine, *options: str) -> list[str]:
    return [sys.executable, "-m", "eventlog", "refresh", "usr", *options, "--database", url_of(engine)]


def refreshed(engine: Engine, *options: str) -> str:
    """What is said of a load that came to its end."""
    done = subprocess.run(refresh(engine, *options), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@contextmanager
def on_its_way(engine: Engine) -> Iterator[subprocess.Popen[str]]:
    """A load in three jobs that has begun each of their ranges, a row at a time."""
    command = refresh(engine, "--jobs", "3", "--chunk", "1")
    begun = "SELECT count(*) FROM event_log_mark WHERE name LIKE 'refresh%' AND value LIKE '%\"rows\"%'"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: asked(engine, begun)[0][0] >= 3, "three ranges are begun")
            yield process
        finally:
            process.kill()


def check_it_goes_on(engine: Engine, jobs: int) -> None:
    before = written(engine)
    assert 3 <= before < COUNT
    said = f"usr: {COUNT} row(s) wait to be published as they are, {before} of them before it was broken off.\n"
    assert refreshed(engine, "--jobs", str(jobs)) == said
    assert asked(engine, "SELECT count(*), count(DISTINCT table_key) FROM event_log") == [(COUNT, COUNT)]
    assert asked(engine, "SELECT 1 FROM event_log_mark WHERE name LIKE 'refresh%'") == []


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_one_that_was_killed_goes_on_with_another_number_of_jobs(site: Engine, jobs: int) -> None:
    with on_its_way(site) as process:
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    until(lambda: len(asked(site, "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()")) == 1, "its end")
    check_it_goes_on(site, jobs)


def test_who_interrupts_it_is_told_how_far_it_came(site: Engine) -> None:
    with on_its_way(site) as process:
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    told = re.search(r"usr: (\d+) row\(s\) are written\. (.*)", said)
    assert told is not None
    assert (int(told[1]), told[2]) == (written(site), GO_ON)
    check_it_goes_on(site, 2)


def test_a_session_that_is_lost_ends_all_with_a_sentence(site: Engine) -> None:
    others = "datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%event_log%'"
    with on_its_way(site) as process:
        site.dispose()  # its sessions are none of the load's
        asked(site, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others} LIMIT 1")
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 75
    assert said.startswith("eventlog: The event log public.event_log cannot be used: ")
    assert said.strip().endswith(GO_ON)
    check_it_goes_on(site, 3)


def test_several_tables_are_loaded_one_after_the_other(site: Engine) -> None:
    assert json.loads(refreshed(site, "grp", "--jobs", "4", "--chunk", "50", "--json")) == [
        {"table": "usr", "rows": COUNT, "before": 0},
        {"table": "grp", "rows": 100, "before": 0},
    ]
    told = "SELECT table_name, count(*), count(DISTINCT table_key) FROM event_log GROUP BY 1 ORDER BY 1"
    assert asked(site, told) == [("grp", 100, 100), ("usr", COUNT, COUNT)]
