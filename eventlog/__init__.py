"""Change capture: events from a log table or a stream, one set of rules, and documents for whoever wants to know.

Names are imported when they are first used, so that `eventlog --version` and a Spark worker pay for nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eventlog.version import __version__

if TYPE_CHECKING:
    from eventlog import xds
    from eventlog.core.errors import EventlogError, KeySyntaxError
    from eventlog.core.model import ABSENT, Change, Document, Edit, Event, Kind, Op, Outcome, Reason, RowId, Status
    from eventlog.core.rules import Options, decide
    from eventlog.core.schema import Catalog, Column, Table
    from eventlog.core.schema_file import catalog_from_json
    from eventlog.core.tablekey import TableKey
    from eventlog.daemon.publisher import Publisher
    from eventlog.policies.values import decrypt
    from eventlog.qlik import masks
    from eventlog.qlik.change_tables.settings import ChangeTableSettings
    from eventlog.qlik.messages.settings import MessageSettings
    from eventlog.sources.gbase.session import Driver as GBaseDriver
    from eventlog.sources.gbase.settings import GBaseSettings

__all__ = [
    "ABSENT",
    "Catalog",
    "Change",
    "ChangeTableSettings",
    "Column",
    "Document",
    "Edit",
    "Event",
    "EventlogError",
    "GBaseDriver",
    "GBaseSettings",
    "KeySyntaxError",
    "Kind",
    "MessageSettings",
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
    "catalog_from_json",
    "decide",
    "decrypt",
    "masks",
    "xds",
]

_HOMES = {
    **dict.fromkeys(
        ("ABSENT", "Change", "Document", "Edit", "Event", "Kind", "Op", "Outcome", "Reason", "RowId", "Status"),
        "eventlog.core.model",
    ),
    **dict.fromkeys(("Options", "decide"), "eventlog.core.rules"),
    **dict.fromkeys(("Catalog", "Column", "Table"), "eventlog.core.schema"),
    **dict.fromkeys(("EventlogError", "KeySyntaxError"), "eventlog.core.errors"),
    "catalog_from_json": "eventlog.core.schema_file",
    "ChangeTableSettings": "eventlog.qlik.change_tables.settings",
    "GBaseDriver": "eventlog.sources.gbase.session:Driver",
    "GBaseSettings": "eventlog.sources.gbase.settings",
    "MessageSettings": "eventlog.qlik.messages.settings",
    "Publisher": "eventlog.daemon.publisher",
    "TableKey": "eventlog.core.tablekey",
    "decrypt": "eventlog.policies.values",
}
"""The module of each name, and what it is called there where that is another name."""

_MODULES = {"masks": "eventlog.qlik.masks", "xds": "eventlog.xds"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'eventlog' has no attribute {name!r}")
    module, _, there = _HOMES[name].partition(":")
    return getattr(import_module(module), there or name)
