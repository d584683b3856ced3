"""Groups whose commands are imported only when somebody asks for them, so that none pays for what another needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar, Final

import click

DEBUG: Final = click.Option(["--debug"], is_flag=True, expose_value=False, hidden=True)
"""Whoever saw an error adds this at the end of the line; what it does is found among the program's own options."""

_pause = re.compile(r"[.:;](?:\s|$)").search


class LazyGroup(click.Group):
    """Knows of each command in which module of eventlog.cli it stands, and under which name: `module:name`."""

    places: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.places:
            return None
        module, _, name = self.places[cmd_name].partition(":")
        command = getattr(import_module(f"eventlog.cli.{module}"), name or cmd_name)
        assert isinstance(command, click.Command)
        if DEBUG not in command.params:
            command.params.append(DEBUG)
        return command


def summary(command: click.Command) -> str:
    """The first clause of what a command's help says: enough for a list, and never cut in a sentence."""
    said = " ".join((command.help or "").split())
    pause = _pause(said)
    return said[: pause.start()] if pause else said
