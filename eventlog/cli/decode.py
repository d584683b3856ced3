"""`eventlog decode`: annotated dumps, record by record, of what other databases' change capture and Kafka deliver."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click

from eventlog.cli.lazy import LazyGroup
from eventlog.cli.show import show_json_line, show_text
from eventlog.cli.site import ReadFile, content_of, json_option
from eventlog.core.errors import EX_DATA, OK
from eventlog.core.plural import counted

PLACES: Final = {"gbase": "decode:gbase", "linter": "decode:linter", "messages": "decode_messages:messages"}


@click.group(cls=LazyGroup, places=PLACES)
def decode() -> None:
    """Shows a stream or a topic record by record, also a damaged one.

    Example: eventlog decode gbase capture.bin
    """


@click.command()
@click.argument("file", type=ReadFile())
@click.option(
    "--dirty",
    is_flag=True,
    help="Each line of a .hex file is a whole buffer, with bytes of earlier reads.",
)
@click.option(
    "--encoding", default="utf-8", show_default=True, help="The code set of the database, for example gb18030."
)
@click.option("--sizes", type=click.Choice(["auto", "big", "little"]), default="auto", help="Byte order of the sizes.")
@json_option
def gbase(file: Path, dirty: bool, encoding: str, sizes: str, as_json: bool) -> int:
    """Shows every record of a GBase 8s or Informix stream, field by field, with its bytes.

    A `.hex` file is text: one record or read a line, `#` begins a comment. `-` is standard
    input. The last lines say from where a session can continue. Exit code 65 if anything is
    damaged.

    Example: eventlog decode gbase capture.bin
    """
    import msgspec

    from eventlog.sources.gbase.dump import Restart, entries
    from eventlog.sources.gbase.files import chunks_of, files_of, refuse_dirty
    from eventlog.sources.gbase.settings import GBaseSettings

    settings = msgspec.convert({"encoding": encoding, "sizes": sizes, "dirty": dirty}, GBaseSettings)
    if dirty:
        refuse_dirty(files_of(file))
    restart = Restart(settings)
    dump = entries(chunks_of(file), settings, restart.take)
    return show_dump(dump, lambda entry: entry.text, restart, ("entry", "entries"), as_json=as_json)


def show_dump(
    dump: Iterable[Any], text: Callable[[Any], str], restart: Any, words: tuple[str, ...], *, as_json: bool
) -> int:
    """Prints what a dump has, where reading would begin that continues, and how much is damaged; the exit code."""
    found = damaged = 0
    for one in dump:
        found += 1
        damaged += one.damaged
        if as_json:
            show_json_line(one)
        else:
            show_text(text(one))
    point = restart.point
    if as_json and point is not None:
        show_json_line({"restart": point})
    elif point is not None:
        click.echo(point.text)
    if not as_json:
        click.echo(f"{counted(found, *words)}, {damaged:,} of them damaged.")
    return EX_DATA if damaged else OK


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
def linter(file: Path, schema: Path | None, as_json: bool, **chosen: Any) -> int:
    """Shows every operation of a LINTER queue, exported as JSON lines, CSV or Parquet: its rows, parts and values.

    Damaged operations are shown with their bytes and the error. The last lines say from where
    reading can continue. Exit code 65 if anything is damaged.

    Example: eventlog decode linter queue.jsonl --schema schema.json --code-page cp1251
    """
    import msgspec

    from eventlog.core.schema import catalog_from_json
    from eventlog.sources.linter.dump import FollowedQueue, dumped, text_of
    from eventlog.sources.linter.exports import export_rows
    from eventlog.sources.linter.settings import ReadingSettings
    from eventlog.sources.linter.tables import SourceTables

    settings = msgspec.convert(chosen, ReadingSettings)
    tables = SourceTables(catalog_from_json(content_of(schema), origin=str(schema)) if schema else None, settings)
    restart = FollowedQueue()
    dump = dumped(export_rows([file], settings), tables, settings, restart.take)
    return show_dump(dump, lambda one: "\n".join(text_of(one)), restart, ("operation",), as_json=as_json)
