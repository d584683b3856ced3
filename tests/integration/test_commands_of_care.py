"""Row care and outputs as people call them: what commands print, as JSON too, and what they refuse."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from eventlog.care.journal import CaredJournal
from eventlog.care.log_commands import COLUMNS
from eventlog.cli.main import exit_code
from eventlog.core.errors import EX_CONFIG, EX_USAGE, OK
from eventlog.core.model import Outcome
from eventlog.explain.states import OutputPlace, read_places
from eventlog.purge.deleting import Purged
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable, installed
from tests.support.log_rows import OUTPUT, LogRows


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
    looks, wait = iter([lambda: log.write(2, "idu=2")]), time.sleep

    def sleep(seconds: float) -> None:
        if threading.current_thread() is not threading.main_thread():  # of somebody else in this process
            wait(seconds)
            return
        try:
            next(looks)()
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr("eventlog.care.log_commands.time.sleep", sleep)
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


@pytest.fixture
def outputs(log: LogTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command with a configuration of two outputs; gives its exit code, what it printed, and what it said on the side."""
    config = tmp_path / "eventlog.toml"
    places = "".join(
        f'[[output]]\nname = "{name}"\nsink = "files"\npath = "{tmp_path / name}"\n' for name in ("near", "far")
    )
    config.write_text(f'[source]\nurl = "{log.engine.url}"\n{places}')

    def run(*arguments: str) -> tuple[int, str, str]:
        code = exit_code(["outputs", *arguments, "--config", str(config)])
        return code, *capsys.readouterr()

    return run


def behind(log: LogTable, name: str, rows: int) -> None:
    """So many rows are kept for an output, from a while ago."""
    for number in range(1, rows + 1):
        log.write(number, key=f"idu={number}")
    source = LogRows(log.engine, log.names)
    source.journal.serve([("near", ()), (name, ())])
    CaredJournal(source.journal.log).forget(OUTPUT, "ann")
    source.output = "near"
    batch = source.read(100)
    source.settle(batch, [Outcome(position=event.position) for event in batch.events])
    source.close()


def kept(log: LogTable) -> dict[str, OutputPlace]:
    known = Log(log.engine, log.names)
    with known.transaction() as connection:
        return read_places(connection, known)


def test_each_output_is_listed_with_how_far_it_is(log: LogTable, outputs: Any) -> None:
    behind(log, "far", 3)
    code, printed, _ = outputs("list")
    assert code == OK
    heading, _, near, far = [line for line in printed.splitlines() if line.strip()]
    assert heading.split()[:2] == ["output", "state"]
    assert near.split() == ["near", "up", "to", "date", "0"]
    assert far.split()[:3] == ["far", "lagging", "3"]
    code, printed, _ = outputs("list", "--json")
    assert code == OK
    [_, state] = json.loads(printed)
    assert (state["name"], state["state"], state["rows"]) == ("far", "lagging", 3)
    assert state["seconds"] > 0


