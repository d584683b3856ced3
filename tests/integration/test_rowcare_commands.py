"""The commands of row care as people call them: what they print, as JSON too, and what they refuse."""

from __future__ import annotations

import json
from datetime import datetime
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from eventlog.cli.log import COLUMNS
from eventlog.cli.main import exit_code
from eventlog.core.errors import EX_CONFIG, EX_USAGE, OK
from tests.conformance.event_logs import LogTable, installed


@pytest.fixture
def log(tmp_path: Path) -> LogTable:
    return installed(create_engine(f"sqlite:///{tmp_path / 'app.db'}"))


@pytest.fixture
def call(log: LogTable, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command on the log; gives its exit code, what it printed, and what it said on the side."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = exit_code([*arguments, "--database", str(log.engine.url)])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("command", ["log", "hold", "release", "requeue", "purge", "receive"])
def test_every_command_helps_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code([command, "--help"]) == OK
    assert f"Example: eventlog {command}" in " ".join(capsys.readouterr().out.split())


def test_the_log_is_a_table_or_json(
    log: LogTable,
    call: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    log.write(1, status="S", new_value="x" * 100)
    log.write(2, "idu=2", status="E")
    code, printed, _ = call("log")
    heading, _, first, second = [line for line in printed.splitlines() if line.strip()]
    assert code == OK
    assert heading.split() == list(COLUMNS)
    assert f" {'x' * 50}… " in first
    assert second.split()[:2] == ["2", "E"]
    rows = json.loads(call("log", "--status", "S", "--json")[1])
    assert [(row["record_id"], row["new_value"]) for row in rows] == [(1, "x" * 100)]
    assert "T" in rows[0]["event_time"]
    datetime.fromisoformat(rows[0]["event_time"])  # or it raises
    assert call("log", "--table", "nowhere")[1].startswith("No row of the log is about nowhere. ")


def test_following_gives_a_line_a_row_until_it_is_interrupted(
    log: LogTable, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write(1)
    looks = iter([lambda: log.write(2, "idu=2")])

    def sleep(_: float) -> None:
        try:
            next(looks)()
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr("eventlog.cli.log.time.sleep", sleep)
    code, printed, _ = call("log", "--follow", "--json")
    assert code == 130
    assert [json.loads(line)["record_id"] for line in printed.splitlines()] == [1, 2]


def test_rows_are_held_released_and_requeued(log: LogTable, call: Any) -> None:
    log.write_all([1, 2, 3])
    assert call("hold", "1", "2-9", "--why", "ask first") == (OK, "3 waiting rows held.\n", "")
    held = json.loads(call("log", "--reason", "held", "--json")[1])[0]
    assert held["record_id"] == 1
    assert held["note"].startswith("held since ")
    assert held["note"].endswith(f" by {getuser()}: ask first")
    assert call("release", "2") == (OK, "1 row released.\n", "")
    assert json.loads(call("release", "--all", "--json")[1]) == {"released": 2}
    log.run("UPDATE event_log SET status = 'E'")
    assert call("requeue", "--status", "E", "--table", "usr") == (OK, "3 rows wait again.\n", "")
    assert json.loads(call("requeue", "1-3", "--json")[1]) == {"requeued": 0}


def test_old_rows_are_archived_and_deleted(log: LogTable, call: Any, tmp_path: Path) -> None:
    for number, status in enumerate("SEF", start=1):
        log.write(number, status=status, event_time="2020-01-01 00:00:00")
    folder = tmp_path / "history"
    code, printed, _ = call("purge", "--older-than", "30d", "--yes", "--archive", str(folder))
    assert (code, "".join(printed.split())) == (OK, f"2rowsdeleted,2archivedin1filein{folder}.")
    assert json.loads(call("purge", "--older-than", "1w", "--status", "F", "--yes", "--json")[1])["rows"] == 1
    assert call("purge", "--older-than", "1w", "--yes")[1] == "0 rows deleted.\n"
    assert log.statuses() == {}


@pytest.mark.parametrize(
    "arguments,said",
    [
        (["hold"], "Missing argument"),
        (["hold", "x"], "'x' is no record_id"),
        (["release"], "their numbers, or --all"),
        (["release", "1", "--all"], "their numbers, or --all"),
        (["requeue"], "their numbers, or --status E"),
        (["requeue", "--table", "usr"], "their numbers, or --status E"),
        (["requeue", "--status", "N"], "--status N cannot be meant here; it takes S, W, E, F."),
        (["purge", "--older-than", "soon"], "'soon' is no age"),
        (["purge", "--older-than", "1d", "--status", "X"], "it takes N, S, W, E, F."),
        (["purge", "--older-than", "1d", "--table", " "], "--table needs the name of a table."),
        (["log", "--status", "ABCDEF"], "up to 5 letters"),
    ],
)
def test_what_cannot_be_meant_is_refused(call: Any, arguments: list[str], said: str) -> None:
    code, _, error = call(*arguments)
    assert code == EX_USAGE
    assert said in error


@pytest.mark.parametrize("arguments", [["log"], ["hold", "1"], ["requeue", "1"], ["purge", "--older-than", "1d"]])
def test_without_its_companions_a_log_says_what_to_do(log: LogTable, call: Any, arguments: list[str]) -> None:
    log.run("DROP TABLE event_log_outcome")
    code, _, error = call(*arguments)
    assert code == EX_CONFIG
    assert "`eventlog install --log event_log` makes it" in error
