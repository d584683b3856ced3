"""What pages show to be typed: every command exists and takes its options, every configuration is one that can be read."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from docs.plots import FILE
from eventlog.cli.main import main
from eventlog.config.settings import Config, from_settings
from eventlog.convert.command import Conversions

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
CALLED = re.compile(r"(?:^|[|&;(] *)(?:\./dev run )?eventlog ((?:[^|&;>#\"]|\"[^\"]*\")+)")
every_page = pytest.mark.parametrize("page", PAGES, ids=NAMES)


@every_page
def test_commands_exist_and_take_the_options_that_are_shown(page: Path) -> None:
    assert [line for line in typed(page.read_text()) if refused(line)] == []


@every_page
def test_configurations_can_be_read(page: Path) -> None:
    for shown in re.findall(r"^```toml[^\n]*\n(.+?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        plain = re.sub(r"\$\{file:[^}]*\}", "x", shown)
        environment = dict.fromkeys(re.findall(r"\$\{(\w+)\}", plain), f"whsec_{'1' * 32}")  # of a length that all take
        assert isinstance(from_settings(tomllib.loads(plain), environment, origin=page.name), Config)


def test_enough_is_looked_at() -> None:
    assert sum(1 for page in PAGES for _ in typed(page.read_text())) > 150


@pytest.mark.parametrize("line", ["nothing", "status --verbos", "decode nothing x", "run --onc", "-x status"])
def test_what_does_not_exist_is_noticed(line: str) -> None:
    assert refused(line)


def typed(text: str) -> Iterator[str]:
    """Calls of eventlog in a page: in blocks for a shell, and between backticks."""
    joined = re.sub(r"\\\n\s*", " ", text)
    blocks = re.findall(r"^ *```(?:sh|bash)\n(.+?)^ *```", joined, re.DOTALL | re.MULTILINE)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    for line in [*lines, *re.findall(r"`((?:\./dev run )?eventlog [^`\n]+)`", joined)]:
        yield from (call.strip() for call in CALLED.findall(line))


def refused(call: str) -> str:
    """The first word of a call that the program would not understand, or nothing."""
    command: click.Command = main
    context = click.Context(main)
    words = [word for word in shlex.split(call.replace("…", "")) if word not in ("", "[")]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        found = command.get_command(context, name)
        # `eventlog convert INPUT` leaves out what INPUT is.
        if found is None and isinstance(command, Conversions):
            break
        if found is None:
            return name
        command = found
    meant = [command]
    if isinstance(command, Conversions):
        meant = [inner for name in command.places if (inner := command.get_command(context, name)) is not None]
    known = {name for one in meant for parameter in one.get_params(context) for name in parameter.opts}
    return next((word for word in words if word.startswith("-") and word.split("=")[0] not in known), "")


def test_no_page_shows_a_mark_where_a_file_should_stand() -> None:
    """Who reads a clone sees a page as it is written; there a link leads to the file, which the site shows in its place."""
    assert [page.name for page in PAGES if "--8<--" in page.read_text(encoding="utf-8")] == []
    linked = [link["path"] for page in PAGES for link in FILE.finditer(page.read_text(encoding="utf-8"))]
    assert len(linked) >= 6
    assert [path for path in linked if not (ROOT / path).is_file()] == []
