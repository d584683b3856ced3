"""DFM: the description that lies beside a data file, as consumers of change tables in files read it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from eventlog.core.schema import Table
from eventlog.qlik.change_seq import START, TIME_DIGITS
from eventlog.qlik.change_tables.rows import ChangeColumn, RowBlock
from eventlog.qlik.typemap import qlik_type


class Described(Struct, frozen=True, kw_only=True):
    """The data file that is described; `first` and `last` are change_seq, empty where nobody knows them."""

    name: str
    extension: str
    location: str
    table: Table
    target: str
    columns: Sequence[ChangeColumn]
    records: int
    started: dt.datetime
    ended: dt.datetime
    """When writing it began, and when all of its bytes were there."""
    errors: int = 0
    first: str = ""
    last: str = ""
    version: int = 1
    format: str = "parquet"
    options: Mapping[str, str] = {}
    content: Literal["changes", "data"] = "changes"
    """`data` are rows of a full load."""


def description(of: Described, task: str) -> bytes:
    said = {
        "dfmVersion": "1.1",
        "taskInfo": {
            "name": task,
            **dict.fromkeys(("sourceEndpoint", "sourceEndpointType", "sourceEndpointUser", "replicationServer"), ""),
            "operation": "dataProduced",
        },
        "fileInfo": {
            "name": of.name,
            "extension": of.extension,
            "location": of.location,
            "startWriteTimestamp": _iso(of.started),
            "endWriteTimestamp": _iso(of.ended),
            "firstTransactionTimestamp": _time(of.first),
            "lastTransactionTimestamp": _time(of.last),
            "content": of.content,
            "recordCount": of.records,
            "errorCount": of.errors,
        },
        "formatInfo": {"format": of.format, "options": dict(of.options)},
        "dataInfo": {
            "sourceSchema": of.table.schema or "",
            "sourceTable": of.table.name,
            "targetSchema": of.table.schema or "",
            "targetTable": of.target,
            "tableVersion": of.version,
            "columns": [described(column, ordinal) for ordinal, column in enumerate(of.columns, 1)],
        },
    }
    return msgspec.json.format(msgspec.json.encode(said), indent=2)


def block_times(block: RowBlock) -> tuple[str, str]:
    """The first and the last change_seq of a block, where there is that column."""
    first = block.columns[0]
    sequenced = first.header and first.name.endswith("change_seq")
    return (str(block.cells[0][0]), str(block.cells[0][-1])) if sequenced else ("", "")


def _iso(at: dt.datetime) -> str:
    return at.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")


def _time(change_seq: str) -> str:
    """The time in a change_seq; empty where nobody knows it."""
    digits = change_seq[:TIME_DIGITS]
    if not digits or digits == START.time:
        return ""
    return dt.datetime.strptime(f"{digits}0000", "%Y%m%d%H%M%S%f").isoformat(timespec="milliseconds")


def described(column: ChangeColumn, ordinal: int) -> dict[str, Any]:
    """A column as descriptions have it; length, precision and scale are 0 where the type states none."""
    kind = qlik_type(column.type)
    return {
        "ordinal": ordinal,
        "name": column.name,
        "type": kind.name,
        "length": kind.length,
        "precision": kind.precision,
        "scale": kind.scale,
        "primaryKeyPos": column.key,
    }
