"""What every row reader must do, run on each database: one answer for each key whatever its type and characters."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sqlalchemy import Engine, event, text

from eventlog.core.model import Row, RowId, Unreadable
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.core.tablekey import TableKey
from eventlog.sql.reflect import reflect
from eventlog.sql.rows import SqlRowReader
from tests.support.examples import examples

BINARY = {"sqlite": "BLOB", "postgresql": "BYTEA", "mysql": "VARBINARY(300)"}
SPECIAL = ", ; ' + \" = \\ < >"


def run(engine: Engine, *statements: str, rows: Any = None) -> None:
    with engine.begin() as connection:
        for sql in statements:
            connection.execute(text(sql), rows)


def asked(table: Table, *attributes: str, **key: str) -> dict[RowId, frozenset[str]]:
    return {RowId(table.schema, table.name, TableKey.of(key).canonical): frozenset(attributes)}


def read(engine: Engine, tables: list[Table], wanted: dict[RowId, frozenset[str]]) -> dict[RowId, Row]:
    """Read rows; none may be unreadable."""
    found = SqlRowReader(engine, Catalog(tables)).rows(wanted)
    rows = {row: values for row, values in found.items() if not isinstance(values, Unreadable)}
    assert len(rows) == len(found)
    return rows


def single(engine: Engine, table: Table, *attributes: str, **key: str) -> dict[str, Any] | None:
    """Read the row of one key."""
    found = read(engine, [table], asked(table, *attributes, **key))
    assert len(found) <= 1
    return next((dict(row) for row in found.values()), None)


def counted(engine: Engine) -> list[str]:
    """Collect the selects sent to the database from now on."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "asked" in statement:
            seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    return seen


@pytest.fixture
def usr(engine: Engine) -> Table:
    run(
        engine,
        "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64), lname VARCHAR(64), age INTEGER)",
        "CREATE TABLE usr_phone (idu INTEGER REFERENCES usr (idu), phoneno VARCHAR(32), kind VARCHAR(8))",
        "CREATE TABLE usr_fax (idu INTEGER REFERENCES usr (idu), faxno VARCHAR(32))",
        "INSERT INTO usr VALUES (1, 'Jack', 'Frost', 7), (2, NULL, 'Doe', NULL)",
        "INSERT INTO usr_phone VALUES (1, '22', 'home'), (1, '11', NULL), (1, '22', 'home')",
        "INSERT INTO usr_fax VALUES (2, NULL), (2, '5')",
    )
    return reflect(engine, ["usr"]).tables[0]


def test_rows_are_found_under_the_id_that_asked(engine: Engine, usr: Table) -> None:
    wanted = asked(usr, "fname", "lname", idu="1") | asked(usr, "age", idu="2") | asked(usr, "fname", idu="9")
    wanted |= asked(usr, "fname", idu="01")
    first, second, _, padded = wanted
    assert SqlRowReader(engine, Catalog([usr])).rows(wanted) == {
        first: {"fname": "Jack", "lname": "Frost"},
        second: {"age": None},
        padded: {"fname": "Jack"},
    }


def test_children_come_as_values_in_a_stable_order_and_null_is_none_of_them(engine: Engine, usr: Table) -> None:
    wanted = asked(usr, *usr.attributes, idu="1") | asked(usr, *usr.attributes, idu="2")
    first, second = read(engine, [usr], wanted).values()
    assert first["usr_phone.phoneno"] == ("11", "22", "22")
    assert first["usr_phone.kind"] == ("home", "home")
    assert first["usr_fax.faxno"] == ()
    assert (second["usr_phone.phoneno"], second["usr_fax.faxno"]) == ((), ("5",))
    assert list(first)[:3] == ["fname", "lname", "age"]


def test_one_statement_a_table_and_one_for_each_child_that_is_asked_for(
    engine: Engine, usr: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "eventlog.databases.postgresql.keys.MANY_KEYS", 10_000
    )  # else PostgreSQL is asked where nobody counts
    seen = counted(engine)
    reader = SqlRowReader(engine, Catalog([usr]))
    names = frozenset(["fname", "usr_phone.phoneno"])
    reader.rows({RowId(usr.schema, "usr", f"idu={number}"): names for number in range(5000)})
    assert len(seen) == 2
    assert "lname" not in seen[0]
    assert "usr_fax" not in "".join(seen)
    reader.rows({})
    assert len(seen) == 2


def test_an_object_that_wants_only_children_is_still_told_from_a_vanished_one(engine: Engine, usr: Table) -> None:
    assert single(engine, usr, "usr_phone.phoneno", idu="2") == {"usr_phone.phoneno": ()}
    assert single(engine, usr, "usr_phone.phoneno", idu="3") is None
    assert single(engine, usr, idu="2") == {}


