"""`eventlog decode linter` and `emulate linter`: a queue, operation by operation, and one that is
made up.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from eventlog.cli.show import show_dump
from eventlog.cli.site import content_of, json_option
from eventlog.core.plural import count_words


@click.command("linter")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--schema",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The schema file; without it records are shown raw.",
)
@click.option(
    "--codec",
    metavar="NAME",
    default="packed-v1",
    show_default=True,
    help="How records are read: raw, packed-v1 or a codec of your own.",
)
@click.option(
    "--code-page",
    metavar="NAME",
    default="ascii",
    show_default=True,
    help="The code page of texts, for example cp866, koi8-r, cp1251 or utf-8.",
)
@click.option(
    "--coding",
    type=click.Choice(["table", "list", "auto"]),
    default="table",
    show_default=True,
    help="Which operation a TYP is.",
)
@click.option(
    "--variant",
    type=click.Choice(["dispatch", "receiving"]),
    default="dispatch",
    show_default=True,
    help="Which of LINTER's two queues the rows are from.",
)
@click.option("--pad-data", is_flag=True, help="Put back zeros that a driver removed from the end of DATA.")
@json_option
def decode(file: Path, schema: Path | None, as_json: bool, **chosen: Any) -> int:
    """Shows every operation of a LINTER queue, exported as JSON lines, CSV or Parquet: its rows,
    parts and values.

    Damaged operations are shown with their bytes and the error. The last lines say from where
    reading can continue. Exit code 65 if anything is damaged.

    Example: eventlog decode linter queue.jsonl --schema schema.json --code-page cp1251
    """
    import msgspec

    from eventlog.core.schema_file import catalog_from_json
    from eventlog.sources.linter.exports import export_rows
    from eventlog.sources.linter.settings import ReadingSettings
    from eventlog.sources.linter.tables import SourceTables
    from eventlog_streams_tools.linter.dump import FollowedQueue, dump_operations, text_of

    settings = msgspec.convert(chosen, ReadingSettings)
    catalog = None
    if schema:
        catalog = catalog_from_json(content_of(schema), origin=str(schema))
    tables = SourceTables(catalog, settings)
    restart = FollowedQueue()
    dump = dump_operations(export_rows([file], settings), tables, settings, restart.take)
    return show_dump(dump, lambda operation: "\n".join(text_of(operation)), restart, ("operation",), as_json=as_json)


@click.command("linter")
@click.argument("operations", required=False, type=click.Path(path_type=Path))
@click.option(
    "--database",
    "-d",
    metavar="URL",
    help="Write the rows there (SQLAlchemy URL); default: JSON lines on standard output.",
)
@click.option(
    "--table", metavar="NAME", default="DISPATCH_QUEUE", show_default=True, help="The table, made if it is not there."
)
@click.option(
    "--schema",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The schema file that describes the source's tables.",
)
@click.option(
    "--code-page",
    metavar="NAME",
    default="ascii",
    show_default=True,
    help="The code page of texts, for example cp1251.",
)
@click.option(
    "--lengths",
    type=click.Choice(["rows", "totals"]),
    default="rows",
    help="What LEN1 and LEN2 mean.",
)
@click.option(
    "--coding",
    type=click.Choice(["table", "list"]),
    default="table",
    show_default=True,
    help="Which TYP an operation gets.",
)
@click.option(
    "--address",
    metavar="N",
    type=int,
    default=0x1_0000_1000,
    help="The SYSLOG_ADDR of the first operation.",
)
def emulate(
    operations: Path | None,
    database: str | None,
    table: str,
    schema: Path | None,
    code_page: str,
    **chosen: Any,
) -> None:
    """Writes LINTER's queue rows from JSON lines of operations; without a file from a sample.

    A line is {"op": "update", "transaction": 5, "table": "T", "rowid": 3, "old": {…}, "row": {…}},
    with op one of insert, update, delete, create blob, insert blob, clear blob, delete blob,
    commit, rollback, end.

    Example: eventlog emulate linter --database sqlite:///queue.db
    """
    import msgspec

    from eventlog.sources.linter.exports import export_row
    from eventlog.sources.linter.settings import ReadingSettings
    from eventlog.sql.connect import connect
    from eventlog_streams_tools.linter.emulator import SAMPLE, EmulatorSettings, LinterEmulator, read_schema, steps
    from eventlog_streams_tools.linter.queue import fill_queue, make_queue

    catalog = read_schema(content_of(schema) if schema else None, str(schema))
    settings = msgspec.convert(chosen, EmulatorSettings)
    emulator = LinterEmulator(catalog, ReadingSettings(code_page=code_page), settings)
    lines = content_of(operations).splitlines() if operations else SAMPLE
    steps_of = steps(lines, catalog, str(operations or "the sample"))
    rows = (row for step in steps_of for row in emulator.rows(step))
    if database is None:
        for row in rows:
            sys.stdout.write(msgspec.json.encode(export_row(row)).decode() + "\n")
        return
    engine = connect(database, may_create=True)
    try:
        make_queue(engine, table)
        click.echo(f"{count_words(fill_queue(engine, rows, table), 'row')} written to {table}.")
    finally:
        engine.dispose()
