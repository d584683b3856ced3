"""`eventlog completion` and `eventlog man`: what a shell and a manual need to know of the commands, made when it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from eventlog.version import VERSION

SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_EVENTLOG_COMPLETE"
"""By this variable click knows that a shell asks, and not a person."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Prints a script that completes commands and options; your shell's start-up file must read it.

    Example: eventlog completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    from eventlog.cli.main import main

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "eventlog", VARIABLE).source())


@click.command()
def man() -> None:
    """Prints the manual page, for `man` to show.

    Example: eventlog man > eventlog.1 && man ./eventlog.1
    """
    from eventlog.cli.main import main

    click.echo("\n".join(manual(main)))


def manual(group: click.Group) -> Iterator[str]:
    """The manual page of a group of commands, in the language of man."""
    context = _context(group, "eventlog", None)
    yield f'.TH EVENTLOG 1 "" "eventlog {VERSION}" "Change capture by triggers"'
    yield from (".SH NAME", f"eventlog \\- {_text(_first(group))}")
    yield from (".SH SYNOPSIS", ".B eventlog", "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]")
    yield from (".SH OPTIONS", *_options(group, context))
    yield ".SH COMMANDS"
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from _command(command, _context(command, name, context))
    yield from (".SH EXIT STATUS", *_codes())
    yield from (".SH ENVIRONMENT", ".TP", ".B NO_COLOR", "When it is set, nothing is coloured.")
    yield from (".TP", ".B EVENTLOG_SECTION__KEY", "Any key of the configuration, such as EVENTLOG_SOURCE__URL.")


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f".SS {_text(context.command_path)} {_text(usage)}", *map(_text, _paragraphs(command)))
    yield from _options(command, context)


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield from (".TP", f"\\fB{_text(record[0])}\\fR", _text(" ".join(record[1].split())))


def _codes() -> Iterator[str]:
    meanings = {0: "well", 64: "called wrongly", 65: "data", 69: "unavailable", 70: "a fault of eventlog"}
    for code, meaning in (meanings | {75: "try again", 78: "configuration or installation"}).items():
        yield from (".TP", f".B {code}", f"{meaning}.")


def _paragraphs(command: click.Command) -> Iterator[str]:
    for number, paragraph in enumerate((command.help or "").split("\n\n")):
        yield from ([".PP"] if number else [])
        yield " ".join(paragraph.replace("\b", "").split())


def _first(command: click.Command) -> str:
    return next(_paragraphs(command)).rstrip(".")


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return command.make_context(name, [], parent, resilient_parsing=True)


def _text(text: str) -> str:
    """A text in which man finds no command of its own."""
    if text == ".PP":
        return text
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
