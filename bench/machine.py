"""What the figures were measured on: enough to judge them by, nothing that names a person or a place."""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path

from msgspec import Struct


class Machine(Struct, frozen=True, kw_only=True):
    """The parts of a machine that a figure depends on. `load` is what else it had to do in the last minute."""

    processor: str
    cores: int
    memory_gb: float
    system: str
    python: str
    load: float

    def __str__(self) -> str:
        return (
            f"{self.processor}, {self.cores} cores that this process may use, {self.memory_gb:.0f} GB,"
            f" {self.system}, {self.python}, load {self.load:.1f} before it began"
        )


def this_machine() -> Machine:
    """Describes the machine that runs this."""
    return Machine(
        processor=_found(r"model name\s*:\s*(.+)", "/proc/cpuinfo") or platform.processor() or platform.machine(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_gb=int(_found(r"MemTotal:\s*(\d+)", "/proc/meminfo") or 0) / 2**20,
        system=f"{platform.system()} {platform.machine()}",
        python=f"{platform.python_implementation()} {sys.version.split()[0]}",
        load=os.getloadavg()[0],
    )


def _found(pattern: str, file: str) -> str:
    path = Path(file)
    match = re.search(pattern, path.read_text()) if path.exists() else None
    return match[1].strip() if match else ""
