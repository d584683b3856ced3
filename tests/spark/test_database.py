"""Logs converted on Spark where they lie: read side by side or in one piece, read back by workers, marked in the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from eventlog.convert import local
from eventlog.convert.settings import Conversion, DatabaseRows, LogInput, TableFiles
from eventlog.sql.reflect import reflect
from eventlog_spark import rows
from eventlog_spark.addresses import Addresses, convert_at
from eventlog_spark.convert import convert
from tests.conformance.event_logs import LogTable, installed
from tests.spark.inputs import output
from tests.support.changerows import CSV
from tests.support.converting import files_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["sqlite", "postgresql"])
def log(request: pytest.FixtureRequest) -> LogTable:
    """A log about a table, with rows of every sort, some of them held or done."""
    engine: Engine = request.getfixturevalue(request.param)
    found = installed(engine)
    found.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64), born DATE)")
    found.run("INSERT INTO usr VALUES (1, 'Jack', '2019-05-01'), (2, NULL, NULL)")
    for number in range(1, 200):
        found.write(number, f"idu={number % 50}", new_value=f"é<&>\n{number}")
    found.write(900, "idu=1", event_type=6, column_name=None, new_value=None)
    found.write(901, "idu=2", event_type=8, new_value=None)
    found.write(902, "idu=99", event_type=5, column_name=None, new_value=None)
    found.write(903, "nonsense")
    found.write(904, "idu=4", status="S")
    found.write(905, "idu=5", new_value="held")
    found.run("INSERT INTO event_log_hold (record_id) VALUES (905)")
    return found


def url(log: LogTable) -> str:
    return log.engine.url.render_as_string(hide_password=False)


def order(log: LogTable, destination: Path, statuses: str = "N", clock: str = "utc") -> Conversion:
    return Conversion(
        input=LogInput(url=url(log), statuses=statuses, clock=clock),
        destination=destination,
        catalog=reflect(log.engine, ["usr"]),
        read_back=DatabaseRows(url=url(log)),
        part_events=40,
    )


@pytest.mark.in_turn
@pytest.mark.parametrize("statuses", ["N", "NS"])
def test_the_bytes_are_those_of_the_local_engine(
    spark: SparkSession, log: LogTable, statuses: str, tmp_path: Path
) -> None:
    there = convert(order(log, tmp_path / "there", statuses))
    here = local.convert(order(log, tmp_path / "here", statuses), jobs=1)
    assert there == here
    assert there.rows == (203 if statuses == "N" else 204)
    assert output(tmp_path / "there") == output(tmp_path / "here")


@pytest.mark.in_turn
def test_rows_of_a_database_go_to_the_step_as_they_lie_and_are_stored_only_where_sessions_share_no_snapshot(
    spark: SparkSession, log: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Mock(wraps=rows.store_rows)
    monkeypatch.setattr(rows, "store_rows", store)
    there = convert_at(order(log, tmp_path / "none"), Addresses(destination=f"file:{tmp_path}/there"))
    here = local.convert(order(log, tmp_path / "here"), jobs=1)
    assert there == here
    assert store.call_count == (log.engine.dialect.name == "sqlite")
    names = sorted(path.name for path in (tmp_path / "here").glob("*.xml"))
    assert len(names) > 1
    for name in names:
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_who_is_behind_rows_is_told_as_by_the_local_engine(spark: SparkSession, log: LogTable, tmp_path: Path) -> None:
    log.run("ALTER TABLE event_log ADD COLUMN eventlog_context VARCHAR(400)")
    log.run("UPDATE event_log SET eventlog_context = 'alice' WHERE record_id < 20")
    log.run("UPDATE event_log SET eventlog_context = 'bob, \u201cthe other\u201d' WHERE record_id = 30")
    made = order(log, tmp_path / "there")
    assert isinstance(made.input, LogInput)
    made = replace(made, input=replace(made.input, who=True), who=True, format=TableFiles(files=CSV, who=True))
    convert(made)
    local.convert(replace(made, destination=tmp_path / "here"), jobs=1)
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")
    text = "".join(path.read_text() for path in (tmp_path / "here").rglob("*.csv"))
    assert "alice" in text
    assert "\u201cthe other\u201d" in text


@pytest.mark.in_turn
@pytest.mark.parametrize("clock", ["Europe/Berlin", "database"])
def test_times_of_a_place_are_told_in_utc_as_by_the_local_engine(
    spark: SparkSession, log: LogTable, clock: str, tmp_path: Path
) -> None:
    log.run("UPDATE event_log SET event_time = '2025-10-26 02:30:00' WHERE record_id < 50")
    if log.engine.name == "postgresql":
        log.run(f"ALTER DATABASE {log.engine.url.database} SET TimeZone = 'America/New_York'")
        log.engine.dispose()
    made = order(log, tmp_path / "there", clock=clock)
    rows = TableFiles(files=CSV)
    convert(replace(made, format=rows))
    local.convert(replace(made, format=rows, destination=tmp_path / "here"), jobs=1)
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")
    text = "".join(path.read_text() for path in (tmp_path / "here").rglob("*.csv"))
    if clock != "database":
        assert "2025-10-26 00:30:00.000000" in text
        assert "2025-03-23 09:57:19.000000" in text
    elif log.engine.name == "postgresql":
        assert "2025-10-26 06:30:00.000000" in text


def test_marks_are_written_after_the_output(
    spark: SparkSession, log: LogTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        exit_code(["convert", "database", url(log), "--engine", "spark", "--mark", "--out", str(tmp_path / "out")]) == 0
    )
    statuses = log.statuses()
    assert {number: statuses[number] for number in (1, 900, 901, 902, 903, 904, 905)} == {
        1: "S",
        900: "S",
        901: "S",
        902: "W",
        903: "E",
        904: "S",
        905: "N",
    }
    assert "1 row left waiting (held 1)" in capsys.readouterr().out
    assert set(statuses.values()) == {"S", "W", "E", "N"}
