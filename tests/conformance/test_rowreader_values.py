"""Values that are read back: plain Python values, and nothing that one column holds keeps the others from being read."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.core.model import RowId, Unreadable
from eventlog.core.schema import Catalog
from eventlog.sql.reflect import reflect
from eventlog.sql.rows import SqlRowReader


def read(engine: Engine, *columns: tuple[str, str]) -> list[Any]:
    """The values of one row in columns of these types that hold these literals."""
    types = ", ".join(f"v{place} {type_}" for place, (type_, _) in enumerate(columns))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, {types})")
        connection.exec_driver_sql(f"INSERT INTO t VALUES (1, {', '.join(literal for _, literal in columns)})")
    table = reflect(engine, ["t"]).tables[0]
    row = RowId(table.schema, "t", "k=1")
    found = SqlRowReader(engine, Catalog([table])).rows({row: frozenset(table.attributes)})[row]
    assert not isinstance(found, Unreadable)
    return [found[f"v{place}"] for place in range(len(columns))]


POSTGRESQL: list[tuple[str, str, Any]] = [
    ("INTEGER", "NULL", None),
    ("BIGINT", "-9223372036854775808", -9223372036854775808),
    # Numbers with a fraction have the text that triggers write.
    ("NUMERIC(12,3)", "1.250", "1.250"),
    ("DOUBLE PRECISION", "0.1", "0.1"),
    ("DOUBLE PRECISION", "5", "5"),
    ("DOUBLE PRECISION", "'NaN'", "NaN"),
    ("MONEY", "'1234.5'", "1234.50"),
    ("TIMETZ", "'10:57:19.25+02'", "10:57:19.25+02"),
    ("BOOLEAN", "false", False),
    ("BYTEA", "'\\xaaaa'", b"\xaa\xaa"),
    ("TEXT", "''", ""),
    ("CHAR(5)", "'ab'", "ab"),
    ("DATE", "'2025-03-23'", "2025-03-23"),
    ("DATE", "'infinity'", "infinity"),
    ("DATE", "'0044-03-15 BC'", "0044-03-15 BC"),
    ("TIMESTAMP", "'2025-03-23 10:57:19.25'", "2025-03-23 10:57:19.25"),
    ("TIMESTAMPTZ", "'2025-03-23 10:57:19+03'", "2025-03-23 07:57:19+00"),
    ("TIME", "'24:00:00'", "24:00:00"),
    ("UUID", "'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    ("JSONB", """'{"a": [1]}'""", '{"a": [1]}'),
    ("INTEGER[]", "'{1,2}'", "{1,2}"),
    ("INTERVAL", "'1 day'", "1 day"),
    ("INET", "'10.0.0.1'", "10.0.0.1/32"),
]
SQLITE: list[tuple[str, str, Any]] = [
    ("INTEGER", "NULL", None),
    ("BIGINT", "-9223372036854775808", -9223372036854775808),
    ("REAL", "0.1", "0.1"),
    ("REAL", "5", "5"),
    ("BLOB", "x'aaaa'", b"\xaa\xaa"),
    ("TEXT", "''", ""),
    ("DATE", "'2025-03-23'", "2025-03-23"),
    ("DATE", "'not a date'", "not a date"),
    ("TIMESTAMP", "'2025-03-23 10:57:19.25'", "2025-03-23 10:57:19.25"),
    ("BOOLEAN", "1", 1),
    ("TEXT", "CAST(x'41eda080ff' AS TEXT)", "A\udced\udca0\udc80\udcff"),
]


@pytest.mark.parametrize(
    "name, columns", [("postgresql", POSTGRESQL), ("sqlite", SQLITE)], ids=["postgresql", "sqlite"]
)
def test_values_are_plain(request: pytest.FixtureRequest, name: str, columns: list[tuple[str, str, Any]]) -> None:
    found = read(request.getfixturevalue(name), *((type_, literal) for type_, literal, _ in columns))
    assert [(type(one), one) for one in found] == [(type(value), value) for _, _, value in columns]


def test_the_session_that_reads_decides_nothing(postgresql: Engine) -> None:
    with postgresql.begin() as connection:
        connection.execute(text("ALTER DATABASE " + str(postgresql.url.database) + " SET DateStyle = 'German'"))
        connection.execute(text("ALTER DATABASE " + str(postgresql.url.database) + " SET TimeZone = 'Asia/Tokyo'"))
    postgresql.dispose()
    assert read(postgresql, ("TIMESTAMPTZ", "'2025-03-23T10:57:19+03:00'")) == ["2025-03-23 07:57:19+00"]