def test_tables_and_keys_that_are_not_in_the_catalog_find_nothing(engine: Engine, usr: Table) -> None:
    nobody = {
        RowId("elsewhere", "usr", "idu=1"): frozenset(["fname"]),
        RowId(usr.schema, "grp", "idg=1"): frozenset(["name"]),
        RowId(usr.schema, "usr", "lname=Frost"): frozenset(["fname"]),
        RowId(usr.schema, "usr", "idu=1+lname=Frost"): frozenset(["fname"]),
        RowId(usr.schema, "usr", "no key"): frozenset(["fname"]),
        RowId(usr.schema, "usr", 'idu;DROP TABLE usr;--="1"'): frozenset(["fname"]),
    }
    assert SqlRowReader(engine, Catalog([usr])).rows(nobody) == {}


def test_attributes_that_are_no_columns_are_never_selected(engine: Engine, usr: Table) -> None:
    assert single(engine, usr, "fname", 'x"; DROP TABLE usr; --', "usr_phone.secret", idu="1") == {"fname": "Jack"}


KEYS = [
    ("INTEGER", "7", "7"),
    ("BIGINT", "9223372036854775807", "9223372036854775807"),
    ("NUMERIC(20,4)", "12.5000", "12.5000"),
    ("VARCHAR(40)", f"'{SPECIAL.replace(chr(39), chr(39) * 2)}'", SPECIAL),
    ("VARCHAR(40)", "' a '", " a "),
    ("VARCHAR(40)", "'ключ 鍵 😀'", "ключ 鍵 😀"),
    ("VARCHAR(40)", "':n %s %(n)s ?'", ":n %s %(n)s ?"),
    ("CHAR(10)", "'ab'", "ab"),
    ("DATE", "'2025-03-23'", "2025-03-23"),
    ("TIMESTAMP", "'2025-03-23 10:57:19.25'", "2025-03-23 10:57:19.25"),
    ("TIME", "'10:57:19'", "10:57:19"),
    ("UUID", "'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    ("BOOLEAN", "TRUE", "1"),
    ("REAL", "0.5", "0.5"),
    ("DOUBLE PRECISION", "0.1", "0.1"),
]


def in_words_of(engine: Engine, type_: str) -> str:
    """Return the type, or the database's own in its place."""
    if (type_, engine.dialect.name) == ("TIMESTAMP", "mysql"):
        return "DATETIME(6)"  # has no fractions else
    engine.connect().close()  # SQLAlchemy learns here which of the two it is
    without = engine.dialect.name == "mysql" and not getattr(engine.dialect, "is_mariadb", False)
    return "CHAR(36)" if type_ == "UUID" and without else type_


def test_keys_of_every_type_find_their_row(engine: Engine) -> None:
    for place, (type_, literal, key) in enumerate(KEYS):
        made = f"CREATE TABLE t{place} (k {in_words_of(engine, type_)} NOT NULL PRIMARY KEY, v VARCHAR(9))"
        run(engine, made, f"INSERT INTO t{place} VALUES ({literal.replace(':', chr(92) + ':')}, 'found')")
        table = reflect(engine, [f"t{place}"]).tables[0]
        assert single(engine, table, "v", k=key) == {"v": "found"}, (type_, key)


MISFITS = ["", "abc", "1e999", "9" * 40, "1_0", "NaN", "2025-02-30", "\ud800", "'", "a\0b", "25:00:00", "===", "-"]


def test_text_that_is_no_value_of_the_type_finds_nothing_and_harms_no_other_key(engine: Engine) -> None:
    types = {in_words_of(engine, type_) for type_, _, _ in KEYS} | {BINARY[engine.dialect.name]}
    for place, type_ in enumerate(sorted(types)):
        run(engine, f"CREATE TABLE t{place} (k {type_} NOT NULL PRIMARY KEY, v VARCHAR(9))")
        table = reflect(engine, [f"t{place}"]).tables[0]
        wanted: dict[RowId, frozenset[str]] = {}
        for key in MISFITS:
            wanted |= asked(table, "v", k=key)
        assert SqlRowReader(engine, Catalog([table])).rows(wanted) == {}, type_


def test_binary_keys_are_base64(engine: Engine) -> None:
    type_ = BINARY[engine.dialect.name]
    run(engine, f"CREATE TABLE t (k {type_} NOT NULL PRIMARY KEY, v {type_})")
    table = reflect(engine, ["t"]).tables[0]
    for content in (b"", b"\x00\xff", b"\xaa" * 100):
        run(engine, "INSERT INTO t VALUES (:k, :k)", rows={"k": content})
        written = base64.encodebytes(content).decode()
        assert single(engine, table, "v", k=written) == {"v": content}


@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20), unique=True))
def test_text_keys_of_any_characters_find_exactly_their_rows(engine: Engine, keys: list[str]) -> None:
    run(engine, "DROP TABLE IF EXISTS t", "CREATE TABLE t (k VARCHAR(20) NOT NULL PRIMARY KEY, v INTEGER)")
    table = reflect(engine, ["t"]).tables[0]
    rows = [{"k": key, "v": place} for place, key in enumerate(keys)]
    if rows:
        run(engine, "INSERT INTO t VALUES (:k, :v)", rows=rows)
    wanted = {RowId(table.schema, "t", TableKey.of({"k": key}).canonical): frozenset(["v"]) for key in keys}
    found = read(engine, [table], wanted)
    assert [row["v"] for row in found.values()] == list(range(len(keys)))
    assert set(found) == set(wanted)


