"""How a table becomes lines, none longer than the page, by folded or shortened cells or blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
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

LEAST_COLUMNS: Final = 8
"""A cell is not shortened to fewer, unless each row must be one line."""

GAP_COLUMNS: Final = 3
"""Blanks between two columns."""

# ASCII, for \d means the digits of every script.
_number_or_time = re.compile(r"[\dT:., +-]{0,32}", re.ASCII).fullmatch
# Of times of day alone: other numbers keep what is behind their point.
_fraction = re.compile(r"(?<=\d\d:\d\d:\d\d)\.\d+")


class Page(NamedTuple):
    """Where lines go: how many columns it has, and whether it is a terminal.

    With `listed` each row is one line wherever there is no terminal, so that `grep` and `wc` work.
    """

    width: int
    terminal: bool
    listed: bool = False

    @property
    def folds(self) -> bool:
        """Whether a last column that is too wide goes on below."""
        return self.terminal or not self.listed


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], page: Page) -> Iterator[str]:
    """The lines of a table.

    If it is too wide for the page, empty columns go and the last column is folded. If that is not
    enough, a terminal gets each row as a block, and a pipe gets the longest cells shortened. Of
    many rows only a part is in memory.
    """
    left = iter(rows)
    begin = [*islice(left, MEASURED_ROWS)]
    widths = _widths(columns, begin)
    if _width(widths) <= page.width:
        yield from _rows(columns, begin, left, widths, page)
        return
    # There may be more, in which a column that is empty up to here is filled.
    many = len(begin) == MEASURED_ROWS
    filled = [at for at in range(len(columns)) if many or any(row[at] for row in begin)]
    names = [columns[at] for at in filled]
    cells: Iterator[list[str]] = ([row[at] for at in filled] for row in chain(begin, left))
    measured = [*islice(cells, len(begin))]
    if not page.terminal and _width(_widths(names, measured)) > page.width:
        measured = [*map(_without_fractions, measured)]
        cells = map(_without_fractions, cells)
    fitted = None
    # On a terminal later rows may be wider, and blocks fit whatever comes.
    if not (many and page.terminal):
        fitted = _fitted(names, measured, page)
    if fitted is None:
        yield from _blocks(columns, chain(begin, left), page.width)
    else:
        yield from _rows(names, measured, cells, fitted, page)


def single_line(columns: Sequence[str], cells: Sequence[str], width: int) -> list[str]:
    """The cells of a row that comes alone, the longest shortened until all fit into a line."""
    sizes, room = [*map(size, cells)], width - 2 * (len(cells) - 1)
    if sum(sizes) <= room:
        return [*cells]
    short = _without_fractions(cells)
    widths = _shares([*map(size, short)], _kept(columns, [short]), room) or sizes
    return [cut(cell, most) for cell, most in zip(short, widths, strict=True)]


def folded(text: str, width: int, *, begin: int = 0, indent: int = 0) -> list[str]:
    """A text in lines that are broken between words, or within a word that is longer than a line.

    The first line begins behind `begin` columns and the others behind `indent`, which stand there.
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
    """The columns of a terminal that a text takes: two for a Chinese character."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)


def cut(cell: str, width: int) -> str:
    """A text that takes at most so many columns, with an ellipsis for what is left out."""
    if size(cell) <= width:
        return cell
    if width <= 0:
        return ""
    from rich.cells import set_cell_size

    return f"{set_cell_size(cell, width - 1).rstrip()}…"


def painted(word: str, column: str = "status") -> str:
    """A word in its colour, if its column has any; click removes it where nobody wants colours."""
    if column not in COLOURED or word not in COLOURS:
        return word
    return click.style(word, fg=COLOURS[word])


def _without_fractions(row: Sequence[str]) -> list[str]:
    """A row whose times have no parts of seconds."""
    return [_fraction.sub("", cell) for cell in row]


def _fitted(columns: Sequence[str], rows: Sequence[Sequence[str]], page: Page) -> list[int] | None:
    """How wide columns are that fit together; None if they would be too narrow to be read."""
    widths, kept = _widths(columns, rows), _kept(columns, rows)
    last = len(widths) - 1
    if page.folds:
        widths[last] -= max(0, min(_width(widths) - page.width, widths[last] - FOLDED_COLUMNS))
        kept.add(last)
    if _width(widths) <= page.width:
        return widths
    if page.terminal:
        return None
    room = page.width - _width([0] * len(widths))
    return _shares(widths, kept, room, least=LEAST_COLUMNS if page.folds else 1)


def _kept(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> set[int]:
    """What is never shortened: what names a row, letters and states, numbers and times."""
    return {
        index
        for index, name in enumerate(columns)
        if index == 0 or name in COLOURED or all(_number_or_time(row[index]) for row in rows)
    }


def _shares(
    widths: Sequence[int],
    kept: AbstractSet[int],
    room: int,
    *,
    least: int = 1,
) -> list[int] | None:
    """The widths, the greatest equally smaller until all fit; None if one was below `least`."""
    room -= sum(widths[index] for index in kept)
    free = sorted(width for index, width in enumerate(widths) if index not in kept)
    most = max(free, default=0)
    for number, width in enumerate(free):
        share = room // (len(free) - number)
        if width > share:
            most = share
            break
        room -= width
    if most < least or not free:
        return None
    return [width if index in kept else min(width, most) for index, width in enumerate(widths)]


def _rows(
    columns: Sequence[str],
    measured: Sequence[Sequence[str]],
    later: Iterable[Sequence[str]],
    widths: Sequence[int],
    page: Page,
) -> Iterator[str]:
    """The lines of a table whose columns have these widths."""
    kept, gap = _kept(columns, measured), " " * GAP_COLUMNS
    names = [_filled(cut(name, width), width) for name, width in zip(columns, widths, strict=True)]
    # No blanks at the end of a line, where an editor would show them.
    names[-1] = names[-1].rstrip()
    yield " " + gap.join(click.style(name, bold=True) for name in names)
    yield " " + "─" * (_width(widths) - 1)
    paint = [index for index, name in enumerate(columns) if page.terminal and name in COLOURED]
    for row in chain(measured, later):
        cells = _cells(row, widths, kept, page.width)
        begin = _width([*map(size, cells[:-1]), 0])
        room = page.width - begin
        more: list[str] = []
        if page.folds:
            cells[-1], *more = folded(cells[-1], max(room, 2))
        else:
            cells[-1] = cut(cells[-1], room)
        # Painted last: to whoever measures cells the codes of a colour would be letters.
        for index in paint:
            cells[index] = cells[index].replace(row[index], painted(row[index]), 1)
        yield f" {gap.join(cells)}".rstrip()
        yield from (" " * begin + part for part in more)


def _cells(
    row: Sequence[str],
    widths: Sequence[int],
    kept: AbstractSet[int],
    width: int,
) -> list[str]:
    """The cells of a row as wide as their columns, but for the last; or wider, if there is room."""
    *first, last = row
    cells = [*map(_filled, first, widths[:-1]), last]
    if _width([*map(size, cells)]) <= width:
        return cells
    # A later row may be wider than those that were measured.
    limits = [size(cell) if at in kept else widths[at] for at, cell in enumerate(first)]
    shorter = map(cut, first, limits)
    cells = [*map(_filled, shorter, widths[:-1]), last]
    if _width([*map(size, cells[:-1]), min(size(last), widths[-1])]) <= width:
        return cells
    sizes = [*map(size, row)]
    room = width - _width([0] * len(row))
    # Empty cells pass for numbers: if all that was measured was empty, only what names the row
    # stays whole.
    shares = _shares(sizes, kept, room) or _shares(sizes, {0}, room) or sizes
    return [cut(cell, share) for cell, share in zip(row, shares, strict=True)]


def _blocks(columns: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> Iterator[str]:
    """Each row as a block of its own, a line for each value; what is longer goes on below."""
    label = max(map(len, columns[1:]), default=0) + 2
    for row in rows:
        *titles, last = folded(f"─ {columns[0]} {row[0]}", width - 1)
        titles.append(f"{last} " + "─" * (width - size(last) - 1))
        yield from (click.style(title, bold=True) for title in titles)
        for name, cell in zip(columns[1:], row[1:], strict=True):
            if not cell:
                continue
            first, *more = folded(cell, max(width - label, 10))
            yield f"{name.ljust(label)}{painted(first, name)}".rstrip()
            for part in more:
                yield f"{' ' * label}{painted(part, name)}".rstrip()


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    cells = zip(columns, *rows, strict=True)
    return [max(map(size, column)) for column in cells]


def _width(widths: Sequence[int]) -> int:
    return 1 + sum(widths) + GAP_COLUMNS * (len(widths) - 1)


def _filled(cell: str, width: int) -> str:
    if cell.isascii():
        return cell.ljust(width)
    return cell + " " * (width - size(cell))
