"""Writes the pages that the program itself knows best: its commands and its rules. A test compares them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

from eventlog.model import Kind
from eventlog.rules.meaning import EXPLANATION, MEANING, PRECEDENCE, STATUS, category_name

FOLDER = Path(__file__).resolve().parent / "reference"
MADE = "<!-- Written by docs/generate.py; ./dev docs writes it anew. -->\n"


def pages() -> dict[Path, str]:
    """Every generated page: where it stands and what it should say."""
    made = {FOLDER / "rules.md": rules_page()}
    if find_spec("eventlog.cli.main"):
        made[FOLDER / "cli.md"] = commands_page()
    return made


def outdated() -> list[Path]:
    """The pages that say something else than the program does."""
    return [path for path, text in pages().items() if not path.exists() or path.read_text() != text]


def rules_page() -> str:
    """The tables of eventlog.rules.meaning."""
    return "\n".join([MADE, "# The rules\n", *_types(), "", *_precedence(), "", *_reasons(), ""])


def commands_page() -> str:
    """Every command's help, as a terminal of 100 columns shows it."""
    main = import_module("eventlog.cli.main").main
    assert isinstance(main, click.Group)
    return "\n".join([MADE, "# Commands\n", *_help(main, _context(main, "eventlog"), level=2)])


def _types() -> Iterator[str]:
    yield "## Event types\n"
    yield "| `event_type` | name | category | operation | former values |"
    yield "| ---: | --- | --- | --- | --- |"
    for kind, meaning in MEANING.items():
        assert kind is not None
        name = Kind(kind).name.lower().replace("_", " ")
        yield f"| {kind} | {name} | {category_name(meaning)} | {meaning.op} | {'go' if meaning.reset else ''} |"


def _precedence() -> Iterator[str]:
    yield "## Within one lifetime of an object, in this order\n"
    for number, (rule, meaning) in enumerate(PRECEDENCE, 1):
        yield f"{number}. **{rule}**: {meaning}"


def _reasons() -> Iterator[str]:
    yield "## Outcomes\n"
    yield "| reason | status | it means that |"
    yield "| --- | --- | --- |"
    for reason, status in STATUS.items():
        yield f"| {reason} | `{status}` | {EXPLANATION[reason]} |"


def _help(command: click.Command, context: click.Context, *, level: int) -> Iterator[str]:
    yield f"{'#' * level} {context.command_path}\n"
    yield f"```text\n{command.get_help(context).rstrip()}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            if not inner.hidden:
                yield from _help(inner, _context(inner, name, context), level=level + 1)


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    return command.make_context(name, [], parent, resilient_parsing=True, terminal_width=100, max_content_width=100)


if __name__ == "__main__":
    for page, content in pages().items():
        page.write_text(content)
