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
    dump: Iterable[Any],
    text: Callable[[Any], str],
    restart: Any,
    words: tuple[str, ...],
    *,
    as_json: bool,
) -> int:
    """Prints what a dump has, where reading would begin that continues, and how much is damaged;
    the exit code.
    """
    count = damaged = 0
    for record in dump:
        count += 1
        damaged += record.damaged
        if as_json:
            show_json_line(record)
        else:
            show_text(text(record))
    # Only now: the point moves while the dump is read.
    point = restart.point
    if as_json and point is not None:
        show_json_line({"restart": point})
    elif point is not None:
        click.echo(point.text)
    if not as_json:
        click.echo(f"{counted(count, *words)}, {damaged:,} of them damaged.")
    if damaged:
        return EX_DATA
    return OK
