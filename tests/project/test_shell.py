"""What shells and manuals are told: commands complete, the manual has every command, NO_COLOR takes the colours away."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from eventlog.cli.main import COMMANDS, main
from eventlog.cli.shell import QUOTED, SHELLS, VARIABLE
from eventlog.daemon.logging import journal

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_is_told_how_to_ask(shell: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell])
    assert done.exit_code == 0
    assert f"{VARIABLE}={shell}_complete" in done.output
    assert shell == "zsh" or any(ours in done.output for ours in QUOTED.values()), "what we do otherwise than Click"


def test_bash_completes_words_and_names_with_blanks(tmp_path: Path) -> None:
    output = '[[output]]\nsink = "files"\nname = "{0}"\npath = "{0}"\n'
    (tmp_path / "eventlog.toml").write_text(output.format("human resources") + output.format("directory"))
    (tmp_path / "eventlog").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m eventlog "$@"\n')
    (tmp_path / "eventlog").chmod(0o755)
    script = CliRunner().invoke(main, ["completion", "bash"]).output
    asked = (
        "COMP_WORDS=(eventlog {}) COMP_CWORD={}; COMPREPLY=(); _eventlog_completion eventlog; echo ${{COMPREPLY[*]}}"
    )
    script += "\n".join([asked.format("requ", 1), asked.format("outputs pause ''", 3)])
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.splitlines(), done.stderr) == (["requeue", r"human\ resources directory"], "")


def test_shells_say_what_commands_do_in_whole_sentences() -> None:
    found = main.shell_complete(click.Context(main, info_name="eventlog"), "")
    assert {item.value for item in found if item.type == "plain"} >= set(COMMANDS)
    assert [item.value for item in found if item.help is not None and item.help.endswith("...")] == []


def test_the_manual_has_every_command_and_says_nothing_to_man() -> None:
    page = CliRunner().invoke(main, ["man"]).output
    assert page.startswith(".TH EVENTLOG 1")
    assert [name for name in COMMANDS if f".SS eventlog {name}" not in page] == []
    known = (".TH", ".SH", ".SS", ".B", ".TP", ".PP")
    assert [line for line in page.splitlines() if line[:1] in (".", "'") and line.split()[0] not in known] == []


@pytest.mark.parametrize("is_wanted", [False, True])
def test_no_color_means_none(is_wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not is_wanted:
        monkeypatch.setenv("NO_COLOR", "1")
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    journal("console", stream=stream).info("said")
    demo = CliRunner().invoke(main, ["demo"], color=True)
    assert ["\x1b[" in stream.getvalue(), "\x1b[1m" in demo.output] == [is_wanted] * 2


@pytest.mark.parametrize("group", ["", "config", "decode", "emulate", "policy"])
def test_the_help_cuts_no_sentence(group: str) -> None:
    page = CliRunner().invoke(main, [*group.split(), "--help"], terminal_width=80).output
    listed = page.partition("\n\n")[2] if group == "" else page.partition("Commands:")[2]
    assert listed
    assert "..." not in listed
    assert max(map(len, page.splitlines())) <= 80
    if group == "":
        assert re.findall(r"^  ([a-z]+)  +\S", page, re.MULTILINE) == list(COMMANDS)


def test_every_option_says_what_it_is_for() -> None:
    options = list(every_option(main, click.Context(main, info_name="eventlog")))
    assert len(options) > 100
    assert [f"{context} {option.opts[-1]}" for context, option in options if not (option.help or option.hidden)] == []


def every_option(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Option]]:
    yield from ((context.command_path, option) for option in command.params if isinstance(option, click.Option))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from every_option(inner, click.Context(inner, parent=context, info_name=name))


@pytest.mark.parametrize("called", ["./dev run eventlog", "eventlog"])
def test_the_demo_names_commands_as_they_can_be_called_from_here(
    called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT if called.startswith("./dev") else tmp_path)
    asked = ["demo", "--keep", str(tmp_path / "kept")]
    demonstrated = CliRunner(env={"COLUMNS": "300"}).invoke(main, asked).output
    said = demonstrated.partition("Try next\n")[2]
    lines = [line.strip() for line in said.splitlines()]
    if called.startswith("./dev"):
        assert "docs/tutorial.md" in lines.pop()
    commands = [re.split(" {3,}", line)[0] for line in lines]
    assert len(commands) == 5
    assert all(command.startswith(f"{called} ") for command in commands)
    for command in commands:
        assert CliRunner().invoke(main, command.removeprefix(called).split()).exit_code == 0
