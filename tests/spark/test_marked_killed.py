"""A driver that is killed while it converts to an address and marks: given the same order again, each row comes once."""

from __future__ import annotations

import math
import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from eventlog.convert import free_rows
from eventlog.convert.commit import UNMARKED, WORK
from eventlog_spark.hadoop import HadoopFolder
from tests.conformance.event_logs import LogTable, installed
from tests.publisher.converting import converted
from tests.spark.marking import BATCH_ROWS, MOMENTS, RENAMES, command
from tests.spark.processes import assert_killed, kill_tree, kill_workers, started
from tests.spark.test_addresses import hdfs, s3a, settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 35
HELD = 33
BAD = 34
OUTPUTS = ("out", "then")
DAILY = ("the output is there", "some rows are marked")
"""In the steps that no conversion into a folder has; the others are asked with --long."""


@pytest.fixture
def log(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> LogTable:
    """A log with a row that is bad and one that is held, of objects that change again and again."""
    found = installed(sqlite)
    found.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64))")
    for number in range(1, ROWS + 1):
        key = {BAD: "nonsense", HELD: "idu=9"}.get(number, f"idu={number % 7}")
        found.write(number, key, new_value=f"n{number}")
    found.run(f"INSERT INTO event_log_hold (record_id) VALUES ({HELD})")
    monkeypatch.setattr(free_rows, "PAGE_ROWS", BATCH_ROWS)
    return found


def run(log: LogTable, out: str, moment: str, conf: Sequence[str] = ()) -> subprocess.Popen[str]:
    """A driver on its way to the moment."""
    return started("marking", Path(str(log.engine.url.database)).parent, moment, str(log.engine.url), out, *conf)


def kill_worker(driver: subprocess.Popen[str], seconds: float = math.inf) -> int:
    """Kills a worker as soon as the driver has one; how many, if it ends or the time is over before."""
    end = time.monotonic() + seconds
    while driver.poll() is None and time.monotonic() < end:
        if kill_workers(driver.pid, most=1):
            return 1
        time.sleep(0.01)
    return 0


def assert_each_once(log: LogTable, place: Path) -> None:
    """Each row that nobody holds stands in one output, has its letter, and nobody waits for anything."""
    statuses = log.statuses()
    good = [number for number in statuses if number not in (HELD, BAD)]
    assert sorted(number for name in OUTPUTS for number in converted(place / name)) == good
    assert statuses == {number: {HELD: "N", BAD: "E"}.get(number, "S") for number in statuses}
    for name in ("batch", "planned", "parked"):
        assert log.ask(f"SELECT * FROM event_log_{name}") == [], name
    for name in OUTPUTS:
        assert not {WORK, UNMARKED} & {entry.name for entry in (place / name).iterdir()}


def assert_each_once_at(log: LogTable, folder: HadoopFolder, place: Path) -> None:
    """The same, of outputs that are elsewhere."""
    place.mkdir()
    for name in OUTPUTS:
        folder.copy_out(name, str(place / name))
    assert_each_once(log, place)


def finish(log: LogTable, base: str, *, is_over: bool = False) -> None:
    """The same command once more, unless all of it is over, and one for a row that came meanwhile."""
    log.write(ROWS + 1, "idu=3", new_value="later")
    for name in OUTPUTS[is_over:]:
        assert exit_code(command(str(log.engine.url), f"{base}/{name}")) == 0


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "moment",
    [pytest.param(one, marks=[] if one in DAILY else [pytest.mark.long]) for one in [*MOMENTS, *RENAMES]],
)
def test_a_driver_that_is_killed_at_any_moment(spark: SparkSession, log: LogTable, tmp_path: Path, moment: str) -> None:
    base = f"file:{tmp_path}"
    assert_killed(run(log, f"{base}/out", moment))
    finish(log, base, is_over=moment == "all is over")
    assert_each_once(log, tmp_path)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(one, marks=[pytest.mark.long] if one != "some rows are marked" else [])
        for one in [*MOMENTS, *RENAMES]
    ],
)
@pytest.mark.parametrize("system", [hdfs, pytest.param(s3a, marks=pytest.mark.long)])
def test_a_driver_that_is_killed_on_another_file_system(
    spark: SparkSession, log: LogTable, tmp_path: Path, system: Any, moment: str
) -> None:
    with system(spark, tmp_path) as base:
        assert_killed(run(log, f"{base}/out", moment, settings_of(spark)))
        finish(log, base, is_over=moment == "all is over")
        assert_each_once_at(log, HadoopFolder(spark, base), tmp_path / "copied")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("system", [hdfs, s3a])
def test_drivers_and_workers_that_are_killed_at_no_moment_in_particular(
    spark: SparkSession, log: LogTable, tmp_path: Path, system: Any, seed: int
) -> None:
    """Three drivers, each some time after its first task; workers meanwhile, whose tasks Spark does again."""
    chance, workers = random.Random(seed), 0
    with system(spark, tmp_path) as base:
        folder = HadoopFolder(spark, base)
        for _ in range(3):
            driver = run(log, f"{base}/out", "", settings_of(spark))
            # However slow the machine is, it comes to its first task, unless all is over.
            workers += kill_worker(driver)
            for _ in range(chance.randrange(7)):
                time.sleep(chance.uniform(0.05, 0.5))
                # A quick machine has none for most of the time.
                workers += kill_worker(driver, 3)
            kill_tree(driver.pid)
            driver.communicate()
        finish(log, base)
        assert_each_once_at(log, folder, tmp_path / "copied")
    assert workers, "the first driver has tasks"
