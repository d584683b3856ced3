"""Reasons of bad rows in groups: few are told, and much alike is told as one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from eventlog.convert.reasons import BadRows, bad_rows, foreseen
from eventlog.convert.rows import OUTCOMES
from eventlog.convert.settings import Conversion, FilesInput, SnapshotRows
from eventlog.core.schema import Catalog


def outcomes(folder: Path, *rows: tuple[str, str | None, str | None]) -> Path:
    columns = [list(range(len(rows))), *([list(column) for column in zip(*rows, strict=True)])]
    pq.write_table(pa.table(columns, schema=OUTCOMES), folder / "outcomes.parquet")
    return folder


def test_notes_that_differ_in_names_and_numbers_are_one_group_the_largest_first(tmp_path: Path) -> None:
    folder = outcomes(
        tmp_path,
        ("S", "published", None),
        ("E", "invalid", "table 'a' is unknown."),
        ("E", "refused", None),
        ("E", "invalid", "table 'b' is unknown, 7."),
        ("E", "invalid", "table 'c' is unknown, 80."),
        ("E", None, "odd"),
    )
    assert bad_rows(folder) == (
        BadRows(rows=2, reason="invalid", note="table 'b' is unknown, 7."),
        BadRows(rows=1, reason="error", note="odd"),
        BadRows(rows=1, reason="invalid", note="table 'a' is unknown."),
        BadRows(rows=1, reason="refused"),
    )
    assert BadRows(rows=2000, reason="refused").sentence() == "2,000 rows ended as E, refused: without a note."
    assert BadRows(rows=1, reason="invalid", note="so.").sentence() == "1 row ended as E, invalid: so."


def test_rows_that_nothing_can_be_read_back_for_are_said_before_the_work(tmp_path: Path) -> None:
    names = ("record_id", "event_type", "event_time", "table_name", "table_key")
    lines = [dict(zip(names, (kind, kind, "2025-03-23", "usr", "idu=1"), strict=True)) for kind in (1, 5, 6, 7, 9)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    files = FilesInput(places=(str(tmp_path / "rows.jsonl"),))
    conversion = Conversion(input=files, destination=tmp_path / "out")
    assert foreseen(conversion) == (
        "3 of the first 5 rows must be read back from their tables."
        " Without --database URL or --snapshot DIR such rows end as E."
    )
    answered = replace(conversion, read_back=SnapshotRows(folder=tmp_path), catalog=Catalog(()))
    assert foreseen(answered) is None
    (tmp_path / "rows.jsonl").write_text(f"{json.dumps(lines[0])}\n")
    assert foreseen(conversion) is None
