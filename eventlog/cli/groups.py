"""Groups that are empty by themselves: a capability brings `decode.NAME` among its commands.

`tools` are commands that the wheel of tools for streams brings.
"""

from __future__ import annotations

import click

from eventlog.cli.lazy import LazyGroup


@click.group(cls=LazyGroup, prefix="policy.")
def policy() -> None:
    """Tries policies: what each output gets, and under which names."""


@click.group(cls=LazyGroup, prefix="decode.", tools=("gbase", "linter"))
def decode() -> None:
    """Shows a stream or a topic record by record, also a damaged one.

    Example: eventlog decode gbase capture.bin
    """


@click.group(cls=LazyGroup, prefix="emulate.", tools=("gbase", "linter"))
def emulate() -> None:
    """Writes streams of made-up changes, to try a pipeline without the database.

    Its commands come with the package eventlog-streams-tools.

    Example: eventlog emulate gbase --rows 1000 --out capture.bin
    """
