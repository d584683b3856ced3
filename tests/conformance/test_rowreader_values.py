"""Values that are read back are plain Python values; and keys under the collations and character sets of MariaDB and MySQL."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, event

from eventlog.core.model import RowId, Unreadable
from eventlog.core.schema import Catalog
from eventlog.core.tablekey import TableKey
from eventlog.sql.dialect import dialect_of
from eventlog.sql.reflect import reflect
from eventlog.sql.rows import SqlRowReader
from tests.support.logged import run
from tests.support.servers import mysqls


def read(engine: Engine, *columns: tuple[str, str]) -> list[Any]:
    """Read the values of one row from columns of these types and literals."""
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
    ("CHAR(5)", "'ab'", "ab   "),
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
    ("INET", "'10.0.0.1'", "10.0.0.1"),
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


MYSQL: list[tuple[str, str, Any]] = [
    ("BIGINT UNSIGNED", "18446744073709551615", 18446744073709551615),
    ("DECIMAL(12,3)", "1.25", "1.250"),
    ("DOUBLE", "0.1", "0.1"),
    # Texts of more than 22 characters, which the server cuts where it sorts rows.
    ("DOUBLE", "1.2345678901234567e-7", "0.00000012345678901234566"),
    ("DOUBLE", "-2.2250738585072014e-308", "-2.2250738585072014e-308"),
    ("DOUBLE(60,30)", "-123456789012345680000.5", "-123456789012345680000.000000000000000000000000000000"),
    ("FLOAT", "-1.17549435e-38", "-1.1754943508222875e-38"),
    ("BOOLEAN", "TRUE", 1),
    ("BIT(1)", "b'1'", 1),
    ("BIT(9)", "b'101'", 5),
    ("BLOB", "x'aaaa'", b"\xaa\xaa"),
    ("CHAR(5)", "'ab'", "ab"),
    ("TEXT CHARACTER SET latin1", "'äß'", "äß"),
    ("ENUM('good','bad')", "'bad'", "bad"),
    ("SET('a','b')", "'b,a'", "a,b"),
    ("DATE", "'2025-03-23'", "2025-03-23"),
    ("TIME", "'-100:00:01'", "-100:00:01"),
    ("DATETIME(3)", "'2025-03-23 10:57:19.25'", "2025-03-23 10:57:19.250"),
    ("TIMESTAMP NULL", "FROM_UNIXTIME(1742727439)", "2025-03-23 10:57:19"),
    ("JSON", "'{\"a\": [1]}'", '{"a": [1]}'),
    ("POINT", "ST_GeomFromText('POINT(1 2)')", "POINT(1 2)"),
]
VALUES = {"postgresql": POSTGRESQL, "sqlite": SQLITE, "mysql": MYSQL}


def test_values_are_plain(engine: Engine) -> None:
    columns = VALUES[dialect_of(engine).name]
    found = read(engine, *((type_, literal) for type_, literal, _ in columns))
    assert [(type(one), one) for one in found] == [(type(value), value) for _, _, value in columns]


def test_the_session_that_reads_decides_nothing(postgresql: Engine) -> None:
    for setting in ("DateStyle = 'German'", "TimeZone = 'Asia/Tokyo'"):
        run(postgresql, f"ALTER DATABASE {postgresql.url.database} SET {setting}")
    postgresql.dispose()
    assert read(postgresql, ("TIMESTAMPTZ", "'2025-03-23T10:57:19+03:00'")) == ["2025-03-23 07:57:19+00"]


@pytest.fixture(params=mysqls())
def server(request: pytest.FixtureRequest) -> Engine:
    """Return an engine on each of the two."""
    found: Engine = request.getfixturevalue(request.param)
    return found


def found(engine: Engine, *keys: str) -> list[Any]:
    """Read `v` in the rows of `t` with these keys; None for a missing row."""
    catalog = Catalog([reflect(engine, ["t"]).tables[0]])
    wanted = [RowId(None, "t", TableKey.of({"k": key}).canonical) for key in keys]
    rows: Any = SqlRowReader(engine, catalog).rows(dict.fromkeys(wanted, frozenset(["v"])))
    return [rows[row]["v"] if row in rows else None for row in wanted]


def made(engine: Engine, key: str, *literals: str) -> None:
    run(engine, f"CREATE TABLE t (k {key} NOT NULL PRIMARY KEY, v INTEGER NOT NULL)")
    run(engine, *(f"INSERT INTO t VALUES ({literal}, {place})" for place, literal in enumerate(literals)))


COLLATED: list[tuple[str, tuple[str, ...], dict[str, int | None]]] = [
    ("COLLATE utf8mb4_general_ci", ("'Ann'", "'Bob'"), {"ann": 0, "BOB": 1, "Bo": None, "漢": None}),
    ("COLLATE utf8mb4_unicode_ci", ("'Ann'", "'Bob'"), {"ann": 0, "BOB": 1, "Bo": None, "漢": None}),
    ("COLLATE utf8mb4_bin", ("'Ann'", "'ann'"), {"ann": 1, "Ann": 0, "ANN": None}),
    ("CHARACTER SET latin1", ("'a?'", "'ä'"), {"a?": 0, "ä": 1, "a漢": None}),
]


@pytest.mark.parametrize("kind, there, keys", COLLATED)
def test_a_collation_decides_which_key_is_meant(
    server: Engine, kind: str, there: tuple[str, ...], keys: dict[str, int | None]
) -> None:
    made(server, f"VARCHAR(9) {kind}", *there)
    assert found(server, *keys) == [*keys.values()]


def test_a_key_without_a_collation_of_its_own_is_compared_as_mysql_compares_names(mysql: Engine) -> None:
    made(mysql, "VARCHAR(9) COLLATE utf8mb4_0900_ai_ci", "'Ann'", "'Zoë'", "'Ann '")
    assert found(mysql, "ANN", "zoe", "ann ", "ann  ") == [0, 1, 2, None]


def test_keys_are_found_by_their_index(server: Engine) -> None:
    made(server, "VARCHAR(9) COLLATE utf8mb4_general_ci", *(f"'key{number}'" for number in range(200)))
    plans: list[str] = []

    def explain(connection: Any, _cursor: Any, sql: str, parameters: Any, *_: Any) -> None:
        if "JSON_TABLE" in sql and not sql.startswith("EXPLAIN"):
            rows = connection.exec_driver_sql(f"EXPLAIN {sql}", parameters).mappings().all()
            plans.extend(str(row["key"]) for row in rows if row["table"] == "found")

    event.listen(server, "before_cursor_execute", explain)
    assert found(server, "KEY7", "key199") == [7, 199]
    assert plans == ["PRIMARY"]


NEAR = {
    ("DECIMAL(6,2)", "1.24"): ["1.239", "1.2401", "12345.00"],
    ("INTEGER UNSIGNED", "0"): ["-1", "abc", "0x"],
    ("BIGINT UNSIGNED", "18446744073709551615"): ["18446744073709551616", "-1"],
    ("DATE", "'2025-03-01'"): ["2025-02-29", "2025-3-1"],
    ("TIME", "'10:00:00'"): ["10", "10:00", "10:00:61"],
    ("DOUBLE", "0"): ["nan", "zero", "1e999"],
}


def test_what_the_server_would_bend_into_a_key_is_none(server: Engine) -> None:
    for (type_, literal), near in NEAR.items():
        run(server, "DROP TABLE IF EXISTS t")
        made(server, type_, literal)
        assert found(server, literal.strip("'"), *near) == [0, *(None for _ in near)], type_
