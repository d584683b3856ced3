"""What cannot be taken back: --dry-run, the question at a terminal, --yes, and scripts that nobody sits before."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from sqlalchemy import create_engine

from eventlog.capture import track
from eventlog.capture.install import install
from eventlog.cli.main import exit_code, main
from eventlog.core.errors import EX_USAGE, OK
from tests.conformance.event_logs import LogTable


@pytest.fixture
def tracked(tmp_path: Path) -> LogTable:
    """A log with one old row, and a table that is tracked."""
    log = LogTable(create_engine(f"sqlite:///{tmp_path / 'app.db'}"))
    install(log.engine)
    log.run("CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname TEXT)")
    track(log.engine, ["usr"])
    log.write(1, status="S", event_time="2020-01-01 00:00:00")
    return log


@pytest.fixture
def call(tracked: LogTable, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command on the log; gives its exit code, what it printed, and what it said on the side."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = exit_code([*arguments, "--database", str(tracked.engine.url)])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody sits at the terminal, and answers from this list."""
    answers: list[str] = []
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _prompt: answers.pop(0))
    return answers


ACTS = (["requeue", "--status", "S"], ["purge", "--older-than", "1d"], ["untrack", "usr"], ["uninstall", "--purge"])
PLANNED = (
    "1 row would wait again.",
    "1 row would be deleted.",
    "event_log_usr_update",
    "1 row of the log, of which 0 wait",
)


def state(log: LogTable) -> list[tuple[Any, ...]]:
    return log.ask("SELECT name FROM sqlite_master ORDER BY name") + log.ask("SELECT record_id, status FROM event_log")


@pytest.mark.parametrize("act, planned", [*zip(ACTS, PLANNED, strict=True)])
def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    tracked: LogTable, call: Any, act: list[str], planned: str
) -> None:
    before = state(tracked)
    code, printed, said = call(*act, "--dry-run")
    assert (code, planned in printed + said) == (OK, True), printed + said
    assert state(tracked) == before
    if act[0] in ("requeue", "purge"):
        assert 1 in json.loads(call(*act, "--dry-run", "--json")[1]).values()


@pytest.mark.parametrize("act, planned", [*zip(ACTS, PLANNED, strict=True)])
def test_somebody_at_a_terminal_is_asked(
    tracked: LogTable, call: Any, somebody: list[str], act: list[str], planned: str
) -> None:
    before = state(tracked)
    somebody += ["n"]
    code, printed, said = call(*act)
    assert (code, planned in printed + said, "Nothing was changed" in said) == (EX_USAGE, True, True)
    assert state(tracked) == before
    somebody += ["y"]
    assert call(*act)[0] == OK
    assert (state(tracked) if act[0] != "uninstall" else []) != before
    assert somebody == []


@pytest.mark.parametrize("act", ACTS)
def test_yes_asks_nobody(tracked: LogTable, call: Any, somebody: list[str], act: list[str]) -> None:
    assert call(*act, "--yes")[0] == OK


DESTROYS = (
    *ACTS[1:],
    ["uninstall"],
    ["upgrade", "--to", "0001"],
    ["purge", "--older-than", "9999d"],  # nothing is so old today, and something will be
)
"""Commands that take something away for good."""


@pytest.mark.parametrize("said", ["", "n\n", "y\n"])
@pytest.mark.parametrize("act", DESTROYS)
def test_what_destroys_wants_a_yes_where_nobody_sits(
    tracked: LogTable, call: Any, monkeypatch: pytest.MonkeyPatch, act: list[str], said: str
) -> None:
    """As the audit found it: `echo n | eventlog untrack person` removed the triggers."""
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    before = state(tracked)
    code, _, told = call(*act)
    assert (code, "use --yes" in told) == (EX_USAGE, True), told
    assert state(tracked) == before
    monkeypatch.setattr("sys.stdin", None)
    assert call(*act)[0] == EX_USAGE
    assert state(tracked) == before


@pytest.mark.parametrize("act", DESTROYS)
def test_with_a_yes_it_is_done(call: Any, act: list[str]) -> None:
    assert call(*act, "--yes")[0] == OK


def test_every_command_that_takes_a_yes_is_asked_for_one() -> None:
    """Rows that wait again are told again, and nothing of them is gone: `requeue` asks at a terminal alone.

    Those of `outputs` are asked in test_outputs_commands.py.
    """
    known = {act[0] for act in DESTROYS} | {"outputs skip", "outputs forget", "requeue"}
    assert {name for name, command in every_command(main) if "yes" in {one.name for one in command.params}} == known


def every_command(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands by what is typed, those of groups too."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from every_command(command, f"{before}{name} ")
        elif command is not None:
            yield f"{before}{name}", command
