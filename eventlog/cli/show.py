"""How commands report: tables for people, a pager where somebody sits, JSON for programs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TextIO

import click

from eventlog.cli.tables import Page, fold_text, table
from eventlog.core.errors import EX_DATA, OK
from eventlog.core.plural import count_words
from eventlog.core.secrets import make_readable, mask_secrets, visible

BLOCK_ROWS: Final = 500
"""Lines that are written at once."""

FALLBACK_COLUMNS: Final = 100
"""How wide a terminal is that does not say it."""

MIN_COLUMNS: Final = 40
"""Sentences are not broken into shorter lines."""

NO_PAGER: Final = ("", "cat")


def show_json(value: Any) -> None:
    click.echo(indent_json(value))


def indent_json(value: Any) -> str:
    """Format a value as indented JSON."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return visible(text, lines=True, json=True)


def show_json_line(value: Any) -> None:
    import msgspec

    click.echo(visible(msgspec.json.encode(value).decode(), json=True))


def show_done(what: str, affected: object, sentence: str, *, as_json: bool) -> None:
    """Prints what was done: a sentence, or what was `affected` by name."""
    if as_json:
        show_json({what: affected})
    else:
        show_sentence(sentence)


def say(sentence: str, *, err: bool = False, link: str | Path | None = None) -> None:
    """Prints a sentence with words of others in it; on standard error it is one line.

    There a terminal opens what it links to, which it names.
    """
    if err:
        line = make_readable(sentence)
        if link is not None:
            line = line.replace(make_readable(str(link)), link_text(make_readable(str(link)), link, err=True), 1)
        click.echo(line, err=True)
    else:
        show_sentence(mask_secrets(sentence))


def show_sentence(sentence: str, *, indent: int = 0) -> None:
    """Prints a sentence in which a value stands, broken between words if it is too long."""
    click.echo(wrap_text(readable(sentence), indent=indent))


def wrap_text(text: str, *, begin: int = 0, indent: int = 0) -> str:
    """Wrap a text into lines of a report.

    `begin`: columns already used in the first line; `indent`: blanks before each further line.
    """
    width = page().width
    if width is None:
        return text
    lines = fold_text(text, max(width, MIN_COLUMNS), begin=begin, indent=indent)
    return f"\n{' ' * indent}".join(lines)


def show_text(text: str) -> None:
    """Prints a text of others, line by line."""
    click.echo(visible(text, lines=True))


def readable(cell: object) -> str:
    """Return a value in one line, without a terminal's control sequences: anybody may have written
    it.
    """
    return visible(str(cell))


def page() -> Page:
    """Describe the terminal of reports; a file or pipe has no width unless COLUMNS is set."""
    is_seen = on_terminal()
    if is_seen or os.environ.get("COLUMNS", "").isdecimal():
        return Page(width=shutil.get_terminal_size((FALLBACK_COLUMNS, 24)).columns, coloured=is_seen)
    return Page(width=None)


def on_terminal() -> bool:
    """Return True if reports are laid out and coloured for a terminal."""
    return _is_terminal(sys.stdout) or bool(os.environ.get("FORCE_COLOR"))


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    empty: str,
    paged: bool = False,
) -> None:
    """Prints a table, or a sentence when it has no rows.

    `paged` hands it to a pager where there is a terminal. Of many rows only a part is in memory.
    """
    cells = (["" if cell is None else readable(cell) for cell in row] for row in rows)
    # Read before anything is printed: rows come from a database, which may fail.
    first = next(cells, None)
    if first is not None:
        show_lines(table(columns, chain([first], cells), page()), paged=paged)
    elif empty:
        show_sentence(empty)


def show_lines(lines: Iterable[str], *, paged: bool = False) -> None:
    """Prints lines, by a pager where there is one and somebody to turn its pages."""
    if paged and _has_pager():
        # A generator: the pager shows the first screen while rows are still read.
        click.echo_via_pager(f"{line}\n" for line in lines)
        return
    remaining = iter(lines)
    while block := [*islice(remaining, BLOCK_ROWS)]:
        click.echo("\n".join(block))


HOME: Final = "\x1b[H"
LINE_END: Final = "\x1b[K\n"
REST: Final = "\x1b[J"
"""What a terminal obeys: to the first place, the rest of the line and of the screen is empty."""


def show_again(lines: Iterable[str], *, err: bool = False) -> None:
    """Shows lines in the place of those before, without a flicker; a file or a pipe gets them below."""
    if not err and on_terminal():
        click.echo(f"{HOME}{LINE_END.join(lines)}{LINE_END}{REST}", nl=False)
        return
    click.echo("\n".join([*lines, ""]), err=err)


def link_text(text: str, target: str | Path, *, err: bool = False) -> str:
    """Link a text to an address or file on terminals with hyperlinks (OSC 8)."""
    stream = sys.stderr if err else sys.stdout
    if not _is_terminal(stream) or os.environ.get("TERM", "dumb") in ("dumb", "linux"):
        return text
    address = target if isinstance(target, str) else target.absolute().as_uri()
    return f"\x1b]8;;{visible(address)}\x1b\\{text}\x1b]8;;\x1b\\"


def _is_terminal(stream: TextIO | None) -> bool:
    """Return True if the stream is a terminal; a closed one is not."""
    return stream is not None and stream.isatty()


def _has_pager() -> bool:
    """Return True if a pager is used; EVENTLOG_PAGER precedes PAGER."""
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


def show_dump(
    dump: Iterable[Any],
    text: Callable[[Any], str],
    restart: Any,
    words: tuple[str, ...],
    *,
    as_json: bool,
) -> int:
    """Prints a dump, where a reader would go on, and how much is damaged; the exit code."""
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
        click.echo(f"{count_words(count, *words)}, {damaged:,} of them damaged.")
    if damaged:
        return EX_DATA
    return OK
