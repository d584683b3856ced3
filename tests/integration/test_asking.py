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

from eventlog.capture.install import install
from eventlog.capture.track import track
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
    """Runs a command on the log; gives its exit code, and all that it said."""

    def run(*arguments: str) -> tuple[int, str]:
        code = exit_code([*arguments, "--database", str(tracked.engine.url)])
        return code, "".join(capsys.readouterr())

    return run


ACTS = [
    (["requeue", "--status", "S"], "1 row would wait again."),
    (["purge", "--older-than", "1d"], "1 row would be deleted."),
    (["untrack", "usr"], "event_log_usr_update"),
    (["uninstall", "--purge"], "1 row of the log, of which 0 wait"),
]
"""Commands, and what is said of what they would do."""


def state(log: LogTable) -> list[tuple[Any, ...]]:
    return log.ask("SELECT name FROM sqlite_master ORDER BY name") + log.ask("SELECT record_id, status FROM event_log")


@pytest.mark.parametrize("act, planned", ACTS)
def test_it_is_said_what_would_be_done_and_somebody_at_a_terminal_is_asked(
    tracked: LogTable, call: Any, monkeypatch: pytest.MonkeyPatch, act: list[str], planned: str
) -> None:
    before, answers = state(tracked), ["n", "y"]
    code, said = call(*act, "--dry-run")
    assert (code, planned in said) == (OK, True), said
    if act[0] in ("requeue", "purge"):
        assert 1 in json.loads(call(*act, "--dry-run", "--json")[1]).values()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _prompt: answers.pop(0))
    code, said = call(*act)
    assert (code, planned in said, "Nothing was changed" in said) == (EX_USAGE, True, True)
    assert state(tracked) == before
    assert call(*act)[0] == OK
    assert (state(tracked) if act[0] != "uninstall" else []) != before
    assert answers == []


DESTROYS = (
    *(act for act, _ in ACTS[1:]),
    ["uninstall"],
    ["purge", "--older-than", "9999d"],  # nothing is so old today, and something will be
)
"""Commands that take something away for good."""


@pytest.mark.parametrize("act", DESTROYS)
def test_what_destroys_wants_a_yes_where_nobody_sits(
    tracked: LogTable, call: Any, monkeypatch: pytest.MonkeyPatch, act: list[str]
) -> None:
    """As the audit found it: `echo n | eventlog untrack person` removed the triggers."""
    before = state(tracked)
    for stdin in (io.StringIO(), io.StringIO("n\n"), io.StringIO("y\n"), None):
        monkeypatch.setattr("sys.stdin", stdin)
        code, told = call(*act)
        assert (code, "use --yes" in told) == (EX_USAGE, True), told
        assert state(tracked) == before
    assert call(*act, "--yes")[0] == OK


def test_every_command_that_takes_a_yes_is_asked_for_one() -> None:
    """Rows that wait again are told again, and nothing of them is gone: `requeue` asks at a terminal alone.

    Those of `outputs` are asked in test_commands_of_care.py, and `upgrade` in test_upgrade.py.
    """
    known = {act[0] for act in DESTROYS} | {"outputs skip", "outputs forget", "requeue", "upgrade"}
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