def test_compound_keys_are_found_whatever_the_order_of_their_columns(engine: Engine) -> None:
    run(
        engine,
        "CREATE TABLE t (a INTEGER NOT NULL, v VARCHAR(9), b VARCHAR(9) NOT NULL, PRIMARY KEY (b, a))",
        "INSERT INTO t VALUES (1, 'one', 'x'), (2, 'two', 'x'), (1, 'three', 'y')",
    )
    table = reflect(engine, ["t"]).tables[0]
    assert single(engine, table, "v", b="x", a="2") == {"v": "two"}
    assert single(engine, table, "v", a="1", b="y") == {"v": "three"}
    assert single(engine, table, "v", b="y", a="2") is None


def test_a_table_without_a_key_is_read_by_the_columns_that_the_key_names(engine: Engine) -> None:
    run(engine, "CREATE TABLE t (a INTEGER, v VARCHAR(9))", "INSERT INTO t VALUES (1, 'one')")
    table = Table(name="t", columns=(Column(name="a", type="integer"), Column(name="v", type="varchar(9)")))
    assert single(engine, table, "v", a="1") == {"v": "one"}
    assert single(engine, table, "v", b="1") is None


def test_view_columns_are_told_by_their_mapped_names(engine: Engine) -> None:
    run(
        engine,
        "CREATE TABLE emp (empno INTEGER, name VARCHAR(9), boss INTEGER, phone VARCHAR(9))",
        "INSERT INTO emp VALUES (1, 'Ann', 2, '22'), (1, 'Ann', 2, '11'), (1, 'Ann', 2, '22'), (2, 'Bob', NULL, NULL)",
        "CREATE VIEW v_emp AS SELECT empno AS pk_empno, name AS sv_name, boss AS fk__empno__boss, phone AS mv_phone"
        " FROM emp",
    )
    table = reflect(engine, ["v_emp"]).tables[0]
    assert single(engine, table, *table.attributes, pk_empno="1") == {
        "name": "Ann",
        "fk_boss": 2,
        "phone": ("11", "22"),
    }
    assert single(engine, table, "phone", "name", pk_empno="2") == {"name": "Bob", "phone": ()}


def test_strange_names_are_quoted(engine: Engine) -> None:
    strange = 'Ord:er "%" group'
    quoted = engine.dialect.identifier_preparer.quote_identifier(strange).replace("%%", "%")
    with engine.begin() as connection:
        for sql in (
            f'CREATE TABLE {quoted} ("select" INTEGER NOT NULL PRIMARY KEY, {quoted} VARCHAR(9))',
            f"INSERT INTO {quoted} VALUES (1, 'one')",
            'CREATE TABLE "Kid" ("Par:ent" INTEGER, "a%b" VARCHAR(9))',
            "INSERT INTO \"Kid\" VALUES (1, 'two')",
        ):
            connection.execute(text(sql.replace(":", "\\:")))
    child = Child(name="Kid", parent_key=("Par:ent",), columns=(Column(name="a%b"),))
    columns = (Column(name="select", type="integer", key=1), Column(name=strange))
    table = Table(name=strange, columns=columns, children=(child,))
    assert single(engine, table, strange, "Kid.a%b", select="1") == {strange: "one", "Kid.a%b": ("two",)}


def test_schemas_tell_tables_of_one_name_apart(engine: Engine) -> None:
    # MySQL's schemas are the server's databases, and tests that run at the same time need different ones.
    schema = f"{engine.url.database}_other" if engine.dialect.name == "mysql" else "other"
    makes = {"sqlite": "ATTACH ':memory:' AS other"}
    with engine.begin() as connection:
        connection.exec_driver_sql(makes.get(engine.dialect.name, f"CREATE SCHEMA {schema}"))
        for name in ("t", f"{schema}.t"):
            connection.exec_driver_sql(f"CREATE TABLE {name} (k INTEGER NOT NULL PRIMARY KEY, v VARCHAR(99))")
            connection.exec_driver_sql(f"INSERT INTO {name} VALUES (1, '{name}')")
    columns = (Column(name="k", type="integer", key=1), Column(name="v"))
    here, there = Table(name="t", columns=columns), Table(name="t", columns=columns, schema=schema)
    found = read(engine, [here, there], asked(here, "v", k="1") | asked(there, "v", k="1"))
    assert [row["v"] for row in found.values()] == ["t", f"{schema}.t"]
