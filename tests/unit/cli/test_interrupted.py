"""Who presses Ctrl-C is answered at once, and told how to go on."""

from __future__ import annotations

from pathlib import Path
from time import sleep
from typing import Any

import pytest

from eventlog.cli.main import exit_code
from eventlog.daemon.command import _answer_signals


@pytest.mark.parametrize("engine, named", [("local", True), ("spark", False)])
def test_a_conversion_says_that_its_command_goes_on_where_it_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, engine: str, named: bool
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("eventlog.convert.run.convert", interrupted)
    assert exit_code(["convert", "log.csv", "--out", str(tmp_path / "out"), "--engine", engine]) == 130
    hint = "; the same command continues from there" if named else ""
    assert capsys.readouterr().err == f"\neventlog: interrupted{hint}.\n"


@pytest.mark.parametrize("at_terminal", [True, False])
def test_a_publisher_says_that_it_finishes_its_batch(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, at_terminal: bool
) -> None:
    asked = []
    monkeypatch.setattr("eventlog.daemon.command.has_terminal", lambda: at_terminal)
    monkeypatch.setattr("eventlog.daemon.command.HINT_SECONDS", 0.01)
    with _answer_signals(lambda: asked.append("end")) as stop:
        stop()
        sleep(0.3)
    assert asked == ["end"]
    assert ("The current batch is finished first" in capfd.readouterr().err) is at_terminal
