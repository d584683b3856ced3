"""DFM: the description that lies beside a data file, as consumers of change tables in files read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from eventlog.core.schema import Table
from eventlog.qlik.change_tables.rows import ChangeColumn
from eventlog.qlik.typemap import qlik_type


class Described(Struct, frozen=True, kw_only=True):
    """The data file that is described; times are in ISO 8601, empty where nobody knows them."""

    name: str
    extension: str
    location: str
    table: Table
    target: str
    columns: Sequence[ChangeColumn]
    records: int
    errors: int = 0
    first: str = ""
    last: str = ""
    version: int = 1
    format: str = "parquet"
    options: Mapping[str, str] = {}


def description(of: Described, task: str) -> bytes:
    """The DFM's text."""
    said = {
        "dfmVersion": "1.1",
        "taskInfo": {"name": task, "sourceEndpoint": "", "sourceEndpointType": "", "operation": "dataProduced"},
        "fileInfo": {
            "name": of.name,
            "extension": of.extension,
            "location": of.location,
            "firstTransactionTimestamp": of.first,
            "lastTransactionTimestamp": of.last,
            "content": "changes",
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
