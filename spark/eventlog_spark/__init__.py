"""eventlog on Spark: the log as a data source, and bulk conversion with the daemon's own rules. Extra: `[spark]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eventlog_spark.session import Cluster, session
    from eventlog_spark.source import EventLogSource

__all__ = ["Cluster", "EventLogSource", "session"]


def __getattr__(name: str) -> object:
    """Names are imported when they are first used: workers and `eventlog --help` need none of them."""
    from importlib import import_module

    places = {"EventLogSource": "source", "Cluster": "session", "session": "session"}
    if name not in places:
        raise AttributeError(f"eventlog_spark has no {name}.")
    return getattr(import_module(f"eventlog_spark.{places[name]}"), name)
