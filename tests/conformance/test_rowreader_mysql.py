"""Reading rows back on MariaDB and MySQL: keys under collations and character sets, and values that are plain Python."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, event

from eventlog.core.model import RowId
from eventlog.core.schema import Catalog
from eventlog.core.tablekey import TableKey
from eventlog.sql.reflect import reflect
from eventlog.sql.rows import SqlRowReader
from tests.support.logged import run
from tests.support.servers import mysqls


@pytest.fixture(params=mysqls())
def server(request: pytest.FixtureRequest) -> Engine:
    """An engine on each of the two."""
    found: Engine = request.getfixturevalue(request.param)
    return found


def found(engine: Engine, *keys: str) -> list[Any]:
    """The values of `v` in the rows of `t` that have these keys, None where there is no such row."""
    catalog = Catalog([reflect(engine, ["t"]).tables[0]])
    wanted = [RowId(None, "t", TableKey.of({"k": key}).canonical) for key in keys]
    rows: Any = SqlRowReader(engine, catalog).rows(dict.fromkeys(wanted, frozenset(["v"])))
    return [rows[row]["v"] if row in rows else None for row in wanted]


def made(engine: Engine, key: str, *literals: str) -> None:
    run(engine, f"CREATE TABLE t (k {key} NOT NULL PRIMARY KEY, v INTEGER NOT NULL)")
    run(engine, *(f"INSERT INTO t VALUES ({literal}, {place})" for place, literal in enumerate(literals)))


@pytest.mark.parametrize("collation", ["utf8mb4_general_ci", "utf8mb4_unicode_ci"])
def test_a_collation_decides_which_key_is_meant(server: Engine, collation: str) -> None:
    made(server, f"VARCHAR(9) COLLATE {collation}", "'Ann'", "'Bob'")
    assert found(server, "ann", "BOB", "Bo") == [0, 1, None]
    assert found(server, "Ann", "漢") == [0, None]


def test_a_key_without_a_collation_of_its_own_is_compared_as_mysql_compares_names(mysql: Engine) -> None:
    made(mysql, "VARCHAR(9) COLLATE utf8mb4_0900_ai_ci", "'Ann'", "'Zoë'", "'Ann '")
    assert found(mysql, "ANN", "zoe", "ann ", "ann  ") == [0, 1, 2, None]


def test_a_character_that_the_column_does_not_have_is_nobody_elses(server: Engine) -> None:
    made(server, "VARCHAR(9) CHARACTER SET latin1", "'a?'", "'ä'")
    assert found(server, "a?", "ä", "a漢") == [0, 1, None]


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


VALUES: list[tuple[str, str, Any]] = [
    ("BIGINT UNSIGNED", "18446744073709551615", 18446744073709551615),
    ("DECIMAL(12,3)", "1.25", "1.250"),
    ("DOUBLE", "0.1", "0.1"),
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


def test_values_are_plain(server: Engine) -> None:
    types = ", ".join(f"v{place} {type_}" for place, (type_, _, _) in enumerate(VALUES))
    run(server, f"CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, {types})")
    run(server, f"INSERT INTO t VALUES (1, {', '.join(literal for _, literal, _ in VALUES)})")
    table, row = reflect(server, ["t"]).tables[0], RowId(None, "t", "k=1")
    read: Any = SqlRowReader(server, Catalog([table])).rows({row: frozenset(table.attributes)})[row]
    values = [value for _, _, value in VALUES]
    assert [(type(one), one) for one in read.values()] == [(type(value), value) for value in values]
