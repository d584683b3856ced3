"""Columns that PostgreSQL computes when they are read: no trigger can read them, and they are told all the same."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, trigger_states
from eventlog.capture.install import install
from eventlog.sql.reflect import reflect_table
from tests.support.logged import left_by, run

both = pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])
SUM = "coalesce(a, 0) + 1"


@pytest.fixture
def table(postgresql: Engine) -> Engine:
    with postgresql.connect() as connection:
        if int(connection.execute(text("SHOW server_version_num")).scalar_one()) < 180_000:
            pytest.skip("virtual columns came with PostgreSQL 18")
    install(postgresql)
    virtual = f'"V %" INTEGER GENERATED ALWAYS AS ({SUM}) VIRTUAL'
    run(postgresql, f"CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, {virtual}, s TEXT)")
    return postgresql


@both
def test_it_is_a_column_like_others(table: Engine, rows: bool) -> None:
    track(table, ["t"], TriggerOptions(style=Style.FIELD, rows=rows))
    assert left_by(table, "INSERT INTO t (k, a) VALUES (1, 1)", "INSERT INTO t (k) VALUES (2)") == [
        (1, "k=1", "a", None, "1"),
        (1, "k=1", "V %", None, "2"),
        (1, "k=2", "V %", None, "1"),
    ]
    assert left_by(table, "UPDATE t SET a = 5 WHERE k = 1") == [(2, "k=1", "a", "1", "5"), (2, "k=1", "V %", "2", "6")]
    assert left_by(table, "UPDATE t SET s = 'x' WHERE k = 1") == [(2, "k=1", "s", None, "x")]
    assert sorted(left_by(table, "UPDATE t SET k = 3 WHERE k = 2"), key=str) == [
        (1, "k=3", "V %", None, "1"),
        (4, "k=2", None, None, None),
    ]


@both
@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD_BACK])
def test_a_change_of_what_it_is_computed_from_is_one_of_it(table: Engine, rows: bool, style: Style) -> None:
    track(table, ["t"], TriggerOptions(style=style, rows=rows, columns=("V %",), when='"V %" < 9'))
    changes = (
        "INSERT INTO t (k, a) VALUES (1, 1), (2, 20)",
        "UPDATE t SET a = 2, s = 'x'",
        "UPDATE t SET s = 'y'",
        "UPDATE t SET a = NULL WHERE k = 2",
        "DELETE FROM t WHERE k = 2",
    )
    back = style is Style.ROW_BACK
    assert [row[:2] for row in left_by(table, *changes)] == [
        (5 if back else 7, "k=1"),
        *[(6 if back else 8, f"k={number}") for number in (1, 2, 2)],
        (4, "k=2"),
    ]


def test_a_child_table_and_a_table_of_nothing_else_may_have_one(table: Engine) -> None:
    run(
        table,
        "CREATE TABLE word (k INTEGER REFERENCES t, w TEXT, loud TEXT GENERATED ALWAYS AS (upper(w)) VIRTUAL)",
        "CREATE TABLE c (k INTEGER PRIMARY KEY, v INTEGER GENERATED ALWAYS AS (k + 1) VIRTUAL)",
        "INSERT INTO t (k) VALUES (1)",
    )
    track(table, ["t", "c"], TriggerOptions(style=Style.FIELD))
    assert left_by(table, "INSERT INTO word VALUES (1, 'x')", "INSERT INTO c VALUES (1)") == [
        (1, "k=1", "word.w", None, "x"),
        (1, "k=1", "word.loud", None, "X"),
        (1, "k=1", "v", None, "2"),
    ]


def test_the_catalog_tells_its_formula_and_another_one_makes_triggers_outdated(table: Engine) -> None:
    [column] = [column for column in reflect_table(table, "t").columns if column.formula]
    assert (column.name, column.type) == ("V %", "INTEGER")
    track(
        table, ["t"], TriggerOptions(style=Style.FIELD)
    )  # a row-back trigger compares whole rows, and names no column
    assert {state.state for state in trigger_states(table)} == {TriggerCondition.CURRENT}
    run(table, 'ALTER TABLE t ALTER COLUMN "V %" SET EXPRESSION AS (a + 2)')
    assert {state.state for state in trigger_states(table) if state.name.endswith("update")} == {
        TriggerCondition.OUTDATED
    }
