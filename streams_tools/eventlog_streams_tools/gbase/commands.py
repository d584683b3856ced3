"""`eventlog decode gbase` and `emulate gbase`: a captured stream, record by record, and one that is
made up.
"""

from __future__ import annotations

from pathlib import Path

import click

from eventlog.cli.show import show_dump
from eventlog.cli.site import ReadFile, json_option
from eventlog.core.errors import name_file


@click.command("gbase")
@click.argument("file", type=ReadFile())
@click.option(
    "--dirty",
    is_flag=True,
    help="Each line of a .hex file is a whole buffer, with bytes of earlier reads.",
)
@click.option(
    "--encoding",
    metavar="NAME",
    default="utf-8",
    show_default=True,
    help="The code set of the database, for example gb18030.",
)
@click.option(
    "--sizes",
    type=click.Choice(["auto", "big", "little"]),
    default="auto",
    help="Byte order of the sizes.",
)
@json_option
def decode(file: Path, dirty: bool, encoding: str, sizes: str, as_json: bool) -> int:
    """Shows every record of a GBase 8s or Informix stream, field by field, with its bytes.

    A `.hex` file is text: one record or read a line, `#` begins a comment. `-` is standard
    input. The last lines say from where a session can continue. Exit code 65 if anything is
    damaged.

    Example: eventlog decode gbase capture.bin
    """
    import msgspec

    from eventlog.sources.gbase.files import chunks_of, files_of, refuse_dirty
    from eventlog.sources.gbase.settings import GBaseSettings
    from eventlog_streams_tools.gbase.dump import Restart, entries

    settings = msgspec.convert({"encoding": encoding, "sizes": sizes, "dirty": dirty}, GBaseSettings)
    if dirty:
        refuse_dirty(files_of(file))
    restart = Restart(settings)
    dump = entries(chunks_of(file), settings, restart.take)
    return show_dump(dump, lambda entry: entry.text, restart, ("entry", "entries"), as_json=as_json)


@click.command("gbase")
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    required=True,
    help="The file; `.hex` gives text, one read in each line.",
)
@click.option(
    "--rows", metavar="N", default=100, show_default=True, type=click.IntRange(1), help="How many rows are changed."
)
@click.option(
    "--dialect",
    type=click.Choice(["gbase", "informix"]),
    default="gbase",
    show_default=True,
    help="Whose records they are.",
)
@click.option("--dirty", is_flag=True, help="Add bytes of earlier reads behind each read, as in a printed buffer.")
@click.option(
    "--cut",
    metavar="BYTES",
    default=65_536,
    show_default=True,
    type=click.IntRange(1),
    help="Bytes of a read, which may cut records.",
)
@click.option("--seed", default=1, show_default=True, help="Another number gives other changes.")
def emulate(out: Path, rows: int, dialect: str, dirty: bool, cut: int, seed: int) -> None:
    """Writes a stream of GBase 8s or Informix: two tables, interleaved transactions, savepoints,
    rollbacks, heartbeats.

    The labels are 1 for shop.customer and 2 for shop.purchase, whose keys are id.

    Example: eventlog emulate gbase --rows 1000 --out capture.bin
    """
    from eventlog_streams_tools.gbase.emulator import buffers, reads, shop

    # Minor version 0 and wide varchars are GBase's; Informix is opened with (1, 1) and sends the
    # sizes big-endian (gbase-cdc.md 4).
    is_gbase = dialect == "gbase"
    minor = 0 if is_gbase else 1
    pieces = reads(shop(rows, seed, wide=is_gbase), cut=cut, minor=minor)
    if dirty:
        pieces = buffers(pieces)
    hexadecimal = out.suffix.lower() == ".hex"
    count = 0
    with name_file(out), out.open("wb") as file:
        for piece in pieces:
            written = piece.hex().upper().encode() + b"\n" if hexadecimal else piece
            file.write(written)
            count += len(piece)
    click.echo(f"{rows} changed rows in {count} bytes: {out}")
