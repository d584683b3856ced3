"""`eventlog log`: the rows, readable."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from eventlog.cli.show import readable, show_json, show_json_line, show_table
from eventlog.cli.site import Site, json_option, site_options
from eventlog.core.model import Reason

if TYPE_CHECKING:
    from eventlog.admin.rows import LogRow

COLUMNS = ("id", "status", "type", "time", "table", "key", "column", "old", "new", "reason", "note")
SHOWN_CHARACTERS = 40
"""Characters of a value in a table; --json gives all of it."""

MOST_ROWS = 1_000_000_000
"""What --limit takes."""

ALL_CHARACTERS = 2**30
"""More characters than a value has."""


@click.command()
@click.option(
    "--status", "letters", metavar="MOST_LETTERS", default="", help="Only rows with one of these letters, e.g. EF."
)
@click.option("--reason", type=click.Choice([reason.value for reason in Reason]), help="Only rows with this reason.")
@click.option("--table", metavar="NAME", help="Only rows of this table, with its schema or without.")
@click.option(
    "--limit", type=click.IntRange(1, MOST_ROWS), default=50, show_default=True, help="The newest so many rows."
)
@click.option("--follow", "-f", "following", is_flag=True, help="Go on with rows that come or change; Ctrl-C ends it.")
@json_option
@site_options
def log(
    site: Site, letters: str, reason: str | None, table: str | None, limit: int, following: bool, as_json: bool
) -> None:
    """Shows rows of the log and what became of them; the newest stand last. With --follow, --json gives a line a row.

    Example: eventlog log --status E --database sqlite:///app.db
    """
    from eventlog.admin.rows import Choice, follow, rows, table_meant
    from eventlog.sql.log import Log

    engine = site.engine()
    found = Log(engine, site.names(engine))
    found.check()
    choice = Choice(letters=check_letters(letters), reason=reason, table=table)
    width = ALL_CHARACTERS if as_json else SHOWN_CHARACTERS + 1
    if following:
        _show_lines(follow(found, choice, limit=limit, width=width, pause=time.sleep), as_json=as_json)
        return
    chosen, empty = rows(found, choice, limit=limit, width=width), "No rows."
    if table is not None and not chosen:
        name, problem = table_meant(found, table)
        chosen = rows(found, replace(choice, table=name), limit=limit, width=width)
        empty = problem or empty
    if as_json:
        show_json([_told(row) for row in chosen])
    else:
        show_table(COLUMNS, map(_cells, chosen), empty=empty)


def check_letters(letters: str) -> str:
    """The letters as they are written, each once; UsageError for what cannot be letters."""
    from eventlog.admin.rows import MOST_LETTERS
    from eventlog.core.errors import UsageError

    found = "".join(dict.fromkeys(letters.replace(",", "")))
    if len(found) > MOST_LETTERS or not found.isprintable():
        raise UsageError(f"--status takes up to {MOST_LETTERS} letters, such as E or EW.")
    return found


def _show_lines(rows: Iterable[LogRow], *, as_json: bool) -> None:
    for row in rows:
        if as_json:
            show_json_line(_told(row))
        else:
            click.echo("  ".join("-" if cell is None else readable(cell) for cell in _cells(row)))


def _told(row: LogRow) -> dict[str, Any]:
    """The row for programs; an event_type that is a number is one there too."""
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(row)
    kind = told["event_type"]
    return told | {"event_type": int(kind) if kind and kind.isdecimal() and len(kind) <= 18 else kind}


def _cells(row: LogRow) -> tuple[object, ...]:
    return (
        row.record_id,
        row.status,
        row.event_type,
        row.event_time,
        row.table_name,
        row.table_key,
        row.column_name,
        _cut(row.old_value),
        _cut(row.new_value),
        row.reason,
        row.note,
    )


def _cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= SHOWN_CHARACTERS else f"{value[:SHOWN_CHARACTERS]}…"
