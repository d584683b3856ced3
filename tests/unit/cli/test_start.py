"""What a person waits for: help and completion load every command, and no database, server or document library."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from eventlog.cli.lazy import summary
from eventlog.cli.main import COMMANDS, SUMMARIES, main
from eventlog.core.registry import offers

HEAVY = {
    "sqlalchemy",
    "alembic",
    "lxml",
    "pyarrow",
    "pyspark",
    "confluent_kafka",
    "uvicorn",
    "starlette",
    "jinja2",
    "asyncio",
}
SHOW = """
import sys
from eventlog.cli.main import exit_code
exit_code(sys.argv[1:])
sys.stderr.write(" ".join(sys.modules))
"""
COMPLETED = """
import sys
from click.shell_completion import shell_complete
from eventlog.cli.main import main
shell_complete(main, {}, "eventlog", "_EVENTLOG_COMPLETE", "bash_complete")
sys.stderr.write(" ".join(sys.modules))
"""


@pytest.mark.parametrize("arguments", [["--help"], ["convert", "--help"], ["track", "--help"]], ids=" ".join)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    said = subprocess.run([sys.executable, "-c", SHOW, *arguments], capture_output=True, text=True, check=True)
    assert "Example" in said.stdout or "Commands" in said.stdout or "To begin" in said.stdout
    assert {name for name in said.stderr.split() if name in HEAVY} == set()


def test_the_line_of_each_command_in_the_help_is_how_its_own_help_begins() -> None:
    context = click.Context(main)
    own = {name: main.get_command(context, name) for name in COMMANDS}
    assert {name: summary(command) if command else "" for name, command in own.items()} == SUMMARIES


def test_help_and_completion_load_no_command() -> None:
    """A module for each of three dozen commands would be loaded for one line."""
    asked = {"_EVENTLOG_COMPLETE": "bash_complete", "COMP_WORDS": "eventlog ", "COMP_CWORD": "1"}
    commands = {offer.points[0].module for offer in offers("commands")}
    for arguments, variables in (["--help"], {}), ([], asked):
        words = [
            sys.executable,
            "-c",
            SHOW.replace("exit_code(", "ended(").replace("import exit_code", "import exit_code as ended"),
            *arguments,
        ]
        said = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ | variables)
        assert "track" in said.stdout
        assert commands.intersection(said.stderr.split()) == set()
