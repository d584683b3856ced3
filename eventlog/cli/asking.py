"""Asks before what cannot be taken back; --dry-run says what would be done, --yes does not ask.

Law: a question is only asked at a terminal. Where nobody can be asked, a command that destroys
wants --yes: an answer that comes out of a pipe is none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from eventlog.cli.show import say
from eventlog.core.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])


def asking_options(command: Command) -> Command:
    yes = click.option("--yes", "-y", is_flag=True, help="Do not ask; needed without a terminal.")
    dry = click.option("--dry-run", "dry", is_flag=True, help="Only say what would be done.")
    return yes(dry(command))


def can_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def agree(lines: Sequence[str], *, yes: bool) -> None:
    """Shows what is to be done and asks; refuses where nobody can be asked, even of nothing."""
    if yes or (can_ask() and not lines):
        return
    for line in lines:
        say(line, err=True)
    if not can_ask():
        raise UsageError("There is no terminal to ask at; use --yes to do it.")
    if not click.confirm("Continue?", err=True):
        raise UsageError("Nothing was changed; answer y, or use --yes, to do it.")
