"""Rows on a terminal and for programs: nothing that names a row is cut, and numbers are numbers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.command import ok

TERMINAL = {"FORCE_COLOR": "1", "COLUMNS": "80", "NO_COLOR": "1"}
"""What rich takes for a terminal of eighty columns that wants no colours."""


@pytest.fixture
def database(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'app.db'}"
    with closing(sqlite3.connect(tmp_path / "app.db")) as opened:
        opened.execute("CREATE TABLE usr(idu INTEGER PRIMARY KEY, fname TEXT)")
        ok("install", "--database", url)
        ok("track", "usr", "--database", url)
        opened.execute("INSERT INTO usr VALUES (1234567, 'Jack')")
        opened.commit()
    return url


def test_columns_without_values_make_room_on_a_narrow_terminal(database: str) -> None:
    (head, row) = [
        line
        for line in ok("log", "--database", database, environment=TERMINAL).splitlines()
        if "1" in line or "id" in line
    ]
    assert head.split() == ["id", "status", "type", "time", "table", "key"]
    assert row.split()[-1] == "idu=1234567"
    assert "\x1b" not in head


def test_a_key_is_never_cut(database: str) -> None:
    shown = ok("log", "--database", database, environment={**TERMINAL, "COLUMNS": "40"})
    assert "…" not in shown
    assert "key     idu=1234567" in shown.splitlines()  # too narrow for a table: each value has a line


def test_a_pipe_that_is_wide_enough_gets_every_column(database: str) -> None:
    whole = ok("log", "--database", database, environment={"COLUMNS": "200"})
    assert {"column", "old", "new", "reason", "note"} <= set(whole.split())


def test_programs_get_numbers(database: str) -> None:
    (row,) = json.loads(ok("log", "--json", "--database", database))
    assert (row["record_id"], row["event_type"], row["table_key"]) == (1, 5, "idu=1234567")
