"""Keeps a process that converts small: one thread, no library that nobody uses, and memory that is given back."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any, Final

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
M_ARENA_MAX: Final = -8
RETURNED_BYTES: Final = 1 << 16
"""From this size on what is freed goes back to the system at once."""


class WithoutPandas(MetaPathFinder):
    """Keeps Arrow from loading pandas, where Spark has brought it: 50 MB and half a second that rows need nothing of."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)


def be_frugal() -> None:
    """Makes this process frugal for the rest of its life; to be called before rows are touched."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, WithoutPandas())
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
    settings = {M_MMAP_THRESHOLD: RETURNED_BYTES, M_TRIM_THRESHOLD: RETURNED_BYTES, M_ARENA_MAX: 1}
    return all(mallopt(name, value) for name, value in settings.items())
