"""What a Python worker of Spark's does once, before its first row: it does task after task, and has
one core for them.
"""

from __future__ import annotations

import gc
import sys

from eventlog.convert.work import use_one_core


def freeze_heap() -> None:
    """Make a worker cheap for the rest of its life; in other processes do nothing.

    Spark has a worker look for garbage after each task. What it has loaded by now (pandas, Arrow,
    all of ours) is none, and to look through all of it took more time than a sixth of the work.
    """
    # What is frozen says that a task was here before. Its heap is not trimmed: the pages come back
    # as page faults, which took a tenth of the work, and the most that is held stays the same.
    if _is_worker() and not gc.get_freeze_count():
        gc.freeze()
        use_one_core()


def _is_worker() -> bool:
    """Return True if a task of Spark's runs in this process."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark import TaskContext

    return TaskContext.get() is not None
