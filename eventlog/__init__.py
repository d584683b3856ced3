"""Change capture: events from a log table or a stream, one set of rules, and documents for whoever wants to know.

Names are imported when they are first used, so that `eventlog --version` and a Spark worker pay for nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eventlog.version import __version__

if TYPE_CHECKING:
    from eventlog import xds
    from eventlog.core.errors import EventlogError
    from eventlog.core.model import ABSENT, Change, Document, Edit, Event, Kind, Op, Outcome, Reason, RowId, Status
    from eventlog.core.rules import Options, decide
    from eventlog.core.schema import Catalog, Table
    from eventlog.core.tablekey import TableKey
    from eventlog.daemon import Publisher

__all__ = [
    "ABSENT",
    "Catalog",
    "Change",
    "Document",
    "Edit",
    "Event",
    "EventlogError",
    "Kind",
    "Op",
    "Options",
    "Outcome",
    "Publisher",
    "Reason",
    "RowId",
    "Status",
    "Table",
    "TableKey",
    "__version__",
    "decide",
    "xds",
]

_HOMES = {
    **dict.fromkeys(
        ("ABSENT", "Change", "Document", "Edit", "Event", "Kind", "Op", "Outcome", "Reason", "RowId", "Status"),
        "eventlog.core.model",
    ),
    **dict.fromkeys(("Options", "decide"), "eventlog.core.rules"),
    **dict.fromkeys(("Catalog", "Table"), "eventlog.core.schema"),
    "EventlogError": "eventlog.core.errors",
    "Publisher": "eventlog.daemon",
    "TableKey": "eventlog.core.tablekey",
}


def __getattr__(name: str) -> Any:
    if name == "xds":
        return import_module("eventlog.xds")
    if name not in _HOMES:
        raise AttributeError(f"module 'eventlog' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
