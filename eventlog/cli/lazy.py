"""Groups whose commands are imported only when somebody asks for them, so that none pays for what another needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from eventlog.core.suggest import did_you_mean

DEBUG: Final = click.Option(["--debug"], is_flag=True, expose_value=False, hidden=True)
"""Whoever saw an error adds this at the end of the line; what it does is found among the program's own options."""

_pause = re.compile(r"[.:;](?:\s|$)").search


class LazyGroup(click.Group):
    """Knows of each command where it stands: in a module of eventlog.cli and under which name, `module:name`, or, with a dot
    in it, in a module elsewhere.
    """

    def __init__(self, *, places: Mapping[str, str], **given: Any) -> None:
        super().__init__(**given)
        self.places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.places)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.places:
            known = self.list_commands(ctx)
            if args[0] not in known:
                raise click.UsageError(f"{args[0]} is not a command. {did_you_mean(args[0], known)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            self.write_summaries(ctx, formatter, self.places)

    def write_summaries(self, ctx: click.Context, formatter: click.HelpFormatter, names: Iterable[str]) -> None:
        """A line for each command, which is never cut in a sentence."""
        commands = [(name, self.get_command(ctx, name)) for name in names]
        formatter.write_dl([(name, summary(command)) for name, command in commands if command is not None])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands with the summaries that the help has."""
        items = super().shell_complete(ctx, incomplete)
        for item in items:
            command = self.get_command(ctx, item.value)
            item.help = item.help if command is None else summary(command)
        return items

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.places:
            return None
        module, _, name = self.places[cmd_name].partition(":")
        whole = module if "." in module else f"eventlog.cli.{module}"
        command = getattr(import_module(whole), name or cmd_name)
        assert isinstance(command, click.Command)
        return with_debug(command)


def with_debug(command: click.Command) -> click.Command:
    """The command, which takes --debug as all do."""
    if DEBUG not in command.params:
        command.params.append(DEBUG)
    return command


def summary(command: click.Command) -> str:
    """The first clause of what a command's help says: enough for a list, and never cut in a sentence."""
    said = " ".join((command.help or "").split())
    pause = _pause(said)
    return said[: pause.start()] if pause else said
