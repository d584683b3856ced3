"""Logs that are converted to an address on Spark, and marked when the output is there, whatever failed before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from eventlog.convert import free_rows
from eventlog.convert.commit import SUCCESS, UNMARKED
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.convert.place import ConversionPlace
from eventlog.core.errors import SinkError
from eventlog_spark import storing
from eventlog_spark.hadoop import HadoopFolder
from tests.conformance.event_logs import LogTable, installed
from tests.support.converting import files_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDED = {1: "S", 30: "S", 31: "E", 32: "N", 33: "S"}


@pytest.fixture
def log(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> LogTable:
    """A log with a row that is bad and one that is held; a file of outcomes, and a transaction of marks, has few rows."""
    found = installed(sqlite)
    found.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64))")
    for number in range(1, 31):
        found.write(number, f"idu={number % 7}", new_value=f"é{number}")
    found.write(31, "nonsense")
    found.write(32, "idu=9", new_value="held")
    found.write(33, "idu=8", status="S")
    found.run("INSERT INTO event_log_hold (record_id) VALUES (32)")
    monkeypatch.setattr(free_rows, "PAGE_ROWS", 10)
    monkeypatch.setattr(storing, "OUTCOME_ROWS", 12)
    return found


def command(log: LogTable, out: object, *more: str) -> int:
    url = log.engine.url.render_as_string(hide_password=False)
    return exit_code(["convert", "database", url, "--out", str(out), "--part-events", "8", *more])


def outputs(folder: Path) -> dict[str, Any]:
    """What stands there; outcomes as rows, for Spark has them in several files."""
    found: dict[str, Any] = {
        name: content
        for name, content in files_of(folder).items()
        if not name.endswith(".crc") and not name.startswith((OUTCOMES_FILE, SUCCESS))
    }
    return found | {OUTCOMES_FILE: parquet.read_table(folder / OUTCOMES_FILE).to_pylist()}


def ends(log: LogTable) -> dict[int, str]:
    statuses = log.statuses()
    return {number: statuses[number] for number in ENDED}


def failing(kept: Any, call: int) -> Any:
    """The function, whose call of this number fails."""
    left = [call]

    def called(*told: Any, **more: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise SinkError("It is away.")
        return kept(*told, **more)

    return called


def test_the_output_is_that_of_a_folder_and_is_marked_by_who_gives_the_order_again(
    spark: SparkSession,
    log: LogTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    there, at = tmp_path / "there", f"file:{tmp_path}/there"
    assert command(log, tmp_path / "here", "--engine", "spark") == 0
    assert command(log, at) == 0
    assert (
        capsys.readouterr()
        .out.splitlines()[0::1][-1]
        .endswith("1 row left waiting (held 1); 1 bad: see outcomes.parquet.")
    )
    made = outputs(there)
    assert made == outputs(tmp_path / "here")
    assert UNMARKED in made
    assert len(list((there / OUTCOMES_FILE).glob("part-*.parquet"))) == 3
    assert ends(log)[1] == "N"
    with monkeypatch.context() as patch:
        patch.setattr(ConversionPlace, "mark", failing(ConversionPlace.mark, 2))
        assert command(log, at, "--mark") != 0
    assert list(log.statuses().values()).count("S") == 10
    assert "reserved" in (there / UNMARKED).read_text()
    assert command(log, at, "--overwrite", "--part-events", "7") == 64
    assert "were being marked" in capsys.readouterr().err
    assert command(log, at, "--mark") == 0
    assert "its rows are marked now" in capsys.readouterr().err
    assert ends(log) == ENDED
    assert outputs(there) == {name: content for name, content in made.items() if name != UNMARKED}


def test_rows_of_an_output_that_does_not_appear_are_given_back(
    spark: SparkSession,
    log: LogTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    there, at = tmp_path / "there", f"file:{tmp_path}/there"
    renamed = HadoopFolder._rename

    def last(folder: HadoopFolder, source: str, name: str) -> None:
        if name == SUCCESS:
            raise SinkError("It is away.")
        renamed(folder, source, name)

    with monkeypatch.context() as patch:
        patch.setattr(HadoopFolder, "_rename", last)
        assert command(log, at, "--mark") != 0
    assert [name for name in files_of(there) if not name.endswith(".crc")] == []
    assert set(ends(log).values()) == {"N", "S"}
    log.write(40, "idu=3", new_value="later")  # nobody has reserved anything, so it is converted with the others
    assert command(log, at, "--mark") == 0
    assert ends(log) == ENDED
    assert log.statuses()[40] == "S"
    assert 40 in [row["position"] for row in outputs(there)[OUTCOMES_FILE]]
    capsys.readouterr()
    assert command(log, at, "--mark") == 0
    assert "holds this conversion already" in capsys.readouterr().err
