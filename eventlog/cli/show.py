"""How commands report: tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click

from eventlog.core.secrets import shown, visible


def show_json(value: Any) -> None:
    """Prints a value as indented JSON."""
    import msgspec

    click.echo(visible(msgspec.json.format(msgspec.json.encode(value), indent=2).decode(), lines=True, json=True))


def show_json_line(value: Any) -> None:
    """Prints a value as JSON in one line."""
    import msgspec

    click.echo(visible(msgspec.json.encode(value).decode(), json=True))


def say(sentence: str, *, err: bool = False) -> None:
    """Prints a sentence in which words of others may stand."""
    click.echo(shown(sentence), err=err)


def show_text(text: str) -> None:
    """Prints a text of others, line by line."""
    click.echo(visible(text, lines=True))


def readable(cell: object) -> str:
    """A value in one line, without what a terminal would obey: log rows come from people whom nobody knows."""
    return visible(str(cell))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Prints a table, or a sentence when it has no rows. Where a terminal is too narrow, columns without values go."""
    from rich.console import Console

    cells = [["" if cell is None else readable(cell) for cell in row] for row in rows]
    if not cells:
        click.echo(empty)
        return
    console = Console()
    table = _table(columns, cells, console)
    if not console.is_terminal:
        _print(Console(width=_natural_width(table)), table)
        return
    if _natural_width(table) > console.width:
        filled = [place for place in range(len(columns)) if any(row[place] for row in cells)]
        table = _table(
            [columns[place] for place in filled], [[row[place] for place in filled] for row in cells], console
        )
    _print(console, table)


def _print(console: Any, table: Any) -> None:
    """Without the blanks at the ends of lines, which show where somebody copies them."""
    with console.capture() as printed:
        console.print(table)
    for line in printed.get().splitlines():
        click.echo(line.rstrip())


def _table(columns: Sequence[str], cells: Iterable[Sequence[str]], console: Any) -> Any:
    from rich import box
    from rich.table import Column, Table
    from rich.text import Text

    heads = (Column(name, overflow="fold") for name in columns)  # a key that is cut short names no row
    table = Table(*heads, box=box.SIMPLE_HEAD, pad_edge=False, header_style="" if console.no_color else "bold")
    for row in cells:
        table.add_row(*map(Text, row))
    return table


def _natural_width(table: Any) -> int:
    """Into a file or a pipe nothing is cut to the width of a terminal."""
    from rich.console import Console

    wide = Console(width=100_000)
    return max(80, int(wide.measure(table).maximum))
