"""`status --watch` renews its report, at a terminal in its place; and a terminal can open what commands name."""

from __future__ import annotations

import io
import json
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest

from eventlog.care import status
from eventlog.cli import show
from eventlog.cli.main import exit_code
from eventlog.core.errors import ConfigError, SourceError

INTERRUPTED = 130
AT = ("--database", "sqlite:///app.db", "--no-config")


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Watches a log with these options; between two reports a row comes, and after the third somebody presses Ctrl-C."""
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("app.db")) as database:
        database.execute("CREATE TABLE usr (idu INTEGER PRIMARY KEY)")
        database.commit()
    assert exit_code(["install", *AT]) == 0
    assert exit_code(["track", "usr", *AT]) == 0
    pauses: list[float] = []

    sleep = time.sleep

    def pause(seconds: float) -> None:
        # Other threads of the tests sleep too.
        if threading.current_thread() is not threading.main_thread():
            sleep(seconds)
            return
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt
        with closing(sqlite3.connect("app.db")) as database:
            database.execute("INSERT INTO usr VALUES (?)", (len(pauses),))
            database.commit()

    def call(*options: str, seconds: int = 2) -> int:
        monkeypatch.setattr("eventlog.care.log_commands.time.sleep", pause)
        code = exit_code(["status", *options, *AT])
        assert set(pauses) == {seconds}
        return code

    return call


def waiting(report: str) -> list[str]:
    """How many rows wait, report for report."""
    return [line.split()[1] for line in report.splitlines() if line.startswith(" N ")]


def test_a_pipe_gets_one_report_below_the_other(watch: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert watch("--watch") == INTERRUPTED
    said = capsys.readouterr()
    assert waiting(said.out) == ["0", "1", "2"]
    assert "event_log at 20" in said.out
    assert "interrupted" in said.err
    assert "\x1b" not in said.out


def test_programs_get_a_line_for_each_report(watch: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert watch("--json", "--watch", "5", seconds=5) == INTERRUPTED
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [line["rows"]["N"] for line in lines] == [0, 1, 2]


def test_a_server_that_goes_away_is_waited_for_and_one_that_refuses_is_not(
    watch: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, asked = status.facts, list[object]()

    def facts(*given: Any) -> status.Facts:
        asked.append(given)
        if len(asked) == 2:
            raise SourceError("The server is restarting.")
        return whole(*given)

    monkeypatch.setattr(status, "facts", facts)
    assert watch("--watch") == INTERRUPTED
    said = capsys.readouterr().out
    assert waiting(said) == ["0", "2"]
    assert "The server is restarting." in said

    def refuse(*_: Any) -> status.Facts:
        raise ConfigError("Nobody may look.")

    monkeypatch.setattr(status, "facts", refuse)
    assert exit_code(["status", "--watch", *AT]) == ConfigError.exit_code


class Terminal(io.StringIO):
    """Somebody sits there."""

    def isatty(self) -> bool:
        return True


def test_at_a_terminal_a_report_takes_the_place_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    show.show_again(["long line", "second"])
    show.show_again(["short"])
    first, second = screen.getvalue().split("\x1b[H")[1:]
    assert first == "long line\x1b[K\nsecond\x1b[K\n\x1b[J"
    assert second == "short\x1b[K\n\x1b[J", "what stood behind and below is gone"


@pytest.mark.parametrize("term, links", [("xterm-256color", True), ("dumb", False), ("linux", False)])
def test_a_terminal_opens_the_file_that_a_sentence_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, term: str, links: bool
) -> None:
    screen, file = Terminal(), tmp_path / "a file.toml"
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", term)
    show.say(f"{file} is written.", err=True, link=file)
    show.say("The page is at http://127.0.0.1:8080/", err=True, link="http://127.0.0.1:8080/")
    said = screen.getvalue()
    assert click.unstyle(said.replace("\x1b\\", "")).count("http") >= 1
    assert (f"\x1b]8;;{file.as_uri()}\x1b\\{file}\x1b]8;;\x1b\\ is written." in said) == links
    assert ("\x1b]8;;http://127.0.0.1:8080/\x1b\\" in said) == links
    assert ("\x1b" in said) == links


def test_a_file_gets_no_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show.say(f"{tmp_path} is written.", err=True, link=tmp_path)
    assert capsys.readouterr().err == f"{tmp_path} is written.\n"
