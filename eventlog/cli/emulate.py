"""`eventlog emulate`: streams as other databases' change capture delivers them, for those who have no server at hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from eventlog.cli.lazy import LazyGroup
from eventlog.cli.site import content_of
from eventlog.core.plural import counted


@click.group(cls=LazyGroup, places={"gbase": "emulate:gbase", "linter": "emulate:linter"})
def emulate() -> None:
    """Writes streams of made-up changes, to try a pipeline without the database.

    Example: eventlog emulate gbase --rows 1000 --out capture.bin
    """


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="The file; `.hex` gives text, one read in each line."
)
@click.option("--rows", default=100, show_default=True, type=click.IntRange(1), help="How many rows are changed.")
@click.option(
    "--dialect",
    type=click.Choice(["gbase", "informix"]),
    default="gbase",
    show_default=True,
    help="Whose records they are.",
)
@click.option("--dirty", is_flag=True, help="Add bytes of earlier reads behind each read, as in a printed buffer.")
@click.option(
    "--cut", default=65_536, show_default=True, type=click.IntRange(1), help="Bytes of a read, which may cut records."
)
@click.option("--seed", default=1, show_default=True, help="Another number gives other changes.")
def gbase(out: Path, rows: int, dialect: str, dirty: bool, cut: int, seed: int) -> None:
    """Writes a stream of GBase 8s or Informix: two tables, interleaved transactions, savepoints, rollbacks, heartbeats.

    The labels are 1 for shop.customer and 2 for shop.purchase, whose keys are id.

    Example: eventlog emulate gbase --rows 1000 --out capture.bin
    """
    from eventlog.sources.gbase.emulator import buffers, reads, shop

    pieces = reads(shop(rows, seed, wide=dialect == "gbase"), cut=cut, minor=0 if dialect == "gbase" else 1)
    pieces = buffers(pieces) if dirty else pieces
    hexadecimal = out.suffix.lower() == ".hex"
    count = 0
    with out.open("wb") as file:
        for piece in pieces:
            file.write(piece.hex().upper().encode() + b"\n" if hexadecimal else piece)
            count += len(piece)
    click.echo(f"{rows} changed rows in {count} bytes: {out}")


@click.command()
@click.argument("operations", required=False, type=click.Path(path_type=Path))
@click.option("--database", help="Write the rows there (SQLAlchemy URL); default: JSON lines on standard output.")
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
    **chosen: Any,
) -> None:
    """Writes LINTER's queue rows from JSON lines of operations; without a file from a sample.

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
    settings = msgspec.convert(chosen, EmulatorSettings)
    emulator = LinterEmulator(catalog, ReadingSettings(code_page=code_page), settings)
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
