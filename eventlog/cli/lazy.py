"""Groups whose commands are imported only when they are called: none pays for what another needs.

The core's commands stand in a table; others come by the entry points `eventlog.commands`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from eventlog.core.suggest import did_you_mean

if TYPE_CHECKING:
    from eventlog.core.registry import Offer

DEBUG: Final = click.Option(["--debug"], is_flag=True, expose_value=False, hidden=True)
"""Whoever saw an error adds this at the end of the line; the program's own option does the rest."""


class LazyGroup(click.Group):
    """Knows by `places` where each command of its own stands: `module:name`.

    Commands with `summaries` are listed without being loaded.

    Packages offer others under names that begin with `prefix`. They are looked for where a word is
    not in the table, for that costs 25 ms. `tools` are those that the tools for streams bring.
    """

    def __init__(
        self,
        *,
        places: Mapping[str, str] = {},
        summaries: Mapping[str, str] = {},
        prefix: str | None = None,
        tools: Sequence[str] = (),
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self.places = places
        self._summaries = summaries
        self._prefix = prefix
        self._tools = tools

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List all commands except those failing to load; calling one of these explains it."""
        from eventlog.core.registry import problem

        offers = self.brought()
        usable = [word for word, offer in offers.items() if word in self._summaries or problem(offer) is None]
        return [*self.places, *usable]

    def brought(self) -> dict[str, Offer]:
        """Return commands offered by packages to this group, by name."""
        if self._prefix is None:
            return {}
        from eventlog.core.registry import offers

        commands = {}
        for offer in offers("commands"):
            word = offer.name.removeprefix(self._prefix)
            # `decode.gbase` is a word of the group `decode`, and none of the program's own.
            is_own = offer.name.startswith(self._prefix) and "." not in word
            # Nobody else's package takes the place of a command of ours.
            if is_own and word not in self.places:
                commands[word] = offer
        return commands

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.places:
            brought = self.brought()
            if args[0] in self._tools and args[0] not in brought:
                from eventlog.core.packages import missing_tools

                raise missing_tools(f"The command {self._prefix}{args[0]}".replace(".", " "))
            if args[0] not in brought:
                options = {name for option in self.get_params(ctx) for name in option.opts}
                hint = did_you_mean(args[0], [*self.places, *brought])
                if f"--{args[0]}" in options:
                    hint = f"Did you mean --{args[0]}?"
                raise click.UsageError(f"{args[0]} is not a command. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        if names:
            with formatter.section("Commands"):
                self.write_summaries(ctx, formatter, names)

    def write_summaries(
        self,
        ctx: click.Context,
        formatter: click.HelpFormatter,
        names: Iterable[str],
    ) -> None:
        """Write a line for each command."""
        formatter.write_dl([(name, self._summary(ctx, name)) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands, with their summaries, and options."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self._summary(ctx, name)) for name in names]
        # Past the group, which would load each command to see whether it is hidden.
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def _summary(self, ctx: click.Context, name: str) -> str:
        if name in self._summaries:
            return self._summaries[name]
        command = self.get_command(ctx, name)
        return "" if command is None else summary(command)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.places:
            module, _, name = self.places[cmd_name].partition(":")
            command = getattr(import_module(module), name or cmd_name)
        elif cmd_name in (brought := self.brought()):
            from eventlog.core.registry import load_offer

            command = load_offer(brought[cmd_name])
        else:
            return None
        assert isinstance(command, click.Command)
        if DEBUG not in command.params:
            command.params.append(DEBUG)
        return command


def summary(command: click.Command) -> str:
    """Return the first clause of a command's help; click would cut within a sentence."""
    # A point inside of a word, as in 0.3, ends no clause.
    return re.split(r"[.:;](?:\s|$)", " ".join((command.help or "").split()), maxsplit=1)[0]
