"""How much is tried: little in CI, EVENTLOG_HARDENING times as much where somebody has the time; where figures are kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

RESULTS: Final = Path(__file__).resolve().parents[2] / "bench" / "results" / "hardening"


def scaled(count: int) -> int:
    """So many, times what EVENTLOG_HARDENING says."""
    return count * max(1, int(os.environ.get("EVENTLOG_HARDENING", "1")))
