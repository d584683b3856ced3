"""How much memory a publisher has at most, as a process of its own: large values, very many rows of one object, and a held one.

EVENTLOG_MEMORY_SCALE multiplies what waits; 10 gives a hundred rows of 10 MB and a million rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.care.rows import hold
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import site, url_of

SCALE = int(os.environ.get("EVENTLOG_MEMORY_SCALE", "1"))
MOST_MB = 200
"""What the benchmark `memory` promises for values up to 10 MB."""

PROGRAM = """
import atexit, pathlib, re
from eventlog.cli.main import run
status = pathlib.Path("/proc/self/status")
peak = lambda: re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1]
atexit.register(lambda: pathlib.Path({noted!r}).write_text(peak()))
run()
"""
"""Notes the most kilobytes by itself: what the system tells of a child begins with what its parent had."""

NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})",
    "postgresql": "WITH numbers AS (SELECT n FROM generate_series({first}, {last}) AS n)",
}
INTO = (
    "INSERT INTO event_log (record_id, table_key, status, event_type, event_time, table_name, column_name, new_value)"
)
SELECT = " SELECT n, {key}, 'N', 2, '2026-01-01 00:00:00', 'usr', 'fname', {value} FROM numbers"
LARGE = {"sqlite": "replace(hex(zeroblob(5000000)), '0', 'x')", "postgresql": "repeat('0123456789', 1000000)"}


# The publisher reads both by the same code; PostgreSQL's driver holds a whole answer beside it, SQLite's a row.
@pytest.fixture(params=[pytest.param("sqlite", marks=pytest.mark.long), "postgresql"])
def log(request: pytest.FixtureRequest) -> LogTable:
    engine: Engine = request.getfixturevalue(request.param)
    return site(engine)


def fill(log: LogTable, first: int, last: int, key: str = "'idu=1'", value: str = "CAST(n AS varchar(9))") -> None:
    name = log.engine.dialect.name
    numbers = NUMBERS[name].format(first=first, last=last)
    rows = SELECT.format(key=key, value=value)
    log.run(f"{numbers} {INTO} {rows}" if name == "sqlite" else f"{INTO} {numbers} {rows}")


def published(log: LogTable, folder: Path) -> float:
    """Publishes what waits; the most megabytes that this took."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    environment |= {"EVENTLOG_SOURCE__URL": url_of(log.engine), "EVENTLOG_PUBLISHER__BATCH_SIZE": "128"}
    environment |= {"EVENTLOG_PUBLISHER__ALLOW_LOOPBACK": "yes"}
    noted = folder.with_suffix(".peak")
    program = PROGRAM.format(noted=str(noted))
    command = [sys.executable, "-c", program, "run", "--until-empty", "--out", str(folder), "--log-level", "error"]
    subprocess.run(command, env=environment, check=True)
    return int(noted.read_text()) / 1024


def waiting(log: LogTable) -> int:
    return int(log.ask("SELECT count(*) FROM event_log WHERE status = 'N'")[0][0])


@pytest.mark.in_turn
def test_rows_of_10_mb_are_published_one_after_the_other(log: LogTable, tmp_path: Path) -> None:
    rows = 10 * SCALE
    fill(log, 1, rows, key="'idu=' || n", value=LARGE[log.engine.dialect.name])
    peak = published(log, tmp_path / "out")
    assert waiting(log) == 0
    assert sum(path.stat().st_size for path in (tmp_path / "out").glob("*.xml")) > rows * 10_000_000
    assert peak < MOST_MB


@pytest.mark.in_turn
def test_rows_of_10_mb_that_are_read_back_are_too(log: LogTable, tmp_path: Path) -> None:
    rows = 10 * SCALE
    log.run("CREATE TABLE photo (idu INTEGER NOT NULL PRIMARY KEY, content TEXT)")
    name = log.engine.dialect.name
    numbers, value = NUMBERS[name].format(first=1, last=rows), LARGE[name]
    into, selected = "INSERT INTO photo", f"SELECT n, {value} FROM numbers"
    log.run(f"{numbers} {into} {selected}" if name == "sqlite" else f"{into} {numbers} {selected}")
    for number in range(1, rows + 1):
        log.write(number, key=f"idu={number}", table_name="photo", event_type=6, column_name=None, new_value=None)
    peak = published(log, tmp_path / "out")
    assert waiting(log) == 0
    assert sum(path.stat().st_size for path in (tmp_path / "out").glob("*.xml")) > rows * 10_000_000
    assert peak < MOST_MB


@pytest.mark.in_turn
def test_very_many_rows_of_one_object_take_no_more(log: LogTable, tmp_path: Path) -> None:
    rows = 100_000 * SCALE
    fill(log, 1, rows)
    peak = published(log, tmp_path / "out")
    assert waiting(log) == 0
    assert peak < MOST_MB


@pytest.mark.in_turn
def test_very_many_rows_behind_a_held_one_take_no_more(log: LogTable, tmp_path: Path) -> None:
    rows = 100_000 * SCALE
    fill(log, 1, rows)
    fill(log, rows + 1, rows + 1, key="'idu=2'")
    hold(Log(log.engine, log.names), [(1, 1)])
    peak = published(log, tmp_path / "out")
    assert waiting(log) == rows
    assert peak < MOST_MB


@pytest.mark.in_turn
def test_rows_up_to_the_limit_fit_the_memory_of_the_shipped_manifest(log: LogTable, tmp_path: Path) -> None:
    """512 MiB, as in docker/kubernetes/eventlog.yaml."""
    value = LARGE[log.engine.dialect.name]
    fill(log, 1, 3, key="'idu=' || n", value=" || ".join([value] * 6))
    fill(log, 4, 4, key="'idu=' || n", value=" || ".join([value] * 7))
    peak = published(log, tmp_path / "out")
    assert list(log.statuses().values()) == ["S", "S", "S", "E"]
    assert peak < 512 * 0.9
