"""`eventlog emulate`: streams as other databases' change capture delivers them, for those who have no server at hand."""

from __future__ import annotations

from pathlib import Path

import click

from eventlog.cli.lazy import LazyGroup


@click.group(cls=LazyGroup, places={"gbase": "emulate:gbase", "linter": "emulate_linter:linter"})
def emulate() -> None:
    """Writes streams of made-up changes: a pipeline can be tried without the database.

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
@click.option("--dirty", is_flag=True, help="Bytes of earlier reads behind each read, as programs print their buffer.")
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
