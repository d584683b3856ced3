"""How values get into the columns of change tables where a database has no type for them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import BLOB, Text
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects.mysql import LONGBLOB, LONGTEXT

from eventlog.sinks.database.types import as_stored, target_type
from eventlog.sql.dialect import dialects

DIALECTS = {one.name: one for one in dialects()}
AT = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
EXACT = {
    "numeric(10,2)": Decimal("1E+2"),
    "numeric(20,0)": Decimal(7),
    "bigint unsigned": 7,
    "numeric": Decimal("1.50"),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_value_is_changed_only_where_its_columns_type_is_another_one(name: str) -> None:
    values = {"varchar(9)": "x", "text": "x", "integer": 1, "timestamp": AT, "timestamptz": AT, "time": dt.time(1)}
    values |= {"float8": 1.5, "date": dt.date(2026, 1, 2), "bytea": b"x", "boolean": True, **EXACT}
    changed: dict[str, Any] = {}
    for kind, value in values.items():
        stored = as_stored(kind, target_type(kind, DIALECTS[name].types))
        if stored is not None:
            changed[kind] = stored(value)
    naive = {"timestamptz": AT.replace(tzinfo=None)}
    texts = {"numeric(10,2)": "100", "numeric(20,0)": "7", "bigint unsigned": "7", "numeric": "1.50"}
    expected = {
        "sqlite": texts | naive,
        "mysql": naive | {"boolean": 1},
        "oracle": {"time": "01:00:00"},
        "postgresql": {},
    }
    assert changed == expected[name]


@pytest.mark.parametrize(
    "kind, wider, value, expected",
    [
        ("integer", "text", 7, "7"),
        ("boolean", "integer", True, 1),
        ("numeric(10,2)", "numeric(12,4)", Decimal("1.50"), Decimal("1.50")),
        ("date", "timestamp", AT.date(), dt.datetime(2026, 1, 2)),
        ("date", "timestamptz", AT.date(), dt.datetime(2026, 1, 2, tzinfo=dt.UTC)),
        ("timestamp", "timestamptz", AT.replace(tzinfo=None), AT),
        ("timestamptz", "timestamp", AT, AT.replace(tzinfo=None)),
    ],
)
def test_a_value_fits_the_column_of_a_wider_type(kind: str, wider: str, value: Any, expected: Any) -> None:
    stored = as_stored(kind, target_type(wider, DIALECTS["postgresql"].types))
    found = value if stored is None else stored(value)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize("kind", ["text", "varchar(300)", "varchar(9)", "bytea"])
@pytest.mark.parametrize("name", ["mysql", "oracle"])
def test_a_key_of_a_mirror_is_never_a_long_text_where_that_can_be_no_key(name: str, kind: str) -> None:
    types = DIALECTS[name].types
    assert not isinstance(types.keyed(target_type(kind, types)), Text | LONGTEXT | LONGBLOB | BLOB)


@pytest.mark.parametrize("mariadb, collation", [(True, "utf8mb4_nopad_bin"), (False, "utf8mb4_0900_bin")])
def test_a_text_key_is_compared_byte_by_byte_whatever_the_database_does(mariadb: bool, collation: str) -> None:
    types, server = DIALECTS["mysql"].types, mysql.dialect()
    server.is_mariadb = mariadb
    for kind, length in (("varchar(9)", 9), ("text", 255)):
        made = types.keyed(target_type(kind, types)).compile(dialect=server)
        assert made == f"VARCHAR({length}) CHARACTER SET utf8mb4 COLLATE {collation}"
