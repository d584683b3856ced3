"""What worker processes are forked from: all that they need, loaded once, in a process that has
nothing else.
"""

from __future__ import annotations

from eventlog.convert.work import save_memory

save_memory()

from eventlog.convert import local  # noqa: E402  # only after the process was made frugal

__all__ = ["local"]
