"""The command `eventlog`: finds a command's module when it is called, and turns errors into sentences and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import click

from eventlog.cli.lazy import LazyGroup, summary
from eventlog.errors import EX_USAGE, EventlogError
from eventlog.extras import EXTRAS, missing
from eventlog.suggest import did_you_mean
from eventlog.version import VERSION

SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "To begin": {"demo": "demo", "rules": "rules"},
    "Log and triggers": {
        "install": "install",
        "upgrade": "install",
        "uninstall": "install",
        "track": "track",
        "untrack": "track",
        "triggers": "track",
        "catalog": "track",
        "rights": "rights",
        "check": "check",
    },
    "Publishing": {"run": "run", "refresh": "refresh", "web": "web", "receive": "receive"},
    "Rows of the log": {
        "status": "status",
        "log": "log",
        "explain": "explain",
        "hold": "care",
        "release": "care",
        "requeue": "care",
        "purge": "care",
    },
    "Backlogs, streams, files": {
        "convert": "convert",
        "apply": "apply",
        "decode": "decode",
        "emulate": "emulate",
        "validate": "validate",
    },
    "Your shell": {"completion": "shell", "man": "shell"},
}
"""In which module each command lives; sections and order are those of the help."""

COMMANDS: Final = {name: module for section in SECTIONS.values() for name, module in section.items()}
INTERRUPTED = 130


class Commands(LazyGroup):
    """All commands."""

    places = COMMANDS

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise click.UsageError(f"{args[0]} is not a command. {did_you_mean(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(title):
                commands = [(name, self.get_command(ctx, name)) for name in section]
                formatter.write_dl([(name, summary(command)) for name, command in commands if command is not None])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name="eventlog", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:
    """Captures what changes in databases and tells other systems about it.

    Try it: eventlog demo
    """
    ctx.obj = {"debug": debug}
    if os.environ.get("NO_COLOR"):
        ctx.color = False


def run(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command and ends the process with its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    sys.exit(exit_code(arguments))


def exit_code(arguments: list[str]) -> int:
    """Runs the command; errors become one or two sentences on stderr, a traceback only with --debug."""
    try:
        outcome = main.main(args=arguments, prog_name="eventlog", standalone_mode=False)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        error.show()
        return EX_USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("eventlog: interrupted.", err=True)
        return INTERRUPTED
    except Exception as error:
        if "--debug" in arguments:
            raise
        return _told(error)
    return outcome if isinstance(outcome, int) else 0


def _told(error: Exception) -> int:
    known = error if isinstance(error, EventlogError) else _from_package(error) or _from_database(error)
    if known is None:
        click.echo(f"eventlog: {type(error).__name__}: {error}", err=True)
        click.echo("This is a fault of eventlog; --debug shows where it happened.", err=True)
        return EventlogError.exit_code
    click.echo(f"eventlog: {known}", err=True)
    return known.exit_code


def _from_package(error: Exception) -> EventlogError | None:
    """What nobody asked for before it was needed, and comes with an extra."""
    lacks = isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in EXTRAS
    return missing("This command", error.name) if lacks and isinstance(error, ModuleNotFoundError) else None


def _from_database(error: Exception) -> EventlogError | None:
    """A database's error that nobody caught nearer to its cause; SQLAlchemy is loaded if it was raised at all."""
    loaded: Any = sys.modules.get("sqlalchemy.exc")
    if loaded is None or not isinstance(error, loaded.SQLAlchemyError):
        return None
    from eventlog.sql.connect import in_words

    return in_words(error, "The database does not answer as it should")


if __name__ == "__main__":
    run()
