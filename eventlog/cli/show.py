"""How commands report: tables and records for people, a pager where somebody sits, JSON for
programs.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any, Final, TextIO

import click

from eventlog.cli.tables import Page, folded, painted, single_line, table
from eventlog.core.secrets import masked, shown, visible

PIPE_COLUMNS: Final = 100
"""How long lines of reports are in a file or a pipe; COLUMNS in the environment asks for others."""

BLOCK_ROWS: Final = 500
"""Lines that are written at once."""

MIN_COLUMNS: Final = 40
"""Sentences are not broken into shorter lines."""

NO_PAGER: Final = ("", "cat")


def show_json(value: Any) -> None:
    click.echo(_indented(value))


def show_json_list(values: Iterable[Any]) -> None:
    """Prints values as `show_json` prints a list of them, and keeps none."""
    before = "["
    for value in values:
        inner = _indented(value).replace("\n", "\n  ")
        click.echo(f"{before}\n  {inner}", nl=False)
        before = ","
    if before == "[":
        click.echo("[]")
    else:
        click.echo("\n]")


def show_json_line(value: Any) -> None:
    import msgspec

    click.echo(visible(msgspec.json.encode(value).decode(), json=True))


def utc_json(told: float | str | None) -> str | None:
    """A time in UTC as JSON has it, in ISO 8601; given as seconds since 1970, or as people read
    it.
    """
    if told is None:
        return None
    if isinstance(told, str):
        return f"{told.replace(' ', 'T', 1)}Z"
    moment = dt.datetime.fromtimestamp(told, dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_json(told: str | None) -> str | None:
    """A time of a log as JSON has it, in ISO 8601; what a log has written otherwise stays as it
    is.
    """
    return told and re.sub(r"^(\d{4}-\d\d-\d\d) (?=\d\d:)", r"\1T", told)


def show_done(what: str, found: object, sentence: str, *, as_json: bool) -> None:
    """Prints what was done: a sentence, or `found` under its name."""
    if as_json:
        show_json({what: found})
    else:
        show_sentence(sentence)


def say(sentence: str, *, err: bool = False) -> None:
    """Prints a sentence with words of others in it; on standard error it is one line."""
    if err:
        click.echo(shown(sentence), err=True)
    else:
        show_sentence(masked(sentence))


def show_sentence(sentence: str, *, indent: int = 0) -> None:
    """Prints a sentence in which a value stands, broken between words if it is too long."""
    click.echo(wrapped(readable(sentence), indent=indent))


def wrapped(text: str, *, begin: int = 0, indent: int = 0) -> str:
    """A text in lines of a report.

    `begin` columns stand before it already, `indent` before each further line.
    """
    lines = folded(text, max(page().width, MIN_COLUMNS), begin=begin, indent=indent)
    return f"\n{' ' * indent}".join(lines)


def show_text(text: str) -> None:
    """Prints a text of others, line by line."""
    click.echo(visible(text, lines=True))


def readable(cell: object) -> str:
    """A value in one line, without what a terminal would obey: log rows come from people whom
    nobody knows.
    """
    return visible(str(cell))


def page(*, listed: bool = False) -> Page:
    """Where reports go. What is no terminal has the columns that COLUMNS says, or 100."""
    width = shutil.get_terminal_size((PIPE_COLUMNS, 24)).columns
    return Page(width=width, terminal=on_terminal(), listed=listed)


def on_terminal() -> bool:
    """Whether reports are laid out and coloured for a terminal."""
    return _is_terminal(sys.stdout) or bool(os.environ.get("FORCE_COLOR"))


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    empty: str,
    paged: bool = False,
    listed: bool = False,
) -> None:
    """Prints a table, or a sentence when it has no rows.

    `paged` hands it to a pager where there is a terminal; with `listed` a pipe gets a line for
    each row. Of many rows only a part is in memory.
    """
    cells = (["" if cell is None else readable(cell) for cell in row] for row in rows)
    # Read before anything is printed: rows come from a database, which may fail.
    first = next(cells, None)
    if first is not None:
        show_lines(table(columns, chain([first], cells), page(listed=listed)), paged=paged)
    elif empty:
        show_sentence(empty)


def show_row(columns: Sequence[str], cells: Sequence[str]) -> None:
    """Prints a row without a heading: in a pipe it is one line, a terminal has it whole."""
    where = page()
    texts = cells if where.terminal else single_line(columns, cells, where.width)
    # Only the status is painted: it is where the eye looks in a log that goes by.
    letter = columns.index("status")
    begin = "  ".join([*texts[:letter], ""])
    # Painted last: to whoever breaks lines the codes of a colour would be letters.
    rest = wrapped("  ".join(texts)).removeprefix(begin + texts[letter])
    click.echo(begin + painted(texts[letter]) + rest)


def show_lines(lines: Iterable[str], *, paged: bool = False) -> None:
    """Prints lines, by a pager where there is one and somebody to turn its pages."""
    if paged and _has_pager():
        # A generator: the pager shows the first screen while rows are still read.
        click.echo_via_pager(f"{line}\n" for line in lines)
        return
    remaining = iter(lines)
    while block := [*islice(remaining, BLOCK_ROWS)]:
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
        # To click no other variable says which pager.
        os.environ["PAGER"] = wanted
    # F: one screen needs no pager; R: colours are colours; X: the text stays when it ends.
    os.environ.setdefault("LESS", "FRX")
    return True


def _indented(value: Any) -> str:
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return visible(text, lines=True, json=True)
