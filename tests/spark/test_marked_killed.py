"""A driver that is killed while it converts to an address and marks: given the same order again, each row comes once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from eventlog.convert import marked_rows
from eventlog.convert.commit import MARKING, UNMARKED, WORK
from tests.conformance.event_logs import LogTable, installed
from tests.publisher.converting import converted
from tests.spark.marking import BATCH_ROWS, MOMENTS, RENAMES, TORN, command
from tests.spark.processes import apart, kill_tree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
ROWS = 35
HELD = 33
BAD = 34


@pytest.fixture
def log(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> LogTable:
    """A log with a row that is bad and one that is held, of objects that change again and again."""
    found = installed(sqlite)
    found.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64))")
    for number in range(1, ROWS + 1):
        key = {BAD: "nonsense", HELD: "idu=9"}.get(number, f"idu={number % 7}")
        found.write(number, key, new_value=f"n{number}")
    found.run(f"INSERT INTO event_log_hold (record_id) VALUES ({HELD})")
    monkeypatch.setattr(marked_rows, "BATCH_ROWS", BATCH_ROWS)
    return found


def run(log: LogTable, out: str, moment: str) -> subprocess.Popen[str]:
    """A driver on its way to the moment."""
    told = [sys.executable, "-m", "tests.spark.marking", moment, str(log.engine.url), out]
    env = apart(Path(str(log.engine.url.database)).parent)
    return subprocess.Popen(told, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def killed(log: LogTable, out: str, moment: str) -> None:
    """A driver came to the moment."""
    driver = run(log, out, moment)
    _, err = driver.communicate(timeout=3600)
    assert driver.returncode == -signal.SIGKILL, err[-3000:]


def assert_each_once(log: LogTable, folders: Sequence[Path]) -> None:
    """Each row that nobody holds stands in one output, has its letter, and nobody waits for anything."""
    statuses = log.statuses()
    good = [number for number in statuses if number not in (HELD, BAD)]
    assert sorted(number for folder in folders for number in converted(folder)) == good
    assert statuses == {number: {HELD: "N", BAD: "E"}.get(number, "S") for number in statuses}
    for name in ("batch", "planned", "parked"):
        assert log.ask(f"SELECT * FROM event_log_{name}") == [], name
    for folder in folders:
        assert not {WORK, UNMARKED, MARKING} & {entry.name for entry in folder.iterdir()}


def finish(log: LogTable, folder: Path, *, is_over: bool = False) -> list[Path]:
    """The same command once more, unless all of it is over, and one for a row that came meanwhile."""
    log.write(ROWS + 1, "idu=3", new_value="later")
    folders = [folder, folder.parent / "then"]
    for place in folders[is_over:]:
        assert exit_code(command(str(log.engine.url), f"file:{place}")) == 0
    return folders


@pytest.mark.in_turn
@pytest.mark.parametrize("moment", [*MOMENTS, *RENAMES, TORN])
def test_a_driver_that_is_killed_at_any_moment(spark: SparkSession, log: LogTable, tmp_path: Path, moment: str) -> None:
    out = tmp_path / "out"
    killed(log, f"file:{out}", moment)
    assert_each_once(log, finish(log, out, is_over=moment == "all is over"))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_a_driver_that_is_killed_at_no_moment_in_particular(
    spark: SparkSession, log: LogTable, tmp_path: Path, seed: int
) -> None:
    """With its Java, three times, when it has made some files more."""
    chance, out = random.Random(seed), tmp_path / "out"
    for _ in range(3):
        before, driver = {*out.rglob("*")}, run(log, f"file:{out}", "")
        wanted = chance.randrange(1, 40)
        while driver.poll() is None and len({*out.rglob("*")} - before) < wanted:
            time.sleep(0.01)
        kill_tree(driver.pid)
        driver.communicate()
    assert_each_once(log, finish(log, out))
