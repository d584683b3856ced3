"""`eventlog emulate linter`: a DISPATCH_QUEUE in SQLite or PostgreSQL, or a file, for those without a server."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from eventlog.cli.places import content_of
from eventlog.core.plural import counted


@click.command()
@click.argument("operations", required=False, type=click.Path(path_type=Path))
@click.option(
    "--database", help="Where to put the rows, as a SQLAlchemy URL; without it they are printed as JSON lines."
)
@click.option("--table", default="DISPATCH_QUEUE", show_default=True, help="The table, made if it is not there.")
@click.option("--schema", type=click.Path(path_type=Path), help="The schema file that describes the source's tables.")
@click.option(
    "--code-page",
    metavar="NAME",
    default="ascii",
    show_default=True,
    help="The code page of texts, for example cp1251.",
)
@click.option("--lengths", type=click.Choice(["rows", "totals"]), default="rows", help="What LEN1 and LEN2 mean.")
@click.option(
    "--coding",
    type=click.Choice(["table", "list"]),
    default="table",
    show_default=True,
    help="Which TYP an operation gets.",
)
@click.option("--address", type=int, default=0x1_0000_1000, help="The SYSLOG_ADDR of the first operation.")
def linter(
    operations: Path | None,
    database: str | None,
    table: str,
    schema: Path | None,
    code_page: str,
    lengths: str,
    coding: str,
    address: int,
) -> None:
    """Writes queue rows as LINTER is taken to write them, from JSON lines of operations; without a file from a sample.

    A line is {"op": "update", "transaction": 5, "table": "T", "rowid": 3, "old": {…}, "row": {…}}, with op one of
    insert, update, delete, create blob, insert blob, clear blob, delete blob, commit, rollback, end.

    Example: eventlog emulate linter --database sqlite:///queue.db
    """
    import msgspec

    from eventlog.sources.linter.emulator import SAMPLE, EmulatorSettings, LinterEmulator, read_schema, steps
    from eventlog.sources.linter.exports import exported
    from eventlog.sources.linter.queue import fill_queue, make_queue
    from eventlog.sources.linter.settings import ReadingSettings
    from eventlog.sql.connect import connect

    catalog = read_schema(content_of(schema) if schema else None, str(schema))
    chosen = msgspec.convert({"lengths": lengths, "coding": coding, "address": address}, EmulatorSettings)
    emulator = LinterEmulator(catalog, ReadingSettings(code_page=code_page), chosen)
    lines = content_of(operations).splitlines() if operations else SAMPLE
    rows = (row for done in steps(lines, catalog, str(operations or "the sample")) for row in emulator.rows(done))
    if database is None:
        for row in rows:
            sys.stdout.write(msgspec.json.encode(exported(row)).decode() + "\n")
        return
    engine = connect(database, may_create=True)
    try:
        make_queue(engine, table)
        click.echo(f"{counted(fill_queue(engine, rows, table), 'row')} written to {table}.")
    finally:
        engine.dispose()
