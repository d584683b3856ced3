"""The sum by which a range is recognised: any change of any value gives another one, and the same values the same."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any, Final

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine

from eventlog.compare.columns import selection_of
from eventlog.compare.ranges import Range
from eventlog.compare.sides import Totals
from eventlog.compare.tables import TableSide
from tests.support.compared import another, made_source, random_row
from tests.support.logged import run
from tests.support.reflected import reflect_table

WHOLE: Final = Range(buckets=1)
FULL: Final = {
    "name": "a",
    "note": "b",
    "pay": Decimal("1.5"),
    "ratio": 0.5,
    "active": True,
    "photo": b"x",
    "born": dt.date(2000, 1, 1),
    "seen": dt.datetime(2024, 1, 1, 12),
    "size": 3,
}


def totals(engine: Engine) -> Totals:
    place, compared = selection_of(reflect_table(engine, "usr"))
    with TableSide(engine, place, compared).snapshot() as snapshot:
        return snapshot.totals(WHOLE)


def wrote(engine: Engine, table: sa.Table, **values: Any) -> Totals:
    with engine.begin() as connection:
        connection.execute(table.update().where(table.c.id == 8).values(**values))
    return totals(engine)


def assert_that_each_changes_it(engine: Engine, *changes: str) -> set[int]:
    """Check that each change gives another sum; return the sums."""
    seen = {totals(engine).total}
    for change in changes:
        run(engine, f"UPDATE usr SET {change}")
        seen.add(totals(engine).total)
    assert len(seen) == 1 + len(changes)
    return seen


@pytest.fixture
def table(engine: Engine) -> sa.Table:
    made = made_source(engine, "number")
    with engine.begin() as connection:
        connection.execute(made.insert(), [random_row(random.Random(n), "number", n) | {"id": n} for n in range(20)])
    return made


def test_each_change_of_one_value_changes_it(engine: Engine, table: sa.Table) -> None:
    dice = random.Random(1)
    before = wrote(engine, table, **FULL)
    assert totals(engine) == before
    for column, value in FULL.items():
        for changed in (None, another(dice, column, value), another(dice, column, value)):
            assert wrote(engine, table, **{column: changed}) != before or changed == value, (column, changed)
            assert wrote(engine, table, **{column: value}) == before


def test_nothing_at_all_is_not_taken_for_zero_or_what_is_empty(engine: Engine, table: sa.Table) -> None:
    empty = {
        "name": "",
        "note": "",
        "pay": Decimal(0),
        "ratio": 0.0,
        "active": False,
        "photo": b"",
        "born": dt.date(2000, 1, 1),
        "seen": dt.datetime(2000, 1, 1),
        "size": 0,
    }
    assert empty.keys() == FULL.keys()
    for column, value in empty.items():
        assert wrote(engine, table, **{column: None}) != wrote(engine, table, **{column: value}), column


@pytest.mark.parametrize(
    "kind, values",
    [
        ("numeric(12,2)", ["5", "-5", "50000", "0", "NULL", "'NaN'"]),
        ("numeric(12)", ["5", "-5", "50000", "0", "NULL"]),
        ("numeric", ["5", "-5", "1e400", "'NaN'", "0", "NULL"]),
        ("bigint", ["1", "4294967296", "-1", "0", "NULL", "9223372036854775807"]),
        ("smallint", ["1", "-1", "0", "256", "NULL"]),
        ("double precision", ["0", "NULL", "5", "-5", "'NaN'", "'Infinity'", "'-Infinity'"]),
        ("real", ["0", "NULL", "5", "-5"]),
        ("boolean", ["true", "false", "NULL"]),
        ("date", ["'2000-01-01'", "'infinity'", "'-infinity'", "'5874897-12-31'", "'4713-01-01 BC'", "NULL"]),
        (
            "timestamp",
            [
                "'2000-01-01'",
                "NULL",
                "'2000-01-01 00:00:00.000001'",
                "'2000-01-01 01:11:34.967296'",
                "'infinity'",
                "'-infinity'",
            ],
        ),
        (
            "timestamptz",
            ["'2000-01-01Z'", "NULL", "'2000-01-01 00:00:00.000001Z'", "'2000-01-01 01:11:34.967296Z'", "'infinity'"],
        ),
        ("time", ["'00:00:00'", "'24:00'", "'00:00:00.000001'", "NULL"]),
        ("text", ["''", "'a'", "NULL", "repeat('a', 2000)", "repeat('a', 2000) || 'b'"]),
        ("bytea", ["''", "'a'", "NULL"]),
        ("uuid", ["'00000000-0000-0000-0000-000000000001'", "'00000000-0000-0000-0001-000000000000'"]),
        ("jsonb", ["'1'", "'-1'", "'{}'"]),
    ],
)
def test_values_that_a_hash_of_the_server_takes_for_equal_change_it(
    postgresql: Engine, kind: str, values: list[str]
) -> None:
    """PostgreSQL's hash of a number has no sign, and one of eight bytes is the same for some pairs of values."""
    run(postgresql, f"CREATE TABLE usr (id int PRIMARY KEY, value {kind})", "INSERT INTO usr VALUES (8, NULL)")
    seen = set()
    for value in values:
        run(postgresql, f"UPDATE usr SET value = {value}")
        seen.add(totals(postgresql).total)
    assert len(seen) == len(values)


def test_what_goes_from_one_column_to_the_next_changes_it(engine: Engine, table: sa.Table) -> None:
    """Texts side by side, and NULL beside the text that stands for it."""
    pairs = [
        ("a|", "b"),
        ("a", "|b"),
        (None, "~"),
        ("~", None),
        (None, None),
        ("", None),
        (None, ""),
        ("1|x", ""),
        ("a", "A"),
    ]
    seen = {(name, note): wrote(engine, table, name=name, note=note) for name, note in pairs}
    assert len({one.total for one in seen.values()}) == len(pairs)


def test_texts_that_a_collation_takes_for_equal_change_it(postgresql: Engine) -> None:
    run(
        postgresql,
        "CREATE COLLATION one_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE usr (id int PRIMARY KEY, name varchar(9) COLLATE one_case, span interval, text text COLLATE one_case)",
        "INSERT INTO usr VALUES (8, 'a', '1 day', 'a')",
    )
    assert_that_each_changes_it(postgresql, "name = 'A'", "name = 'a', span = '24:00'", "span = '1 day', text = 'A'")


def test_columns_of_several_character_sets_are_summed_together(mariadb: Engine) -> None:
    run(
        mariadb,
        "CREATE TABLE usr (id int PRIMARY KEY, name varchar(9) CHARACTER SET latin1, other varchar(9) CHARACTER SET cp1251)",
        "ALTER TABLE usr ADD wide varchar(9) CHARACTER SET utf16, ADD bytes varbinary(9), ADD bits bit(3)",
        "INSERT INTO usr VALUES (8, 'ä', 'я', '日', x'00FF', b'101')",
    )
    changes = ("name = 'a'", "other = 'ю'", "wide = '本'", "bytes = x'00FE'", "bits = b'100'")
    assert 0 not in assert_that_each_changes_it(mariadb, *changes)
