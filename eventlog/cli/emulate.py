"""`eventlog emulate`: streams as other databases deliver them; a capability brings `emulate.NAME`
among its commands.
"""

from __future__ import annotations

import click

from eventlog.cli.lazy import LazyGroup


@click.group(cls=LazyGroup, prefix="emulate.")
def emulate() -> None:
    """Writes streams of made-up changes, to try a pipeline without the database.

    Example: eventlog emulate gbase --rows 1000 --out capture.bin
    """
