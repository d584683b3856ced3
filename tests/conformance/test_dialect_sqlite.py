"""What only SQLite has: REPLACE, values of any type in any column, rows without a rowid."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from eventlog.capture import Style, TriggerOptions, track, trigger_states
from eventlog.capture.install import install
from eventlog.core.errors import EventlogError
from tests.support.logged import USR, left_by, logged, run

CONDITION = (
    "The condition 'nosuch > 1' cannot be asked of usr: no such column: nosuch."
    " Write it with the names of the table's columns, bare or with the table's own name before them."
)
SYNTAX = 'near ")": syntax error'


@pytest.fixture
def usr(sqlite: Engine) -> Engine:
    install(sqlite)
    run(sqlite, *USR, "INSERT INTO usr VALUES (1, 'Jack', 'Frost', NULL)")
    track(sqlite, ["usr"], TriggerOptions(style=Style.FIELD))
    return sqlite


@pytest.mark.parametrize(
    "options, said",
    [
        (
            TriggerOptions(always=True),
            (
                "sqlite has no triggers that fire for replicated changes too."
                " Leave out --always, and track the tables on the server where they are written."
            ),
        ),
        (
            TriggerOptions(follow_ddl=True),
            (
                "sqlite has no triggers on DDL that could follow an ALTER TABLE."
                " Leave out --follow-ddl, and set publisher.follow = true."
            ),
        ),
        (TriggerOptions(when="nosuch > 1"), CONDITION),
        (
            TriggerOptions(when="fname >"),
            CONDITION.replace("nosuch > 1", "fname >").replace("no such column: nosuch", SYNTAX),
        ),
    ],
)
def test_what_it_cannot_do_is_refused_with_the_way_out(usr: Engine, options: TriggerOptions, said: str) -> None:
    before = trigger_states(usr)
    with pytest.raises(EventlogError) as told:
        track(usr, ["usr"], options)
    assert str(told.value) == said
    assert trigger_states(usr) == before


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


TIMES = {
    "'2025-03-23T10:57:19'": "2025-03-23 10:57:19.000000000",
    "'2025-03-23 10:57:19'": "2025-03-23 10:57:19.000000000",
    "'2025-03-23 10:57:19.'": "2025-03-23 10:57:19.000000000",
    "'2025-03-23 10:57:19.25'": "2025-03-23 10:57:19.250000000",
    "'2025-03-23 10:57:19.1234567891'": "2025-03-23 10:57:19.123456789",
    "'2025-03-23 10:57:19Z'": "2025-03-23 10:57:19Z",
    "'2025-03-23T10:57:19.25+02'": "2025-03-23T10:57:19.25+02",
    "'2025-03-23 10:57:19,5'": "2025-03-23 10:57:19,5",
    "'2025-03-23 10:57'": "2025-03-23 10:57",
    "'soon'": "soon",
    "20250323": "20250323",
}
WRITTEN = {
    "timestamp": TIMES,
    "timestamp with time zone": TIMES,
    "real": {
        "0.1": "0.1",
        "2.0": "2",
        "0.1 + 0.2": "0.30000000000000004",
        "'abc'": "abc",
        "9007199254740993.0 * 3": "27021597764222976.0",
    },
    "blob": {
        "x'4A'": "Sg==",
        "x'4A61'": "SmE=",
        "x'4A6163'": "SmFj",
        "x'FFFEFDFCFB0001'": "//79/PsAAQ==",
        "x''": "",
    },
}


def test_a_value_as_the_log_has_it(sqlite: Engine) -> None:
    install(sqlite)
    columns = {f"v{place}": sql_type for place, sql_type in enumerate(WRITTEN)}
    types = ", ".join(f"{name} {sql_type}" for name, sql_type in columns.items())
    run(sqlite, f"CREATE TABLE item (id INTEGER PRIMARY KEY, {types})")
    track(sqlite, ["item"], TriggerOptions(style=Style.FIELD))
    for name, sql_type in columns.items():
        for written, told in WRITTEN[sql_type].items():
            found = left_by(sqlite, "DELETE FROM item", f"INSERT INTO item (id, {name}) VALUES (1, {written})")
            assert [row[4] for row in found if row[0] == 1] == [told], (sql_type, written)
