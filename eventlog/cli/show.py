"""How commands report: tables for people, JSON for programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import click

_controls = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def show_json(value: Any) -> None:
    """Prints a value as indented JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def readable(cell: object) -> str:
    """A value in one line, without what a terminal would obey: log rows come from people whom nobody knows."""
    return _controls.sub(lambda match: match[0].encode("unicode_escape").decode(), str(cell))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Prints a table that fits the terminal, or a sentence when it has no rows."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*(Text("" if cell is None else readable(cell)) for cell in row))
    if not table.row_count:
        click.echo(empty)
        return
    console = Console()
    console.print(table) if console.is_terminal else Console(width=_natural_width(table)).print(table)


def _natural_width(table: Any) -> int:
    """Into a file or a pipe nothing is cut to the width of a terminal."""
    from rich.console import Console

    wide = Console(width=100_000)
    return max(80, int(wide.measure(table).maximum))
