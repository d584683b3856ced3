"""How commands report: tables and records for people, a pager where somebody sits, JSON for programs."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final, TextIO

import click

from eventlog.core.secrets import shown, visible

MEASURED_ROWS: Final = 500
"""Rows whose cells say how wide columns are; those of later rows are printed as they are."""

BLOCK_ROWS: Final = 500
"""Lines that are written at once."""

COLOURED: Final = frozenset({"status", "state", "level"})
"""Columns whose words have colours."""

COLOURS: Final = {
    "N": "cyan",
    "S": "green",
    "W": "yellow",
    "E": "red",
    "F": "bright_red",
    "ok": "green",
    "warning": "yellow",
    "failure": "red",
    "CURRENT": "green",
    "OUTDATED": "yellow",
    "STRAY": "yellow",
    "DISABLED": "yellow",
    "MISSING": "red",
}
"""What a letter, a level, or the state of a trigger is painted in; the word stands there all the same."""

FOLDED_CHARACTERS: Final = 30
"""A last column that would be narrower has its rows shown under each other."""

MIN_COLUMNS: Final = 40
"""Sentences are not broken into shorter lines."""

NO_PAGER: Final = ("", "cat")


def show_json(value: Any) -> None:
    click.echo(_indented(value))


def show_json_list(values: Iterable[Any]) -> None:
    """Prints values as `show_json` prints a list of them, and keeps none."""
    begun = False
    for value in values:
        inner = _indented(value).replace("\n", "\n  ")
        click.echo(f"{',' if begun else '['}\n  {inner}", nl=False)
        begun = True
    click.echo("\n]" if begun else "[]")


def show_json_line(value: Any) -> None:
    import msgspec

    click.echo(visible(msgspec.json.encode(value).decode(), json=True))


def utc_json(told: float | str | None) -> str | None:
    """A time in UTC as JSON has it, in ISO 8601; given as seconds since 1970, or as people read it."""
    if told is None:
        return None
    if isinstance(told, str):
        return f"{told.replace(' ', 'T', 1)}Z"
    return dt.datetime.fromtimestamp(told, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def show_done(what: str, found: object, sentence: str, *, as_json: bool) -> None:
    """Prints what was done: a sentence, or `found` under its name."""
    if as_json:
        show_json({what: found})
    else:
        click.echo(sentence)


def say(sentence: str, *, err: bool = False) -> None:
    """Prints a sentence in which words of others may stand."""
    click.echo(shown(sentence), err=err)


def show_sentence(sentence: str) -> None:
    """Prints a sentence of ours in which a value stands; on a terminal it is broken between words."""
    click.echo(wrapped(readable(sentence)))


def wrapped(text: str, *, begin: int = 0, indent: int = 0) -> str:
    """A text in lines that the terminal holds, as it is where there is none; `begin` columns stand before it already."""
    from textwrap import TextWrapper

    width = terminal_columns()
    if width is None:
        return text
    wrapper = TextWrapper(max(width, MIN_COLUMNS), break_long_words=False, break_on_hyphens=False)
    wrapper.initial_indent, wrapper.subsequent_indent = " " * begin, " " * indent
    return wrapper.fill(text)[begin:]


def show_text(text: str) -> None:
    """Prints a text of others, line by line."""
    click.echo(visible(text, lines=True))


def readable(cell: object) -> str:
    """A value in one line, without what a terminal would obey: log rows come from people whom nobody knows."""
    return visible(str(cell))


def painted(word: str, column: str = "status") -> str:
    """A word in its colour, where its column has colours; whoever prints it takes them away where nobody wants them."""
    colour = COLOURS.get(word) if column in COLOURED else None
    return word if colour is None else click.style(word, fg=colour)


def terminal_columns() -> int | None:
    """How wide the terminal is that is written to; None where it is a file or a pipe."""
    if not (_is_terminal(sys.stdout) or os.environ.get("FORCE_COLOR")):
        return None
    return shutil.get_terminal_size().columns


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str, paged: bool = False) -> None:
    """Prints a table, or a sentence when it has no rows. Where a terminal is too narrow, rows stand under each other.

    `paged` hands it to a pager where there is a terminal. Of many rows only a part is in memory.
    """
    show_lines(_lines(columns, rows, empty), paged=paged)


def show_lines(lines: Iterable[str], *, paged: bool = False) -> None:
    """Prints lines, by a pager where there is one and somebody to turn its pages."""
    if paged and _has_pager():
        click.echo_via_pager(f"{line}\n" for line in lines)
        return
    left = iter(lines)
    while block := [*islice(left, BLOCK_ROWS)]:
        click.echo("\n".join(block))


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody sits there; a stream that whoever started us has closed is none."""
    return stream is not None and stream.isatty()


