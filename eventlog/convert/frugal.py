"""Keeps a process that converts small: one thread, no library that nobody uses, and memory that is given back."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any, Final

BROUGHT: Final = frozenset({"numpy", "pandas"})
"""There where Spark is installed too."""

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
M_ARENA_MAX: Final = -8
MALLOC: Final = {M_MMAP_THRESHOLD: 32 << 20, M_TRIM_THRESHOLD: 64 << 20, M_ARENA_MAX: 1}
"""One heap, of which the system gets back what is free at the end. Smaller steps cost more in page faults than they save."""


class Without(MetaPathFinder):
    """Keeps Arrow from loading what it can do without: 60 MB and half a second that rows need nothing of."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> None:
        if fullname in self._names:
            raise ModuleNotFoundError(fullname, name=fullname)


def be_frugal() -> None:
    """Makes this process frugal for the rest of its life; to be called before rows are touched."""
    sys.meta_path.insert(0, Without(BROUGHT - sys.modules.keys()))
    import pyarrow as pa

    pa.set_cpu_count(1)  # the processes share the cores among them
    pa.set_io_thread_count(1)
    if _give_back():
        pa.set_memory_pool(pa.system_memory_pool())


def _give_back() -> bool:
    """Has glibc return what is freed; other systems' libraries have ways of their own."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return all(mallopt(name, value) for name, value in MALLOC.items())
