"""`eventlog policy`: tries policies before an output is told anything; a capability brings
`policy.NAME` among its commands.
"""

from __future__ import annotations

import click

from eventlog.cli.lazy import LazyGroup


@click.group(cls=LazyGroup, prefix="policy.")
def policy() -> None:
    """Tries policies: what each output gets, and under which names."""
