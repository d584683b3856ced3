"""The command `eventlog`: finds the module of a command; errors become sentences and exit codes."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

import click

from eventlog.cli.lazy import LazyGroup
from eventlog.cli.mishaps import CLOSED_PIPE, INTERRUPTED, describe_trace, report_error, report_misuse
from eventlog.version import VERSION

SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "To begin": {
        "demo": "Shows the whole program on an embedded database",
        "init": "Writes a first configuration file with comments",
        "config": "Shows the configuration in force",
        "rules": "Prints the rules",
    },
    "Log and triggers": {
        "install": "Creates the event log table and its state tables",
        "upgrade": "Brings an installed log to this version of eventlog, or back to an earlier one",
        "uninstall": "Removes triggers, tables and granted rights, after showing them",
        "track": "Creates or replaces the triggers of tables and views",
        "untrack": "Removes the triggers of tables and views",
        "triggers": "Lists the log's triggers with their state and the options of their tables",
        "catalog": "Prints the schema of tables as JSON",
        "rights": "Grants each role the least rights",
        "check": "Checks configuration, connection, log, rights, triggers, clock and outputs",
    },
    "Publishing": {
        "run": "Publishes waiting rows",
        "outputs": "Shows how far each output is",
        "policy": "Tries policies",
        "refresh": "Publishes every row that tables have now",
        "verify": "Compares tables with what an output holds of them, and names what differs",
        "web": "Shows the log in a browser",
        "receive": 'Receives what an output with sink = "http" sends',
    },
    "Rows of the log": {
        "status": "Shows rows by status and by what they wait for, and what needs care",
        "log": "Shows rows of the log and what became of them",
        "explain": "Explains a row",
        "hold": "Holds waiting rows back until they are released",
        "release": "Lets held rows be published again",
        "requeue": "Publishes processed rows again",
        "purge": "Deletes old processed rows, a few thousand at a time",
    },
    "Backlogs, streams, files": {
        "convert": "Converts a whole backlog",
        "apply": "Brings mirrors up to date from change tables",
        "decode": "Shows a stream or a topic record by record, also a damaged one",
        "emulate": "Writes streams of made-up changes, to try a pipeline without the database",
        "validate": "Checks XDS documents",
    },
    "Your shell": {
        "help": "Prints what --help prints",
        "completion": "Prints a script that completes commands and options",
        "man": "Prints the manual page, for `man` to show",
    },
}
"""The sections of the help with their commands, in its order, and how each command's own help begins: to load all of them
for one line of each would take longer than a shell may take to complete a word."""

SUMMARIES: Final = {name: said for commands in SECTIONS.values() for name, said in commands.items()}

COMMANDS: Final = [*SUMMARIES]

PLACES: Final = {
    "run": "eventlog.daemon.command",
    "policy": "eventlog.cli.groups",
    "decode": "eventlog.cli.groups",
    "emulate": "eventlog.cli.groups",
    "help": "eventlog.cli.shell:print_help",
    "completion": "eventlog.cli.shell",
    "man": "eventlog.cli.shell",
}
"""Where the core's commands stand; capabilities offer theirs by entry points, as others do."""


class Commands(LazyGroup):
    """All commands, in sections; behind ours those that other packages bring."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *[name for name in super().list_commands(ctx) if name not in COMMANDS]]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # The word is one of our capabilities', and the package as it is installed does not offer it.
        word = args[0] if args else ""
        if word in COMMANDS and word not in PLACES and word not in self.brought():
            from eventlog.core.registry import make_outdated_error

            raise make_outdated_error(f"command {word}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = {title: [*commands] for title, commands in SECTIONS.items()}
        sections["Of other packages"] = [name for name in self.list_commands(ctx) if name not in COMMANDS]
        for title, names in sections.items():
            if names:
                with formatter.section(title):
                    self.write_summaries(ctx, formatter, names)


@click.group(
    cls=Commands,
    places=PLACES,
    summaries=SUMMARIES,
    prefix="",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(VERSION, prog_name="eventlog", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors; every command takes it too.")
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:
    """Sends the changes in databases to other systems, and shows what became of each.

    Try it: eventlog demo

    In a folder with a configuration, `eventlog` alone says how its log is, and what to do next.
    """
    # What `run` was given stands there: --debug may come at the end of the line too.
    ctx.obj = {"debug": debug or "--debug" in (ctx.obj or ())}
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False
    elif os.environ.get("FORCE_COLOR"):
        ctx.color = True


def run(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command and ends the process with its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that has no such letter is no reason to end.
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(_flush_output(exit_code(arguments), arguments))


def _flush_output(code: int, arguments: list[str]) -> int:
    """Writes out what standard output holds back; Python would end with a code of its own."""
    stream = sys.stdout
    # None at all, or the one that click takes when nobody reads any more.
    if not isinstance(stream, io.TextIOBase):
        return code
    try:
        stream.flush()
    except OSError as error:
        # First, while the file can still be named.
        code = code or (CLOSED_PIPE if isinstance(error, BrokenPipeError) else report_error(error, arguments))
        # What it could not write goes nowhere, or Python would try once more when it ends.
        with suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
    return code


def _has_configuration() -> bool:
    """Return True if this folder has a configuration."""
    from eventlog.cli.site import DEFAULT_FILE

    return DEFAULT_FILE.exists()


def exit_code(arguments: list[str]) -> int:
    """Runs the command; errors become a sentence on stderr, a traceback only with --debug."""
    if not arguments and _has_configuration():
        arguments = ["status", "--next"]
    try:
        outcome = main.main(args=arguments, prog_name="eventlog", standalone_mode=False, obj=arguments)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except SystemExit:
        # Click's answer to a pipe that nobody reads any more.
        return CLOSED_PIPE
    except click.ClickException as error:
        return report_misuse(error, arguments)
    except (click.Abort, KeyboardInterrupt) as end:
        # Click makes an Abort of Ctrl-C.
        cause = end.__cause__ if isinstance(end, click.Abort) else end
        sentence = "interrupted"
        # A command may have put into it how to go on.
        if isinstance(cause, KeyboardInterrupt) and str(cause):
            sentence += f"; {cause}"
        click.echo(f"eventlog: {sentence}.", err=True)
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  # whatever it was, a command ends with a sentence
        if "--debug" in arguments:
            click.echo(describe_trace(error), err=True, nl=False)
        return report_error(error, arguments)
    if isinstance(outcome, int):
        return outcome
    return 0


if __name__ == "__main__":
    run()
