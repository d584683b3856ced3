"""Events as input files, conversions of them, and what these leave: for the tests of bulk conversion."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyarrow import parquet

from eventlog.convert.commit import SUCCESS, Summary
from eventlog.convert.local import convert
from eventlog.convert.settings import Conversion, DatabaseRows, FilesInput, SnapshotRows, Target
from eventlog.core.model import Event, Row, RowId
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog
from eventlog.policies.steps import Steps
from eventlog.sql.names import STANDARD
from eventlog.xds.write import XdsFormat
from tests.support.strategies import PHONE

LogRow = dict[str, Any]
ReadBack = DatabaseRows | SnapshotRows | None


def row_of(event: Event) -> LogRow:
    """Write an event as a row of the log, by standard column names."""
    return {
        "record_id": event.position[0],
        "status": "N",
        "event_type": event.kind,
        "event_time": event.time,
        "perpetrator": event.perpetrator,
        "table_name": event.table,
        "table_key": event.key,
        "column_name": event.column,
        "old_value": event.old,
        "new_value": event.new,
    }


def log_row(record_id: Any, **changed: Any) -> LogRow:
    """Make a type 1 row of usr, with these columns changed."""
    usual = Event(
        position=(record_id,), kind=1, table="usr", key="idu=1", column="fname", new="Jack", time="2026-01-01T00:00:00"
    )
    return row_of(usual) | changed


def write_parquet(path: Path, rows: Sequence[LogRow], columns: Sequence[str] = STANDARD) -> Path:
    types = {"record_id": pa.int64(), "event_type": pa.int64()}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in columns])
    parquet.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=schema), path, row_group_size=7)
    return path


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_csv(path: Path, rows: Sequence[LogRow], columns: Sequence[str] = STANDARD) -> Path:
    """CSV as the standard library writes it, with NULL as the contract has it."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([["\\N" if row[name] is None else row[name] for name in columns] for row in rows])
    return path


def write_snapshot(folder: Path, table: Mapping[RowId, Row]) -> SnapshotRows:
    """Write the tables of tests.support.strategies as JSON lines."""
    folder.mkdir()
    parents = [{"idu": int(row.key[4:]), "fname": v["fname"], "lname": v["lname"]} for row, v in table.items()]
    children = [
        {"idu": int(row.key[4:]), "phoneno": phone}
        for row, values in table.items()
        for phone in reversed(_phones(values[PHONE]))
    ]
    write_lines(folder / "usr.jsonl", parents)
    write_lines(folder / "usr_phone.jsonl", children)
    return SnapshotRows(folder=folder)


def converted(
    source: Path | Iterable[Path],
    destination: Path,
    *,
    catalog: Catalog | None = None,
    options: Options | None = None,
    part_events: int = 3,
    read_back: ReadBack = None,
    jobs: int = 1,
    target: Target | None = None,
    steps: Steps = (),
    transactions: Literal["mixed", "whole"] = "mixed",
) -> Summary:
    """Converts files."""
    places = (source,) if isinstance(source, Path) else source
    ordered = Conversion(
        input=FilesInput(places=tuple(map(str, places))),
        destination=destination,
        catalog=catalog,
        options=options or Options(),
        part_events=part_events,
        read_back=read_back,
        format=target or XdsFormat(),
        steps=steps,
        transactions=transactions,
    )
    return convert(ordered, jobs=jobs)


def files_of(folder: Path) -> dict[str, bytes]:
    """Read all files of a conversion, without the times of writing in descriptions."""
    found = sorted(entry for entry in folder.rglob("*") if entry.is_file())
    return {str(entry.relative_to(folder)): comparable(entry.name, entry.read_bytes()) for entry in found}


def comparable(name: str, content: bytes) -> bytes:
    """Remove what differs between two conversions of the same rows: times, and `_SUCCESS`'s hash of
    files.
    """
    if name == SUCCESS:
        return re.sub(rb',\s*"identity": "[0-9a-f]*"', b"", content)
    return re.sub(rb'(WriteTimestamp": ")[^"]*', rb"\1", content) if name.endswith(".dfm") else content


def elements_of(folder: Path) -> str:
    """Return the elements of all parts in order."""
    return "".join(bare(part.read_text()) for part in sorted(folder.glob("part-*.xml")))


def bare(document: str) -> str:
    """Return the elements of a document."""
    opening, closing = XdsFormat().wrapping()
    assert document.startswith(opening)
    assert document.endswith(closing)
    return document[len(opening) : -len(closing)]


def outcomes_of(folder: Path) -> list[dict[str, Any]]:
    """Read the outcomes in order."""
    found: list[dict[str, Any]] = parquet.read_table(folder / "outcomes.parquet").to_pylist()
    return found


def _phones(values: Any) -> tuple[str, ...]:
    return tuple(values)
