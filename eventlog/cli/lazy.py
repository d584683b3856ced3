"""Groups whose commands are imported only when somebody asks for them, so that none pays for what
another needs.

The core's commands stand in a table; what a capability has comes in by the entry points
`eventlog.commands`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from eventlog.core.suggest import did_you_mean

if TYPE_CHECKING:
    from eventlog.core.registry import Offer

DEBUG: Final = click.Option(["--debug"], is_flag=True, expose_value=False, hidden=True)
"""Whoever saw an error adds this at the end of the line; what it does is found among the program's
own options.
"""

_pause = re.compile(r"[.:;](?:\s|$)").search


class LazyGroup(click.Group):
    """Knows of each command of the core where it stands: in a module of eventlog.cli and under
    which name, `module:name`.

    Others are those that packages offer under a name that begins with `prefix`. They are looked for
    where a word is not in the table, for that costs 25 ms.
    """

    def __init__(self, *, places: Mapping[str, str] | None = None, prefix: str | None = None, **given: Any) -> None:
        super().__init__(**given)
        self.places = places or {}
        self._prefix = prefix

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands but those that cannot be loaded; to call one of these says why."""
        from eventlog.core.registry import problem

        return [*self.places, *(word for word, offer in self.brought().items() if problem(offer) is None)]

    def brought(self) -> dict[str, Offer]:
        """The commands that packages offer to this group, by their words."""
        if self._prefix is None:
            return {}
        from eventlog.core.registry import offers

        found = {
            offer.name.removeprefix(self._prefix): offer
            for offer in offers("commands")
            if offer.name.startswith(self._prefix)
        }
        return {word: offer for word, offer in found.items() if "." not in word and word not in self.places}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.places:
            brought = self.brought()
            if args[0] not in brought:
                hint = did_you_mean(args[0], [*self.places, *brought])
                raise click.UsageError(f"{args[0]} is not a command. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            self.write_summaries(ctx, formatter, self.list_commands(ctx))

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
        if cmd_name in self.places:
            module, _, name = self.places[cmd_name].partition(":")
            command = getattr(import_module(f"eventlog.cli.{module}"), name or cmd_name)
        elif cmd_name in (brought := self.brought()):
            from eventlog.core.registry import loaded

            command = loaded(brought[cmd_name])
        else:
            return None
        assert isinstance(command, click.Command)
        return with_debug(command)


def with_debug(command: click.Command) -> click.Command:
    """The command, which takes --debug as all do."""
    if DEBUG not in command.params:
        command.params.append(DEBUG)
    return command


def summary(command: click.Command) -> str:
    """The first clause of what a command's help says: enough for a list, and never cut in a
    sentence.
    """
    said = " ".join((command.help or "").split())
    pause = _pause(said)
    return said[: pause.start()] if pause else said
