"""Tables as the rows of a log tell them: keys from table_keys, columns in the order in which they came up, all text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert.inferred import SeenColumn, tables_of
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


def test_a_key_that_cannot_be_read_is_passed_over() -> None:
    assert the(seen(1, "usr", key="broken"), seen(2, "usr", key="idu=1")).key == ("idu",)
    assert list(tables_of([seen(1, "usr", key="broken")])) == []


@given(st.permutations([seen(1, "usr", "b"), seen(2, "usr", "a"), seen(3, "grp", key="idg=1"), seen(4, "usr", "c")]))
def test_the_order_of_files_is_of_no_account(rows: list[SeenColumn]) -> None:
    assert [(table.name, names(table)) for table in tables_of(rows)] == [
        ("usr", ["idu", "b", "a", "c"]),
        ("grp", ["idg"]),
    ]
