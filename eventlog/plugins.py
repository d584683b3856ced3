"""What a package imports that brings a sink, a format, a source, a check or a part of the page: these names are stable, even if the code inside moves."""

from __future__ import annotations

from eventlog.core.errors import ConfigError, DataError, EventlogError, OccupiedError, SinkError, SourceError
from eventlog.core.model import (
    Change,
    Document,
    Edit,
    Image,
    Op,
    Outcome,
    Reason,
    Refusal,
    RowId,
    Status,
    Transaction,
)
from eventlog.core.outputs import OutputKeys
from eventlog.core.plugins import (
    EVERY_DOCUMENT,
    CheckPlugin,
    Finding,
    FormatOrder,
    FormatPlugin,
    Need,
    PageCell,
    PageOrder,
    PagePlugin,
    PageTable,
    SinkOrder,
    SinkPlugin,
    SourceOrder,
    SourcePlugin,
    TablePlugin,
)
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Format, Lane, Resolved, Sink, SinkCapabilities, Tenure, Written
from eventlog.core.secrets import SecretSettings
from eventlog.sources.stream.source import StreamPiece, StreamReader

__all__ = [
    "EVERY_DOCUMENT",
    "Catalog",
    "Change",
    "CheckPlugin",
    "Column",
    "ConfigError",
    "DataError",
    "Document",
    "Edit",
    "EventlogError",
    "Finding",
    "Format",
    "FormatOrder",
    "FormatPlugin",
    "Image",
    "Lane",
    "Need",
    "OccupiedError",
    "Op",
    "Outcome",
    "OutputKeys",
    "PageCell",
    "PageOrder",
    "PagePlugin",
    "PageTable",
    "Reason",
    "Refusal",
    "Resolved",
    "RowId",
    "SecretSettings",
    "Sink",
    "SinkCapabilities",
    "SinkError",
    "SinkOrder",
    "SinkPlugin",
    "SourceError",
    "SourceOrder",
    "SourcePlugin",
    "Status",
    "StreamPiece",
    "StreamReader",
    "Table",
    "TablePlugin",
    "Tenure",
    "Transaction",
    "Written",
]
