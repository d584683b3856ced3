"""From events to changes: the rules, once, for the daemon, for bulk conversion and for Spark.

`Round` is the way through all of them (`round.py`); `decide` is one round with rows that were read
back before. Nothing here does I/O or knows a database: events, rows and time come in, values go
out.
"""

from __future__ import annotations

from eventlog.core.rules.lifetimes import list_wanted
from eventlog.core.rules.meaning import EXPLANATION, MEANING, PRECEDENCE, STATUS, Decision, Options
from eventlog.core.rules.round import Round, decide, judge
from eventlog.core.rules.screen import screen

__all__ = [
    "EXPLANATION",
    "MEANING",
    "PRECEDENCE",
    "STATUS",
    "Decision",
    "Options",
    "Round",
    "decide",
    "judge",
    "list_wanted",
    "screen",
]
