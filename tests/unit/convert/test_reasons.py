"""Reasons of bad rows in groups: few are told, and much alike is told as one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlog.convert import reasons
from eventlog.convert.reasons import BadRows, bad_rows
from eventlog.convert.rows import OUTCOMES


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


def test_very_many_notes_are_not_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasons, "MOST_NOTES", 2)
    monkeypatch.setattr(reasons, "TOLD_NOTES", 2)
    folder = outcomes(tmp_path, *(("E", "invalid", letter) for letter in "abcdee"))
    assert [(group.rows, group.note) for group in bad_rows(folder)] == [(4, "c"), (1, "a")]


def test_where_no_outcomes_stand_nothing_is_told(tmp_path: Path) -> None:
    assert bad_rows(tmp_path) == ()
