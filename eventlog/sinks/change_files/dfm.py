"""DFM: the description that lies beside a data file, as consumers of change tables in files read
it.
"""

from __future__ import annotations

import datetime as dt
from pathlib import PurePath
from typing import Any, Final

import msgspec

from eventlog.qlik.change_seq import moment_of
from eventlog.qlik.change_tables.rows import ChangeColumn, RowBlock
from eventlog.qlik.typemap import qlik_type
from eventlog.sinks.change_files.settings import RowFiles

APART: Final = "_dfm"
"""Readers of whole folders pass over what begins so."""


def description_name(form: RowFiles, stem: str) -> PurePath:
    """Return the path of the description, relative to the data file's folder."""
    folder = APART if form.descriptions == "apart" else ""
    return PurePath(folder, f"{stem}.dfm")


def description(
    form: RowFiles,
    stem: str,
    location: str,
    block: RowBlock,
    *,
    task: str,
    started: dt.datetime,
    ended: dt.datetime,
    errors: int = 0,
    version: int | None = None,
) -> bytes:
    """Describe the data file of a block.

    `started` and `ended` are when writing began and ended; `errors` counts rows left out.
    """
    table = block.table
    # A name goes to the last point of the whole one.
    name, _, extension = f"{stem}.{form.ending}".rpartition(".")
    first = last = ""
    # Rows of a full load have no change_seq.
    if block.columns[0].is_called("change_seq"):
        first, last = str(block.cells[0][0]), str(block.cells[0][-1])
    content = {
        "dfmVersion": "1.1",
        "taskInfo": {
            "name": task,
            **dict.fromkeys(("sourceEndpoint", "sourceEndpointType", "sourceEndpointUser"), ""),
            "replicationServer": "",
            "operation": "dataProduced",
        },
        "fileInfo": {
            "name": name,
            "extension": extension,
            "location": location,
            "startWriteTimestamp": _iso(started),
            "endWriteTimestamp": _iso(ended),
            "firstTransactionTimestamp": _time(first),
            "lastTransactionTimestamp": _time(last),
            "content": "data" if block.load else "changes",
            "recordCount": len(block.positions),
            "errorCount": errors,
        },
        "formatInfo": {"format": form.format_name, "options": form.format_options},
        "dataInfo": {
            "sourceSchema": table.schema or "",
            "sourceTable": table.name,
            "targetSchema": table.schema or "",
            "targetTable": block.target,
            "tableVersion": table.version if version is None else version,
            "columns": [describe_column(column, ordinal) for ordinal, column in enumerate(block.columns, 1)],
        },
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2)


def _iso(at: dt.datetime) -> str:
    utc = at.astimezone(dt.UTC).replace(tzinfo=None)  # without a zone, as readers expect it
    return utc.isoformat(timespec="milliseconds")


def _time(change_seq: str) -> str:
    at = moment_of(change_seq)
    if at is None:
        return ""
    return at.isoformat(timespec="milliseconds")


def describe_column(column: ChangeColumn, ordinal: int) -> dict[str, Any]:
    """Describe a column; length, precision and scale are 0 if the type states none."""
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
