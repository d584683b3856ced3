"""`eventlog apply`: keeps mirror tables equal to their sources by what change tables tell."""

from __future__ import annotations

import click

from eventlog.cli.show import say, show_json, show_sentence
from eventlog.cli.site import json_option
from eventlog.core.errors import EX_DATA, OK
from eventlog.core.plural import count_words


@click.command("apply")
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option(
    "--database",
    "-d",
    "url",
    metavar="URL",
    envvar="EVENTLOG_DATABASE",
    required=True,
    help="The database of the change tables.",
)
@click.option(
    "--schema",
    metavar="NAME",
    help="The schema of the change tables; default: the connection's.",
)
@click.option(
    "--into",
    metavar="NAME",
    help="The schema of the mirrors, which have the tables' names there (default: the change tables').",
)
@click.option(
    "--suffix",
    metavar="TEXT",
    default="__mirror",
    show_default=True,
    help="The ending of mirrors beside the change tables.",
)
@click.option("--adopt", is_flag=True, help="Use existing tables with rows that were loaded before.")
@json_option
def apply(
    tables: tuple[str, ...],
    url: str,
    schema: str | None,
    into: str | None,
    suffix: str,
    adopt: bool,
    as_json: bool,
) -> int:
    """Brings mirrors up to date from change tables.

    Without names it brings all: a table that cannot have a mirror is left out, and the exit code is
    65.

    Example: eventlog apply usr --database postgresql+psycopg://idm@db/lake --into mirror
    """
    from msgspec import to_builtins

    from eventlog.sinks.database.mirror import Mirrors
    from eventlog.sql.connect import connect

    engine = connect(url)
    left_out: list[str] = []

    def leave_out(text: str) -> None:
        left_out.append(text)
        say(text, err=True)

    try:
        done = Mirrors(engine, schema, into or schema, suffix, adopt=adopt).apply(tables, None if tables else leave_out)
    finally:
        engine.dispose()
    if as_json:
        show_json([to_builtins(mirror) for mirror in done])
        return EX_DATA if left_out else OK
    for mirror in done:
        rows = count_words(mirror.rows, "row")
        reached = f"{rows}, as far as {mirror.change_seq}"
        show_sentence(f"{mirror.change_table} -> {mirror.mirror}: {reached}")
    return EX_DATA if left_out else OK
