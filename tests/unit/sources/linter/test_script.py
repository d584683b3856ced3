"""What the emulator is told to do: operations in lines of JSON, and the line that makes no sense."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from eventlog.core.errors import DataError
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.schema_file import catalog_to_json
from eventlog.sources.linter.operations import Action
from eventlog_streams_tools.linter.emulator import SAMPLE, SAMPLE_SCHEMA, read_schema, steps

PHOTOS = Catalog(
    [
        Table(
            name="P",
            number=5,
            columns=(
                Column(name="ID", type="int", key=1),
                Column(name="PHOTO", type="blob"),
                Column(name="AT", type="date"),
                Column(name="B", type="varbyte(9)"),
                Column(name="PRICE", type="decimal"),
            ),
        )
    ]
)


def told(*operations: dict[str, Any]) -> list[bytes]:
    return [json.dumps(one).encode() for one in operations]


def test_values_of_a_line_become_those_of_their_columns() -> None:
    row = {"ID": 1, "PHOTO": None, "AT": "2024-03-15T10:20:30.500", "B": "q6s=", "PRICE": "1.50"}
    lines = told(
        {"op": "insert", "table": "P", "rowid": 3, "row": row},
        {"op": "clear blob", "table": "P", "row": row, "column": "PHOTO", "type": 2},
        {"op": "commit", "transaction": 7},
    )
    insert, clear, commit = steps([*lines[:1], b"  ", *lines[1:]], PHOTOS, "lines")
    assert insert.after == {
        "ID": 1,
        "PHOTO": None,
        "AT": dt.datetime(2024, 3, 15, 10, 20, 30, 500_000),
        "B": b"\xab\xab",
        "PRICE": Decimal("1.50"),
    }
    assert (insert.table, insert.rowid, insert.before) == (5, 3, None)
    assert (clear.action, clear.column, clear.blob_type) == (Action.CLEAR_BLOB, "PHOTO", 2)
    assert (commit.action, commit.transaction, commit.table) == (Action.COMMIT, 7, 0)


def test_the_sample_is_told_with_its_own_schema() -> None:
    done = list(steps(SAMPLE, read_schema(None, "the sample"), "the sample"))
    assert [one.transaction for one in done] == [1, 2, 1, 2, 2, 3, 3]
    assert read_schema(catalog_to_json(SAMPLE_SCHEMA), "schema.json").find("T") == SAMPLE_SCHEMA.find("T")


@pytest.mark.parametrize(
    "line, reason",
    [
        ("{", "Input data was truncated"),
        ('{"op": "drop"}', "'drop' is no operation; there are delete, insert"),
        ('{"op": "insert", "table": "X"}', "X has no number in the schema"),
        ('{"op": "insert", "table": "P", "row": {"C": 1}}', "the table has no column C"),
        ('{"op": "insert", "table": "P", "row": {"PRICE": "x"}}', ""),
        ('{"op": "insert", "table": "P", "row": {"B": "no base 64"}}', ""),
    ],
)
def test_an_operation_that_makes_no_sense_names_its_line(line: str, reason: str) -> None:
    with pytest.raises(DataError, match=f"operations.jsonl, line 2: {reason}"):
        list(steps([b"", line.encode()], PHOTOS, "operations.jsonl"))
