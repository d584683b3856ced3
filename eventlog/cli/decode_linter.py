"""`eventlog decode linter`: an annotated dump of exported queue rows."""

from __future__ import annotations

from pathlib import Path

import click

from eventlog.cli.decode import show_dump
from eventlog.cli.places import content_of
from eventlog.cli.site import json_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--schema", type=click.Path(path_type=Path), help="The schema file; without it records are shown raw.")
@click.option(
    "--codec",
    default="packed-v1",
    show_default=True,
    help="How records are read: raw, packed-v1 or a codec of your own.",
)
@click.option(
    "--code-page",
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
def linter(
    file: Path,
    schema: Path | None,
    codec: str,
    code_page: str,
    coding: str,
    variant: str,
    pad_data: bool,
    as_json: bool,
) -> int:
    """Shows every operation of a LINTER queue, exported as JSON lines, CSV or Parquet: its rows, parts and values.

    Damaged operations are shown with their bytes and what is wrong. At the end it says where reading that continues after these rows would begin. Exit code 65 when anything is damaged.

    Example: eventlog decode linter queue.jsonl --schema schema.json --code-page cp1251
    """
    import msgspec

    from eventlog.core.schema import catalog_from_json
    from eventlog.sources.linter.dump import FollowedQueue, dumped, text_of
    from eventlog.sources.linter.exports import export_rows
    from eventlog.sources.linter.settings import ReadingSettings
    from eventlog.sources.linter.tables import SourceTables

    chosen = {"codec": codec, "code_page": code_page, "coding": coding, "variant": variant, "pad_data": pad_data}
    settings = msgspec.convert(chosen, ReadingSettings)
    tables = SourceTables(catalog_from_json(content_of(schema), origin=str(schema)) if schema else None, settings)
    restart = FollowedQueue()
    dump = dumped(export_rows([file], settings), tables, settings, restart.take)
    return show_dump(dump, lambda one: "\n".join(text_of(one)), restart, ("operation",), as_json=as_json)
