"""Tables as the rows of a log tell them: keys from table_keys, columns in the order in which they came up, all text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert.inferred import SeenColumn, seen_in, tables_of
from eventlog.convert.settings import FilesInput
from eventlog.core.schema import Table


def seen(since: int, table: str, column: str | None = None, key: str = "idu=1") -> SeenColumn:
    return SeenColumn(table=table, column=column, since=since, key=key)


def the(*rows: SeenColumn) -> Table:
    (table,) = tables_of(rows)
    return table


def names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def test_keys_come_first_and_columns_in_the_order_of_their_rows() -> None:
    table = the(seen(3, "usr", "lname"), seen(1, "usr", "fname"), seen(2, "USR", "FNAME"), seen(4, "usr"))
    assert (table.name, table.schema, names(table)) == ("usr", None, ["idu", "fname", "lname"])
    assert table.key == ("idu",)
    assert {column.type for column in table.columns} == {"varchar"}


def test_columns_of_child_tables_make_child_tables() -> None:
    (child,) = the(seen(1, "usr", "usr_phone.phoneno"), seen(2, "usr", "usr_phone.kind")).children
    assert (child.name, child.parent_key) == ("usr_phone", ("idu",))
    assert [column.name for column in child.columns] == ["idu", "phoneno", "kind"]


def test_a_key_that_cannot_be_read_is_passed_over() -> None:
    assert the(seen(1, "usr", key="broken"), seen(2, "usr", key="idu=1")).key == ("idu",)
    assert list(tables_of([seen(1, "usr", key="broken")])) == []


@given(st.permutations([seen(1, "usr", "b"), seen(2, "usr", "a"), seen(3, "grp", key="idg=1"), seen(4, "usr", "c")]))
def test_the_order_of_files_is_of_no_account(rows: list[SeenColumn]) -> None:
    assert [(table.name, names(table)) for table in tables_of(rows)] == [
        ("usr", ["idu", "b", "a", "c"]),
        ("grp", ["idg"]),
    ]


@pytest.fixture
def files(tmp_path: Path) -> FilesInput:
    rows: list[dict[str, object]] = [
        {"record_id": 2, "table_key": "idu=2", "table_name": "usr", "column_name": "lname"},
        {"record_id": 1, "table_key": "idu=1", "table_name": "usr ", "column_name": "fname"},
        {"record_id": 3, "table_key": "idg=1", "table_name": None, "column_name": "x"},
        {"record_id": None, "table_key": "idg=1", "table_name": "grp", "column_name": "y"},
        {"record_id": 4, "table_key": None, "table_name": "grp", "column_name": "z"},
    ]
    common: dict[str, object] = {
        "status": "N",
        "event_type": 1,
        "event_time": "2025-03-23",
        "perpetrator": None,
        "old_value": None,
    }
    lines = [json.dumps(common | {"new_value": "v"} | row) for row in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return FilesInput(places=(str(tmp_path / "rows.jsonl"),))


def test_rows_without_a_table_a_key_or_a_number_tell_nothing(files: FilesInput) -> None:
    found = {(one.table, one.column): one.since for one in seen_in(files)}
    assert found == {("usr", "fname"): 1, ("usr", "lname"): 2}
