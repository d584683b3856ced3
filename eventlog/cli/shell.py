"""`eventlog completion`, `help`, `man`: what shells and manuals need to know of the commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from eventlog.version import VERSION

SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_EVENTLOG_COMPLETE"
"""By this variable click knows that a shell asks, and not a person."""

QUOTED: Final = {
    "COMPREPLY+=($value)": 'COMPREPLY+=("$(printf %q "$value")")',
    'string split "," $completion': 'string split --max 1 "," $completion',
}
"""What bash and fish need: a name with a blank stays one word, a text with a comma is not cut."""


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
    source = kind(main, {}, "eventlog", VARIABLE).source()
    for theirs, ours in QUOTED.items():
        source = source.replace(theirs, ours)
    click.echo(source)


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def print_help(context: click.Context, words: tuple[str, ...]) -> None:
    """Prints what --help prints: of eventlog, or of a command.

    Example: eventlog help decode gbase
    """
    context = context.find_root()
    for word in words:
        if not isinstance(context.command, click.Group):
            message = f"{context.command_path} has no commands of its own; leave out {word}."
            raise click.UsageError(message, context)
        _, command, _ = context.command.resolve_command(context, [word])
        assert command is not None
        context = click.Context(command, info_name=word, parent=context)
    click.echo(context.get_help())


@click.command()
def man() -> None:
    """Prints the manual page, for `man` to show.

    Example: eventlog man > eventlog.1 && man ./eventlog.1
    """
    from eventlog.cli.main import main

    click.echo("\n".join(manual(main)))


def manual(group: click.Group) -> Iterator[str]:
    """Yield the manual page of a group of commands, in man's markup."""
    context = _context(group, "eventlog", None)
    yield f'.TH EVENTLOG 1 "" "eventlog {VERSION}" "Change capture by triggers"'
    yield from (".SH NAME", f"eventlog \\- {_text(_first(group))}")
    yield from (".SH SYNOPSIS", ".B eventlog", "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]")
    yield from (".SH OPTIONS", *_options(group, context))
    yield ".SH COMMANDS"
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        own_context = _context(command, name, context)
        usage = " ".join(command.collect_usage_pieces(own_context))
        yield f".SS {_text(own_context.command_path)} {_text(usage)}"
        yield from map(_text, _paragraphs(command))
        yield from _options(command, own_context)
    yield from (".SH EXIT STATUS", *_codes())
    yield from (".SH ENVIRONMENT", ".TP", ".B NO_COLOR", "When it is set, nothing is coloured.")
    wide = "How long lines of reports are; default: the terminal's width, 100 in a file or a pipe."
    yield from (".TP", ".B COLUMNS", wide)
    pager = "What shows more than a screen of `eventlog log` on a terminal, before PAGER"
    yield from (".TP", ".B EVENTLOG_PAGER", f"{pager}; empty or cat: nothing does.")
    key = "Any key of the configuration, such as EVENTLOG_SOURCE__URL."
    yield from (".TP", ".B EVENTLOG_SECTION__KEY", key)


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield from (".TP", f"\\fB{_text(record[0])}\\fR", _text(" ".join(record[1].split())))


def _codes() -> Iterator[str]:
    meanings = {
        0: "well",
        64: "called wrongly",
        65: "data",
        69: "unavailable",
        70: "a fault of eventlog",
        75: "try again",
        78: "configuration or installation",
        # 128 and a signal's number: 2 is Ctrl-C, 13 a broken pipe.
        130: "interrupted",
        141: "nobody reads the pipe any more",
    }
    for code, meaning in meanings.items():
        yield from (".TP", f".B {code}", f"{meaning}.")


def _paragraphs(command: click.Command) -> Iterator[str]:
    for number, paragraph in enumerate((command.help or "").split("\n\n")):
        if number:
            yield ".PP"
        # To click the letter means that lines stay as they are.
        yield " ".join(paragraph.replace("\b", "").split())


def _first(command: click.Command) -> str:
    return next(_paragraphs(command)).rstrip(".")


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return command.make_context(name, [], parent, resilient_parsing=True)


def _text(text: str) -> str:
    """Escape a text for man."""
    if text == ".PP":
        return text
    # A hyphen of man's is no minus that somebody could copy.
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    # A line that begins so is a command to man; behind \& it is text.
    if escaped[:1] in (".", "'"):
        return f"\\&{escaped}"
    return escaped
