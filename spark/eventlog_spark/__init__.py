"""eventlog on Spark: the log as a data source, the rules on DataFrames, and bulk conversion: the wheel `eventlog-spark`.
Who imports it before a session begins has its workers run in the same Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventlog_spark.this_python import name_this_python, refuse_other_spark

if TYPE_CHECKING:
    from eventlog_spark.batches import convert_batches
    from eventlog_spark.capturing import Captures, captures
    from eventlog_spark.cluster import Cluster, session
    from eventlog_spark.frames import Decisions, decide, events
    from eventlog_spark.outputs import ChangeTableFrames, MessageFrames, change_tables, documents, messages
    from eventlog_spark.source import EventLogSource
    from eventlog_spark.typed import typed_changes

__all__ = [
    "Captures",
    "ChangeTableFrames",
    "Cluster",
    "Decisions",
    "EventLogSource",
    "MessageFrames",
    "captures",
    "change_tables",
    "convert_batches",
    "decide",
    "documents",
    "events",
    "messages",
    "session",
    "typed_changes",
]


refuse_other_spark()
name_this_python()


def __getattr__(name: str) -> object:
    """Import a name when it is first used: workers and `eventlog --help` need none of them."""
    from importlib import import_module

    from eventlog.core.packages import require

    places = {"EventLogSource": "source", "Cluster": "cluster", "session": "cluster", "convert_batches": "batches"}
    places |= dict.fromkeys(("Captures", "captures"), "capturing")
    places |= dict.fromkeys(("Decisions", "decide", "events"), "frames")
    formats = ("ChangeTableFrames", "MessageFrames", "change_tables", "documents", "messages")
    places |= {**dict.fromkeys(formats, "outputs"), "typed_changes": "typed"}
    if name not in places:
        raise AttributeError(f"eventlog_spark has no {name}.")
    require("eventlog_spark", "pyspark", "pandas", "pyarrow")
    return getattr(import_module(f"eventlog_spark.{places[name]}"), name)
