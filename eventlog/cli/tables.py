"""How a table becomes lines, none longer than the page, by folded cells or blocks. Nothing is cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple

import click

MEASURED_ROWS: Final = 500
"""Rows whose cells say how wide columns are; a later row may be wider, but not than the page."""

COLOURED: Final = frozenset({"status", "state", "level"})
"""Columns whose words have colours."""

COLOURS: Final[Mapping[str, str]] = {
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
"""What a letter, a level, or the state of a trigger is painted in."""

FOLDED_COLUMNS: Final = 30
"""A last column is not folded into fewer."""

PADDED_COLUMNS: Final = 40
"""In a pipe a cell is filled up to so many at most: one long value must not make each row long."""

GAP_COLUMNS: Final = 3
"""Blanks between two columns."""


class Page(NamedTuple):
    """Where lines go: how many columns it has, and whether colours are seen there.

    A pipe has no width: each row is one line with whole values, so that `grep`, `wc` and `cut` work.
    """

    width: int | None
    coloured: bool = False


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], page: Page) -> Iterator[str]:
    """Yield the lines of a table.

    If too wide for the page, empty columns are left out and the last column is folded; if that is
    not enough, each row becomes a block. Only a part of many rows is in memory.
    """
    left = iter(rows)
    begin = [*islice(left, MEASURED_ROWS)]
    widths = _widths(columns, begin)
    if page.width is None:
        yield from _rows(columns, chain(begin, left), [min(width, PADDED_COLUMNS) for width in widths], page)
        return
    if _width(widths) <= page.width:
        yield from _rows(columns, chain(begin, left), widths, page)
        return
    # There may be more, in which a column that is empty up to here is filled.
    if len(begin) == MEASURED_ROWS:
        yield from _blocks(columns, chain(begin, left), page)
        return
    filled = [at for at in range(len(columns)) if any(row[at] for row in begin)]
    names = [columns[at] for at in filled]
    cells = [[row[at] for at in filled] for row in begin]
    widths = _widths(names, cells)
    widths[-1] -= max(0, min(_width(widths) - page.width, widths[-1] - FOLDED_COLUMNS))
    if _width(widths) <= page.width:
        yield from _rows(names, cells, widths, page)
    else:
        yield from _blocks(columns, begin, page)


def fold_text(text: str, width: int, *, begin: int = 0, indent: int = 0) -> list[str]:
    """Fold a text between words, or within a word longer than a line.

    `begin`: columns used in the first line; `indent`: columns used in the others.
    """
    if begin + size(text) <= width:
        return [text]
    lines, room, used = [""], width - begin, 0
    # Each word with the blanks before it, which stand for nothing at the begin of a line.
    for word in re.findall(" *[^ ]+", text):
        if used > 0 and used + size(word) > room:
            word = word.lstrip()  # noqa: PLW2901 it is the same word on the next line
            lines.append("")
            room, used = width - indent, 0
        if used + size(word) <= room:
            lines[-1] += word
            used += size(word)
            continue
        # It is longer than a line.
        from rich.cells import chop_cells

        first, *more = chop_cells(word, max(min(room, width - indent), 2))
        lines[-1] += first
        lines += more
        if more:
            room, used = width - indent, size(more[-1])
        else:
            used += size(first)
    return lines


def size(cell: str) -> int:
    """Return the width of a text on a terminal: two columns for a Chinese character."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)


def paint_word(word: str, column: str = "status") -> str:
    """Colour a word if its column has colours; click removes them where unwanted."""
    if column not in COLOURED or word not in COLOURS:
        return word
    return click.style(word, fg=COLOURS[word])


def _rows(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    widths: Sequence[int],
    page: Page,
) -> Iterator[str]:
    """Yield the lines of a table with these column widths."""
    gap = " " * GAP_COLUMNS
    names = [_fill_cell(name, width) for name, width in zip(columns, widths, strict=True)]
    # No blanks at the end of a line, where an editor would show them.
    names[-1] = names[-1].rstrip()
    yield " " + gap.join(click.style(name, bold=True) for name in names)
    yield " " + "─" * (_width(widths) - 1)
    paint = [index for index, name in enumerate(columns) if page.coloured and name in COLOURED]
    for row in rows:
        *first, last = row
        cells = [*map(_fill_cell, first, widths[:-1]), last]
        more: list[str] = []
        if page.width is not None:
            begin = _width([*map(size, cells[:-1]), 0])
            if begin + min(size(last), FOLDED_COLUMNS) > page.width:
                # A later row may be wider than those that were measured.
                yield from _blocks(columns, [row], page)
                continue
            cells[-1], *more = fold_text(last, page.width - begin)
        # Painted last: to whoever measures cells the codes of a colour would be letters.
        for index in paint:
            cells[index] = cells[index].replace(row[index], paint_word(row[index]), 1)
        yield f" {gap.join(cells)}".rstrip()
        yield from (" " * begin + part for part in more)


def _blocks(columns: Sequence[str], rows: Iterable[Sequence[str]], page: Page) -> Iterator[str]:
    """Yield each row as a block, one value a line."""
    assert page.width is not None
    width = page.width
    label = max(map(len, columns[1:]), default=0) + 2
    for row in rows:
        *titles, last = fold_text(f"─ {columns[0]} {row[0]}", width - 1)
        titles.append(f"{last} " + "─" * (width - size(last) - 1))
        yield from (click.style(title, bold=True) for title in titles)
        for name, cell in zip(columns[1:], row[1:], strict=True):
            if not cell:
                continue
            first, *more = fold_text(cell, max(width - label, 10))
            yield f"{name.ljust(label)}{paint_word(first, name)}".rstrip()
            for part in more:
                yield f"{' ' * label}{paint_word(part, name)}".rstrip()


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    cells = zip(columns, *rows, strict=True)
    return [max(map(size, column)) for column in cells]


def _width(widths: Sequence[int]) -> int:
    return 1 + sum(widths) + GAP_COLUMNS * (len(widths) - 1)


def _fill_cell(cell: str, width: int) -> str:
    if cell.isascii():
        return cell.ljust(width)
    return cell + " " * (width - size(cell))