def _has_pager() -> bool:
    """Whether a pager is to be used. click finds it, by PAGER; EVENTLOG_PAGER goes before that."""
    if not (_is_terminal(sys.stdout) and _is_terminal(sys.stdin)):
        return False
    wanted = os.environ.get("EVENTLOG_PAGER", os.environ.get("PAGER"))
    if wanted is not None and wanted.strip() in NO_PAGER:
        return False
    if wanted is not None:
        os.environ["PAGER"] = wanted
    os.environ.setdefault("LESS", "FRX")  # one screen needs no pager, and colours are colours
    return True


def _indented(value: Any) -> str:
    import msgspec

    return visible(msgspec.json.format(msgspec.json.encode(value), indent=2).decode(), lines=True, json=True)


def _lines(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> Iterator[str]:
    left = (["" if cell is None else readable(cell) for cell in row] for row in rows)
    begin = [*islice(left, MEASURED_ROWS)]
    if not begin:
        yield from [empty] if empty else []
        return
    cells, width = chain(begin, left), terminal_columns()
    widths = _widths(columns, begin)
    if width is None or _width(widths) <= width:
        yield from _table(columns, cells, widths, coloured=width is not None)
        return
    filled = [place for place in range(len(columns)) if any(row[place] for row in begin)]
    narrow, names = [[row[place] for place in filled] for row in begin], [columns[place] for place in filled]
    widths = _widths(names, narrow)
    widths[-1] -= max(0, min(_width(widths) - width, widths[-1] - FOLDED_CHARACTERS))  # a note goes on below
    if len(begin) < MEASURED_ROWS and _width(widths) <= width:
        yield from _table(names, narrow, widths, coloured=True)
    else:
        yield from _records(columns, cells, width)


def _table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int], *, coloured: bool
) -> Iterator[str]:
    sized = [
        *widths[:-1],
        0,
    ]  # nothing behind the last cell: blanks at the ends of lines show where somebody copies them
    yield " " + "   ".join(
        click.style(_filled(name, width), bold=True) for name, width in zip(columns, sized, strict=True)
    )
    yield " " + "─" * (_width(widths) - 1)
    paint = [place for place, name in enumerate(columns) if coloured and name in COLOURED]
    for row in rows:
        cells = [_filled(cell, width) for cell, width in zip(row, sized, strict=True)]
        cells[-1], *more = _folded(row[-1], widths[-1]) if coloured else row[-1:]
        for place in paint:
            cells[place] = cells[place].replace(row[place], painted(row[place]), 1)
        yield f" {'   '.join(cells)}".rstrip()
        yield from (" " * (_width(widths) - widths[-1]) + part for part in more)


def _folded(text: str, width: int) -> list[str]:
    """A text in lines of a width, broken between words where there are any."""
    from textwrap import wrap

    return [text] if _size(text) <= width else wrap(text, width, break_on_hyphens=False)


def _records(columns: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> Iterator[str]:
    """Each row as a block of its own, a line for each value; what is longer goes on below where it began."""
    from rich.cells import chop_cells

    label = max(map(len, columns[1:]), default=0) + 2
    for row in rows:
        title = f"─ {columns[0]} {row[0]} "
        yield click.style(title + "─" * max(0, width - len(title)), bold=True)
        for name, cell in zip(columns[1:], row[1:], strict=True):
            room = max(width - label, 10)
            parts = _folded(cell, room) if _size(cell) == len(cell) else chop_cells(cell, room)
            for place, part in enumerate(parts if cell else []):
                yield f"{(name if place == 0 else '').ljust(label)}{painted(part, name)}".rstrip()


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(_size(name), max((_size(row[place]) for row in rows), default=0)) for place, name in enumerate(columns)]


def _width(widths: Sequence[int]) -> int:
    return 1 + sum(widths) + 3 * (len(widths) - 1)


def _filled(cell: str, width: int) -> str:
    return cell.ljust(width) if cell.isascii() else cell + " " * (width - _size(cell))


def _size(cell: str) -> int:
    """The columns of a terminal that a text takes: two for a Chinese character."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)
