"""What worker processes are forked from: all that they need, loaded once, in a process that has nothing else."""

from __future__ import annotations

from eventlog.convert.frugal import be_frugal

be_frugal()

from eventlog.convert import local  # noqa: E402  # only after the process was made frugal

__all__ = ["local"]
