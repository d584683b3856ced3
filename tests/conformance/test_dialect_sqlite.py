"""What only SQLite has: REPLACE, values of any type in any column, rows without a rowid."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from eventlog.sql.install import install
from eventlog.sql.triggers import Style, TriggerOptions, track
from tests.support.logged import USR, left_by, logged, run


@pytest.fixture
def usr(sqlite: Engine) -> Engine:
    install(sqlite)
    run(sqlite, *USR, "INSERT INTO usr VALUES (1, 'Jack', 'Frost', NULL)")
    track(sqlite, ["usr"], TriggerOptions(style=Style.FIELD))
    return sqlite


def test_an_upsert_is_an_update(usr: Engine) -> None:
    upsert = "INSERT INTO usr VALUES (1, 'John', 'Frost', NULL) ON CONFLICT DO UPDATE SET fname = excluded.fname"
    assert left_by(usr, upsert, "INSERT OR IGNORE INTO usr VALUES (1, 'x', 'y', 3)") == [
        (2, "idu=1", "fname", "Jack", "John")
    ]


def test_replace_is_a_delete_and_an_insert_where_triggers_are_recursive(usr: Engine) -> None:
    with usr.connect() as connection:
        connection.exec_driver_sql("PRAGMA recursive_triggers = ON")
        connection.execute(text("REPLACE INTO usr VALUES (1, NULL, 'Doe', NULL)"))
        connection.commit()
    assert logged(usr) == [(4, "idu=1", None, None, None), (1, "idu=1", "lname", None, "Doe")]


def test_replace_tells_only_what_came_where_they_are_not(usr: Engine) -> None:
    assert left_by(usr, "REPLACE INTO usr VALUES (1, NULL, 'Doe', NULL)") == [(1, "idu=1", "lname", None, "Doe")]
    track(usr, ["usr"], TriggerOptions())
    assert left_by(usr, "REPLACE INTO usr VALUES (1, 'x', NULL, NULL)") == [(5, "idu=1", None, None, None)]


def test_columns_that_are_computed_when_they_are_read_are_columns_like_others(sqlite: Engine) -> None:
    install(sqlite)
    run(sqlite, "CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, v INTEGER AS (coalesce(a, 0) + 1) VIRTUAL)")
    track(sqlite, ["t"], TriggerOptions(style=Style.FIELD))
    found = left_by(sqlite, "INSERT INTO t (k) VALUES (1)", "UPDATE t SET a = 5")
    assert [row[2:] for row in found] == [("v", None, "1"), ("a", None, "5"), ("v", "1", "6")]


def test_values_are_written_by_what_they_are(sqlite: Engine) -> None:
    install(sqlite)
    run(sqlite, "CREATE TABLE t (k NOT NULL PRIMARY KEY, r REAL, n NUMERIC, s DATETIME, b BLOB) WITHOUT ROWID")
    track(sqlite, ["t"], TriggerOptions(style=Style.FIELD))
    found = left_by(
        sqlite,
        "INSERT INTO t VALUES ('a=b', 0.1 + 0.2, 7.0, '2025-03-23T10:57:19.25', 'text')",
        "INSERT INTO t (k, r, s) VALUES (2, 1, '2025-03-23 10:57:19Z')",
    )
    assert found == [
        (1, 'k="a=b"', "r", None, "0.30000000000000004"),
        (1, 'k="a=b"', "n", None, "7"),
        (1, 'k="a=b"', "s", None, "2025-03-23 10:57:19.250000000"),
        (1, 'k="a=b"', "b", None, "text"),
        (1, "k=2", "r", None, "1"),
        (1, "k=2", "s", None, "2025-03-23 10:57:19Z"),
    ]
