"""A followed log whose driver is killed, again and again: each row is converted once, with the bytes of a conversion in one go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Engine

from eventlog.convert import local
from eventlog.convert.settings import MessageFiles
from eventlog_spark.following import follow
from tests.conformance.event_logs import LogTable, installed
from tests.spark.inputs import Row, order, write_rows
from tests.spark.killed import ADDRESS_MOMENTS, BATCH_ROWS, MOMENTS, SENT_MOMENTS, SETTINGS, followed
from tests.spark.processes import assert_killed, started
from tests.support.servers_kafka import consumed, stand_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 4 * BATCH_ROWS
TIME = "2026-01-01 00:00:00"
OBJECTS = 7


@pytest.fixture
def log(sqlite: Engine) -> LogTable:
    """Four batches of rows, whose objects stand in all of them."""
    found = installed(sqlite)
    for number in range(1, COUNT + 1):
        found.write(number, f"idu={number % OBJECTS}", event_time=TIME, event_type=2, new_value=f"n{number}")
    return found


def killed(log: LogTable, out: Path | str, moment: str, servers: str = "", batch: int = 2) -> None:
    """A driver came to the moment."""
    folder = Path(str(log.engine.url.database)).parent
    assert_killed(started("killed", folder, moment, str(batch), str(log.engine.url), str(out), servers))


def finish(spark: SparkSession, log: LogTable, out: Path | str, servers: str = "") -> None:
    """The same command once more, which nobody kills."""
    follow(followed(str(log.engine.url), str(out), servers), lambda *_: None)


def expected(folder: Path, batches: int = COUNT // BATCH_ROWS) -> dict[str, dict[str, bytes]]:
    """What the local engine makes of each batch, its numbers behind those of the batch before."""
    found: dict[str, dict[str, bytes]] = {}
    after = ""
    for batch in range(batches):
        numbers = range(batch * BATCH_ROWS + 1, (batch + 1) * BATCH_ROWS + 1)
        rows: list[Row] = [
            (n, "N", 2, TIME, None, "usr", f"idu={n % OBJECTS}", "fname", None, f"n{n}") for n in numbers
        ]
        file = write_rows(folder / f"{batch}.parquet", rows)
        told = order(file, folder / f"{batch}", format=MessageFiles(settings=SETTINGS), after=after)
        after = local.convert(told, jobs=1).change_seq
        found[f"batch-{batch:08d}"] = written(folder / f"{batch}")
    return found


def written(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_whole(out: Path, folder: Path, batches: int = COUNT // BATCH_ROWS) -> None:
    folder.mkdir()
    assert {place.name: written(place) for place in out.glob("batch-*")} == expected(folder, batches)
    assert not any((out / "_rows").glob("batch-*"))


@pytest.mark.long
def test_a_driver_that_is_killed_before_spark_notes_its_batch(
    spark: SparkSession, log: LogTable, tmp_path: Path
) -> None:
    """Somebody has taken the output away already; it is not made again."""
    log.run(f"DELETE FROM event_log WHERE record_id > {2 * BATCH_ROWS}")
    killed(log, tmp_path / "out", "the batch is taken", batch=1)
    taken = tmp_path / "out" / "batch-00000000"
    taken.rename(tmp_path / "taken")
    finish(spark, log, tmp_path / "out")
    assert not taken.exists()
    (tmp_path / "taken").rename(taken)
    assert_whole(tmp_path / "out", tmp_path / "expected", batches=2)


@pytest.mark.long
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_driver_that_is_killed_at_any_moment(spark: SparkSession, log: LogTable, tmp_path: Path, moment: str) -> None:
    killed(log, tmp_path / "out", moment)
    finish(spark, log, tmp_path / "out")
    assert_whole(tmp_path / "out", tmp_path / "expected")


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "moment",
    [pytest.param(one, marks=[pytest.mark.long] if one != "one file has its name" else []) for one in ADDRESS_MOMENTS],
)
def test_a_driver_that_writes_to_an_address(spark: SparkSession, log: LogTable, tmp_path: Path, moment: str) -> None:
    out = f"file:{tmp_path}/out"
    killed(log, out, moment)
    finish(spark, log, out)
    (tmp_path / "expected").mkdir()
    for batch, files in expected(tmp_path / "expected").items():
        found, same = written(tmp_path / "out" / batch), {name for name in files if name.endswith(".jsonl")}
        assert {name: found[name] for name in same} == {name: files[name] for name in same}
        names = {name for name in found if not name.endswith(".crc")}
        # An address has a folder of outcomes, for whoever writes there may write several at once.
        assert {name.removesuffix("/part-00000.parquet") for name in names} == set(files)


@pytest.mark.long
@pytest.mark.parametrize("moment", [*MOMENTS, *SENT_MOMENTS])
def test_messages_of_a_driver_that_is_killed(spark: SparkSession, log: LogTable, tmp_path: Path, moment: str) -> None:
    with stand_in() as servers:
        killed(log, tmp_path / "out", moment, servers)
        finish(spark, log, tmp_path / "out", servers)
        found = [one.value or b"" for one in consumed(servers, "usr")]
    values = sorted(b"n%d" % number for number in range(1, COUNT + 1))
    assert sorted(value for message in found for value in values if b'"%s"' % value in message) == values
