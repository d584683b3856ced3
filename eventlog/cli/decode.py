"""`eventlog decode`: annotated dumps, record by record; a capability brings `decode.NAME` among its
commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from eventlog.cli.lazy import LazyGroup
from eventlog.cli.show import show_json_line, show_text
from eventlog.core.errors import EX_DATA, OK
from eventlog.core.plural import counted


@click.group(cls=LazyGroup, prefix="decode.")
def decode() -> None:
    """Shows a stream or a topic record by record, also a damaged one.

    Example: eventlog decode gbase capture.bin
    """


def show_dump(
    dump: Iterable[Any], text: Callable[[Any], str], restart: Any, words: tuple[str, ...], *, as_json: bool
) -> int:
    """Prints what a dump has, where reading would begin that continues, and how much is damaged;
    the exit code.
    """
    found = damaged = 0
    for one in dump:
        found += 1
        damaged += one.damaged
        if as_json:
            show_json_line(one)
        else:
            show_text(text(one))
    point = restart.point
    if as_json and point is not None:
        show_json_line({"restart": point})
    elif point is not None:
        click.echo(point.text)
    if not as_json:
        click.echo(f"{counted(found, *words)}, {damaged:,} of them damaged.")
    return EX_DATA if damaged else OK
