"""What benchmarks clean up when they end: at the end of the process, or earlier where somebody tries them."""

from __future__ import annotations

import atexit
from contextlib import ExitStack

_open = ExitStack()
at_end = _open.callback
"""Remembers what is to be called then; what came last goes first."""


def clean_up() -> None:
    """Calls everything that is remembered, once."""
    _open.close()


atexit.register(clean_up)
