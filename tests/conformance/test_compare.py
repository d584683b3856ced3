"""The comparison: every difference that was put in is found, and none where two tables are equal."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine

from eventlog.sql.dialect import dialect_of
from tests.support.compared import (
    another,
    as_told,
    compared,
    made_source,
    made_target,
    random_row,
    sides,
    stored,
)
from tests.support.logged import run
from tests.support.reflected import reflect_table

ROWS = 400


def filled(
    engine: Engine, target: Engine, key: str, seed: int, many: int = ROWS
) -> tuple[sa.Table, sa.Table, list[dict[str, Any]]]:
    """Fill a source and a target with the same random rows."""
    dice = random.Random(seed)
    source = made_source(engine, key)
    table = reflect_table(engine, "usr")
    there = made_target(target, table, "usr_copy")
    rows = [random_row(dice, key, number) for number in range(many)]
    rows = list({tuple(row[c.name] for c in source.primary_key.columns): row for row in rows}.values())
    with engine.begin() as connection:
        connection.execute(source.insert(), rows)
    with target.begin() as connection:
        connection.execute(there.insert(), [stored(target, table, row) for row in rows])
    return source, there, rows


def planted(
    dice: random.Random, source: Engine, target: Engine, there: sa.Table, rows: list[dict[str, Any]], many: int = 100
) -> set[tuple[Any, ...]]:
    """Put differences of every kind into the target, and return them."""
    keys = [column.name for column in there.primary_key.columns]
    table = reflect_table(source, "usr")
    put: set[tuple[Any, ...]] = set()
    with target.begin() as connection:
        for number, row in enumerate(dice.sample(rows, many)):
            mine = [there.c[name] == row[name] for name in keys]
            key = tuple(str(row[name]) for name in keys)
            if number % 5 == 0:
                connection.execute(there.delete().where(*mine))
                put.add((key, "missing"))
            elif number % 5 == 1 and not isinstance(row["id"], dt.date):
                extra = row | {"id": row["id"] + "?" if isinstance(row["id"], str) else -(10**6) - row["id"]}
                connection.execute(there.insert(), [stored(target, table, extra)])
                put.add(((*key[:-1], str(extra["id"])), "extra"))
            else:
                columns = dice.sample([name for name in row if name not in keys], dice.choice([1, 1, 3]))
                changed = {name: another(dice, name, row[name]) for name in columns}
                connection.execute(there.update().where(*mine).values(stored(target, table, changed)))
                put.add((key, "value", *sorted(changed)))
    return put


@pytest.mark.parametrize("key", ["number", "text", "both", "time"])
def test_what_was_put_in_is_found_and_nothing_else(engine: Engine, sqlite: Engine, key: str) -> None:
    for target in dict.fromkeys([engine, sqlite]):
        seed = ["number", "text", "both", "time"].index(key)
        _, there, rows = filled(engine, target, key, seed)
        mine, other, columns, _ = sides(engine, target, "usr_copy")
        assert compared(mine, other, columns) == []
        put = planted(random.Random(seed), engine, target, there, rows)
        assert as_told(compared(mine, other, columns)) == put
        run(engine, "DROP TABLE usr")
        run(target, "DROP TABLE usr_copy")


def test_select_alone_suffices(engine: Engine, sqlite: Engine) -> None:
    if engine is sqlite:
        pytest.skip("whoever reads the file may read it all")
    filled(engine, engine, "number", 5)
    login = "CREATE ROLE only_reads LOGIN" if dialect_of(engine).schemas else "CREATE USER only_reads"
    tables = [f"GRANT SELECT ON {name} TO only_reads" for name in ("usr", "usr_copy")]
    run(engine, login, *tables)
    reader = sa.create_engine(engine.url.set(username="only_reads", password=None))
    try:
        mine, other, columns, _ = sides(reader, reader, "usr_copy")
        assert compared(mine, other, columns) == []
        with pytest.raises(sa.exc.DBAPIError), reader.begin() as connection:
            connection.exec_driver_sql("DELETE FROM usr_copy")
    finally:
        reader.dispose()
        run(engine, "DROP TABLE usr, usr_copy", login.replace("CREATE", "DROP").removesuffix(" LOGIN"))


def test_a_row_that_stands_there_twice_is_named(engine: Engine) -> None:
    source = made_source(engine, "number")
    table = reflect_table(engine, "usr")
    there = made_target(engine, table, "usr_copy", keyed=False)
    rows = [random_row(random.Random(1), "number", number) for number in range(1, 4)]
    with engine.begin() as connection:
        connection.execute(source.insert(), rows)
        connection.execute(there.insert(), [stored(engine, table, row) for row in (*rows, rows[1])])
    mine, other, columns, _ = sides(engine, engine, "usr_copy")
    assert as_told(compared(mine, other, columns)) == {((str(rows[1]["id"]),), "double")}


def test_keys_that_a_collation_takes_for_equal_are_two_objects(engine: Engine, sqlite: Engine) -> None:
    """So are texts that only differ in blanks at their end, where a database says that they are equal."""
    if engine is sqlite or dialect_of(engine).schemas:
        pytest.skip("texts are told apart there")
    words = "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    run(engine, f"CREATE TABLE usr (id VARCHAR(40) {words} PRIMARY KEY, name VARCHAR(20) {words})")
    run(engine, "INSERT INTO usr VALUES ('Abc', 'x'), ('b', 'X'), ('c', 'y'), ('d', 'z ')")
    table = reflect_table(engine, "usr")
    there = made_target(sqlite, table, "usr_copy")
    with sqlite.begin() as connection:
        rows = [("abc", "x"), ("b", "x"), ("c", "y"), ("d", "z")]
        connection.execute(there.insert(), [{"id": key, "name": name} for key, name in rows])
    mine, other, columns, _ = sides(engine, sqlite, "usr_copy")
    assert as_told(compared(mine, other, columns)) == {
        (("Abc",), "missing"),
        (("abc",), "extra"),
        (("b",), "value", "name"),
        (("d",), "value", "name"),
    }


def test_moments_are_compared_whatever_zone_the_session_is_in(postgresql: Engine, sqlite: Engine) -> None:
    run(
        postgresql,
        "CREATE TABLE usr (id timestamptz PRIMARY KEY, at timestamptz, since time, day timestamp)",
        "INSERT INTO usr VALUES ('2024-03-31 01:30:00+01', '2024-10-27 02:30:00+02', '10:00:00.5', '2024-01-01 00:00:00')",
        "INSERT INTO usr VALUES ('2024-03-31 03:30:00+02', NULL, NULL, '9999-12-31 23:59:59.999999')",
    )
    table = reflect_table(postgresql, "usr")
    there = made_target(sqlite, table, "usr_copy")
    with postgresql.connect() as connection:
        connection.exec_driver_sql("SET TIME ZONE 'Asia/Tokyo'")
        rows = [dict(row) for row in connection.execute(sa.text("SELECT * FROM usr")).mappings()]
    utc = [
        {name: cell.astimezone(dt.UTC) if getattr(cell, "tzinfo", None) else cell for name, cell in row.items()}
        for row in rows
    ]
    with sqlite.begin() as connection:
        connection.execute(there.insert(), [stored(sqlite, table, row) for row in utc])
    mine, other, columns, _ = sides(postgresql, sqlite, "usr_copy")
    assert compared(mine, other, columns) == []
    with sqlite.begin() as connection:
        connection.execute(there.update().where(there.c.at.is_not(None)).values(at=dt.datetime(2024, 10, 27, 1, 30)))
    assert [one.kind for one in compared(mine, other, columns)] == ["value"]


ODD_TYPES = {
    "postgresql": {
        "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'"),
        "jsonb": ("""'{"a": [1, null]}'""", """'{"a": [1, 2]}'"""),
        "integer[]": ("'{1,2}'", "'{1,NULL}'"),
        "interval": ("'1 day 02:00'", "'26:00'"),
        "bit(3)": ("B'101'", "B'100'"),
        "bit(1)": ("B'1'", "B'0'"),
        "money": ("12.5", "12.51"),
        "inet": ("'10.0.0.1'", "'10.0.0.2'"),
        "timetz": ("'10:00+02'", "'08:00+00'"),
        "numeric": ("'NaN'", "1e100"),
        "date": ("'infinity'", "'0044-03-15 BC'"),
        "timestamptz": ("'-infinity'", "'2024-01-01 00:00:00+00'"),
        "char(5)": ("'ab'", "'ab c'"),
        "real": ("0.1", "0.1000001"),
        "double precision": ("'-Infinity'", "1e300"),
        "time": ("'24:00'", "'00:00'"),
        "text": ("repeat('x', 5000)", "repeat('x', 4999) || 'y'"),
        "int4range": ("'[1,5)'", "'[1,6)'"),
    },
    "mysql": {
        "year": ("2024", "2025"),
        "enum('a','b')": ("'a'", "'b'"),
        "set('a','b')": ("'a,b'", "'b'"),
        "bit(9)": ("b'101'", "b'100000000'"),
        "json": ("""'{"a": 1}'""", """'{"a": 2}'"""),
        "time(6)": ("'-838:59:59'", "'10:00:00.5'"),
        "int(8) zerofill": ("7", "8"),
        "bigint unsigned": ("18446744073709551615", "18446744073709551614"),
        "float": ("0.1", "0.2"),
        "double": ("1e300", "0.1"),
        "tinyint(1)": ("1", "5"),
        "decimal(65,30)": ("0.000000000000000000000000000001", "100"),
        "timestamp(6) null": ("'2024-01-01 10:00:00.000001'", "'2024-01-01 10:00:00'"),
        "datetime": ("'2024-01-01 10:00:00'", "'2024-01-01 10:00:10'"),
        "char(5)": ("'ab'", "'ab c'"),
        "varbinary(5)": ("x'00ff'", "x'00fe'"),
        "longtext": ("repeat('x', 5000)", "concat(repeat('x', 4999), 'y')"),
        "point": ("POINT(1, 2)", "POINT(1, 3)"),
    },
}


def test_types_that_only_one_database_has(engine: Engine, sqlite: Engine) -> None:
    """An equal copy is equal by hashes and by values, and a change of each column is found."""
    if engine is sqlite:
        pytest.skip("its columns hold whatever is put there")
    types = ODD_TYPES[dialect_of(engine).name]
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(types))
    values = ", ".join(value for value, _ in types.values())
    for name in ("usr", "usr_copy"):
        run(engine, f"CREATE TABLE {name} (id INTEGER NOT NULL PRIMARY KEY, {columns})")
        run(engine, f"INSERT INTO {name} VALUES (1, {values})", f"INSERT INTO {name} (id) VALUES (2)")
    reader = sa.create_engine(engine.url)  # whose sessions are in UTC, whatever zone the writers are in
    mine, other, both, _ = sides(reader, reader, "usr_copy")
    assert compared(mine, other, both) == []
    for number, (value, changed) in enumerate(types.values()):
        for cell in (changed, "NULL", value):
            run(engine, f"UPDATE usr_copy SET c{number} = {cell} WHERE id = 1")
            found = set() if cell is value else {(("1",), "value", f"c{number}")}
            assert as_told(compared(mine, other, both)) == found, list(types)[number]
    reader.dispose()
