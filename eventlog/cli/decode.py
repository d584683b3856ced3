"""`eventlog decode`: annotated dumps, record by record, of what other databases' change capture and Kafka deliver."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click

from eventlog.cli.lazy import LazyGroup
from eventlog.cli.places import ReadFile
from eventlog.cli.show import show_json_line, show_text
from eventlog.cli.site import json_option
from eventlog.core.errors import EX_DATA, OK
from eventlog.core.plural import counted

PLACES: Final = {"gbase": "decode:gbase", "linter": "decode_linter:linter", "messages": "decode_messages:messages"}


@click.group(cls=LazyGroup, places=PLACES)
def decode() -> None:
    """Shows a stream or a topic record by record, also where it is damaged.

    Example: eventlog decode gbase capture.bin
    """


@click.command()
@click.argument("file", type=ReadFile())
@click.option(
    "--dirty",
    is_flag=True,
    help="Each line of a .hex file is one read: records, and behind them bytes of earlier reads.",
)
@click.option(
    "--encoding", default="utf-8", show_default=True, help="The code set of the database, for example gb18030."
)
@click.option("--sizes", type=click.Choice(["auto", "big", "little"]), default="auto", help="Byte order of the sizes.")
@json_option
def gbase(file: Path, dirty: bool, encoding: str, sizes: str, as_json: bool) -> int:
    """Shows every record of a GBase 8s or Informix stream, field by field, with its bytes.

    A `.hex` file is text: one record or one read in each line, `#` begins a comment. `-` is standard
    input. At the end it says where a session that continues after this stream would begin.
    Exit code 65 when anything is damaged.

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
