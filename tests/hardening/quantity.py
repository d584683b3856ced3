"""How much is tried: little in CI, EVENTLOG_HARDENING times as much where somebody has the time."""

from __future__ import annotations

import os


def scaled(count: int) -> int:
    """So many, times what EVENTLOG_HARDENING says."""
    return count * max(1, int(os.environ.get("EVENTLOG_HARDENING", "1")))
