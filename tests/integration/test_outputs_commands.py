"""`eventlog outputs`: what an operator sees of each output, and does with it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from eventlog.cli.main import exit_code
from eventlog.core.errors import EX_USAGE, OK
from eventlog.core.model import Outcome
from eventlog.publisher.states import OutputPlace, read_places
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable, installed
from tests.support.log_rows import OUTPUT, LogRows


@pytest.fixture
def log(tmp_path: Path) -> LogTable:
    return installed(create_engine(f"sqlite:///{tmp_path / 'app.db'}"))


@pytest.fixture
def call(log: LogTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
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
    source.journal.forget(OUTPUT)
    source.output = "near"
    batch = source.read(100)
    source.settle(batch, [Outcome(position=event.position) for event in batch.events])
    source.close()


def kept(log: LogTable) -> dict[str, OutputPlace]:
    known = Log(log.engine, log.names)
    with known.transaction() as connection:
        return read_places(connection, known)


def test_each_output_is_listed_with_how_far_it_is(log: LogTable, call: Any) -> None:
    behind(log, "far", 3)
    code, printed, _ = call("list")
    assert code == OK
    heading, _, near, far = [line for line in printed.splitlines() if line.strip()]
    assert heading.split()[:2] == ["output", "state"]
    assert near.split() == ["near", "up", "to", "date", "0"]
    assert far.split()[:3] == ["far", "lagging", "3"]
    code, printed, _ = call("list", "--json")
    assert code == OK
    [_, standing] = json.loads(printed)
    assert (standing["name"], standing["state"], standing["rows"]) == ("far", "lagging", 3)
    assert standing["seconds"] > 0


def test_what_the_configuration_does_not_have_is_listed_where_rows_are_kept_for_it(log: LogTable, call: Any) -> None:
    behind(log, "old", 2)
    code, printed, _ = call("list")
    assert code == OK
    assert "The configuration has no output old, but rows are kept for it." in printed
    assert ["old", "unknown"] in [line.split()[:2] for line in printed.splitlines()]
    assert call("forget", "near", "--yes")[0] == EX_USAGE
    assert call("forget", "old", "--dry-run")[1] == (
        "2 rows would never go to old, and nothing would be kept for it any more.\n"
    )
    code, printed, _ = call("forget", "old", "--yes")
    assert (code, printed) == (OK, "2 rows given up. Nothing is kept for old any more.\n")
    assert set(log.statuses().values()) == {"W"}
    assert [*kept(log)] == ["near"]


def test_an_output_is_paused_and_resumed(log: LogTable, call: Any) -> None:
    assert call("pause", "far", "--why", "they move")[1] == "far is paused.\n"
    assert (kept(log)["far"].paused or "").endswith("they move")
    assert call("pause", "far")[1] == "far was paused already.\n"
    assert ["far", "paused"] in [line.split()[:2] for line in call("list")[1].splitlines()]
    assert json.loads(call("resume", "far", "--json")[1]) == {"resumed": "far"}
    assert call("resume", "far")[1] == "far was not paused.\n"
    assert kept(log)["far"].paused is None


def test_who_does_not_know_the_name_is_told_the_nearest(log: LogTable, call: Any) -> None:
    for verb in ("pause", "resume"):
        code, _, said = call(verb, "fra")
        assert code == EX_USAGE
        assert "'fra' is no output of the configuration." in said
        assert "far" in said
    code, _, said = call("skip", "far", "1", "--yes")
    assert code == EX_USAGE
    assert "Nothing is kept for far: no publisher has worked with an output of this name." in said


def test_rows_are_given_up(log: LogTable, call: Any) -> None:
    behind(log, "far", 5)
    assert call("skip", "far")[0] == EX_USAGE
    assert call("skip", "far", "1", "--all")[0] == EX_USAGE
    assert call("skip", "far", "2-3", "9", "--dry-run")[1] == "2 rows would never go to far.\n"
    assert call("skip", "far", "2-3", "9", "--yes", "--why", "they have them.")[1] == "2 rows given up for far.\n"
    assert log.statuses() == {1: "N", 2: "W", 3: "W", 4: "N", 5: "N"}
    assert log.outcomes()[2][2].endswith(": they have them.")
    assert json.loads(call("skip", "far", "--all", "--yes", "--json")[1]) == {"skipped": 3}
    assert call("skip", "far", "--all", "--yes")[1] == "0 rows given up for far.\n"


@pytest.mark.parametrize("said", ["", "n\n", "y\n"])
@pytest.mark.parametrize(
    "act", [("skip", "far", "1"), ("skip", "far", "99"), ("skip", "far", "--all"), ("forget", "old")]
)
def test_nothing_is_given_up_without_a_yes_where_nobody_sits(
    log: LogTable, call: Any, monkeypatch: pytest.MonkeyPatch, act: tuple[str, ...], said: str
) -> None:
    behind(log, act[1], 2)
    before = (log.statuses(), kept(log))
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    code, _, told = call(*act)
    assert (code, "use --yes" in told) == (EX_USAGE, True), told
    assert (log.statuses(), kept(log)) == before