def test_outputs_alone_lists_them_and_options_may_stand_before_the_verb(
    log: LogTable, outputs: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    behind(log, "far", 3)
    for words in ((), ("list",)):
        code, printed, _ = outputs(*words)
        first_words = [line.split()[0] for line in printed.splitlines() if line.strip()]
        assert (code, [word for word in first_words if word.isalpha()]) == (OK, ["output", "near", "far"])
    assert [one["name"] for one in json.loads(outputs("--json")[1])] == ["near", "far"]
    config = str(tmp_path / "eventlog.toml")
    assert exit_code(["outputs", "--config", config, "--json", "pause", "far"]) == OK
    assert json.loads(capsys.readouterr().out) == {"paused": "far"}
    assert kept(log)["far"].paused


def test_what_the_configuration_does_not_have_is_listed_where_rows_are_kept_for_it(log: LogTable, outputs: Any) -> None:
    behind(log, "old", 2)
    code, printed, _ = outputs("list")
    assert code == OK
    assert "The configuration has no output old, and nobody can publish without it." in printed
    assert ["old", "unknown"] in [line.split()[:2] for line in printed.splitlines()]
    assert outputs("forget", "near", "--yes")[0] == EX_USAGE
    assert outputs("forget", "old", "--dry-run")[1] == (
        "2 rows would never go to old, and nothing would be kept for it any more.\n"
    )
    code, printed, _ = outputs("forget", "old", "--yes")
    assert (code, printed) == (OK, "2 rows given up. Nothing is kept for old any more.\n")
    assert set(log.statuses().values()) == {"S"}, "near has them"
    assert [*kept(log)] == ["near"]


def test_an_output_is_paused_and_resumed(log: LogTable, outputs: Any) -> None:
    assert outputs("pause", "far", "--why", "they move")[1] == "far is paused.\n"
    assert (kept(log)["far"].paused or "").endswith("they move")
    assert outputs("pause", "far")[1] == "far was paused already.\n"
    assert ["far", "paused"] in [line.split()[:2] for line in outputs("list")[1].splitlines()]
    assert json.loads(outputs("resume", "far", "--json")[1]) == {"resumed": "far"}
    assert outputs("resume", "far")[1] == "far was not paused.\n"
    assert kept(log)["far"].paused is None


def test_who_does_not_know_the_name_is_told_the_nearest(log: LogTable, outputs: Any) -> None:
    for verb in ("pause", "resume"):
        code, _, said = outputs(verb, "fra")
        assert code == EX_USAGE
        assert "'fra' is no output of the configuration." in said
        assert "far" in said
    code, _, said = outputs("skip", "far", "1", "--yes")
    assert code == EX_USAGE
    assert "Nothing is kept for far: no publisher has worked with an output of this name." in said


def test_rows_are_given_up(log: LogTable, outputs: Any) -> None:
    behind(log, "far", 5)
    assert outputs("skip", "far")[0] == EX_USAGE
    assert outputs("skip", "far", "1", "--all")[0] == EX_USAGE
    assert outputs("skip", "far", "2-3", "9", "--dry-run")[1] == "2 rows would never go to far.\n"
    assert outputs("skip", "far", "2-3", "9", "--yes", "--why", "they have them.")[1] == "2 rows given up for far.\n"
    assert log.statuses() == {1: "N", 2: "W", 3: "W", 4: "N", 5: "N"}
    assert log.outcomes()[2][2].endswith(": they have them.")
    assert json.loads(outputs("skip", "far", "--all", "--yes", "--json")[1]) == {"skipped": 3}
    assert outputs("skip", "far", "--all", "--yes")[1] == "0 rows given up for far.\n"


@pytest.mark.parametrize("said", ["", "n\n", "y\n"])
@pytest.mark.parametrize(
    "act", [("skip", "far", "1"), ("skip", "far", "99"), ("skip", "far", "--all"), ("forget", "old")]
)
def test_nothing_is_given_up_without_a_yes_where_nobody_sits(
    log: LogTable, outputs: Any, monkeypatch: pytest.MonkeyPatch, act: tuple[str, ...], said: str
) -> None:
    behind(log, act[1], 2)
    before = (log.statuses(), kept(log))
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    code, _, told = outputs(*act)
    assert (code, "use --yes" in told) == (EX_USAGE, True), told
    assert (log.statuses(), kept(log)) == before


def test_an_interrupted_purge_says_what_is_gone(log: LogTable, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_off(*_: Any) -> Iterator[Purged]:
        yield Purged(rows=7)
        raise KeyboardInterrupt

    monkeypatch.setattr("eventlog.purge.deleting.purge", broken_off)
    code, _, said = call("purge", "--older-than", "1d", "--yes")
    assert code == 130
    assert said.endswith("eventlog: interrupted; 7 rows deleted, and the same command continues from there.\n")
