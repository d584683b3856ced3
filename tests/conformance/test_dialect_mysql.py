"""What only MariaDB and MySQL have: modes and time zones of sessions, collations, their types, replacing inserts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, create_engine

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, trigger_states
from eventlog.capture.install import install
from tests.support.logged import USR, Logged, left_by, logged, run
from tests.support.servers import mysqls

MODES = [
    "",
    "ANSI",
    "TRADITIONAL",
    "NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION",
]
ZONES = ["SYSTEM", "+00:00", "-11:30", "+05:30"]
JACK = "INSERT INTO usr VALUES (1, 'Jack', 'Frost', NULL)"


@pytest.fixture(params=mysqls())
def server(request: pytest.FixtureRequest) -> Engine:
    """An engine on each of the two with a log in its database."""
    found: Engine = request.getfixturevalue(request.param)
    install(found)
    return found


@contextmanager
def session(engine: Engine, modes: str = "", zone: str = "SYSTEM") -> Iterator[Engine]:
    """Sessions of the same database with settings of their own."""
    command = f"SET SESSION sql_mode = '{modes}', time_zone = '{zone}'"
    found = create_engine(engine.url, connect_args={"init_command": command})
    yield found
    found.dispose()


@pytest.mark.in_turn
@pytest.mark.parametrize("modes", MODES)
@pytest.mark.parametrize("zone", ZONES)
def test_no_mode_and_no_time_zone_changes_what_is_logged(server: Engine, modes: str, zone: str) -> None:
    run(
        server,
        "CREATE TABLE t (k CHAR(9) NOT NULL PRIMARY KEY, at TIMESTAMP(6) NULL, day DATE, on_ BOOLEAN, b BLOB, plain DATETIME)",
    )
    with session(server, modes, zone) as installer:
        track(installer, ["t"], TriggerOptions(style=Style.FIELD))
    with session(server, modes, zone) as writer, writer.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO t VALUES (%s, FROM_UNIXTIME(1742727439.25), '2025-03-23', TRUE, %s, '2025-03-23 10:57:19')",
            ('a+"\\', b"\xaa\xaa"),
        )
    key = 'k="a+\\"\\\\"'
    assert logged(server) == [
        (1, key, "at", None, "2025-03-23 10:57:19.250000000"),
        (1, key, "day", None, "2025-03-23"),
        (1, key, "on_", None, "1"),
        (1, key, "b", None, "qqo="),
        (1, key, "plain", None, "2025-03-23 10:57:19.000000000"),
    ]


@pytest.mark.parametrize("moment", [1761438600, 1761442200, 1743296400, 1])
def test_moments_of_an_hour_that_comes_twice_are_told_apart(server: Engine, moment: int) -> None:
    run(server, "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, at TIMESTAMP NULL)")
    with session(server, zone="+00:00") as clock, clock.begin() as connection:
        connection.exec_driver_sql(f"INSERT INTO t VALUES (1, FROM_UNIXTIME({moment}))")
        expected = connection.exec_driver_sql("SELECT CONCAT(at, '.000000000') FROM t").scalar()
    track(server, ["t"], TriggerOptions(style=Style.FIELD))
    # The key changes, so that the moment stays as it is: MySQL copies moments from table to table by the wall clock.
    assert left_by(server, "UPDATE t SET k = 2") == [(4, "k=1", None, None, None), (1, "k=2", "at", None, expected)]


TYPES = [
    ("BIT", "b'1'", "1"),
    ("BIT(12)", "b'101'", "5"),
    ("TINYINT(1)", "0", "0"),
    ("TINYINT", "-128", "-128"),
    ("INT(6) ZEROFILL", "42", "42"),
    ("BIGINT UNSIGNED", "18446744073709551615", "18446744073709551615"),
    ("MEDIUMINT UNSIGNED", "7", "7"),
    ("DECIMAL(10,2)", "-1.5", "-1.50"),
    ("DECIMAL(30,0)", "123456789012345678901234567890", "123456789012345678901234567890"),
    ("FLOAT", "0.5", "0.5"),
    ("DOUBLE", "0.1", "0.1"),
    ("YEAR", "2025", "2025"),
    ("DATE", "'2025-03-23'", "2025-03-23"),
    ("TIME", "'-838:59:59'", "-838:59:59"),
    ("TIME(3)", "'10:57:19.25'", "10:57:19.250"),
    ("DATETIME(6)", "'2025-03-23 10:57:19.000001'", "2025-03-23 10:57:19.000001000"),
    ("DATETIME", "'9999-12-31 23:59:59'", "9999-12-31 23:59:59.000000000"),
    ("CHAR(5)", "'ab'", "ab"),
    ("VARCHAR(9)", "'a '", "a "),
    ("VARCHAR(9) CHARACTER SET latin1", "'äß'", "äß"),
    ("TEXT CHARACTER SET utf16", "'漢😀'", "漢😀"),
    ("ENUM('good','Bad')", "'Bad'", "Bad"),
    ("SET('a','b','c')", "'c,a'", "a,c"),
    ("VARBINARY(9)", "x'00ff'", "AP8="),
    ("BINARY(3)", "x'ff'", "/wAA"),
    ("LONGBLOB", "REPEAT(x'aa', 60)", "qqqq" * 20),
    ("POINT", "ST_GeomFromText('POINT(1 2)')", "POINT(1 2)"),
    (
        "GEOMETRYCOLLECTION",
        "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2))')",
        "GEOMETRYCOLLECTION(POINT(1 2))",
    ),
]


def test_a_value_of_each_type_has_its_text(server: Engine) -> None:
    columns = {f"v{place}": one for place, one in enumerate(TYPES)}
    types = ", ".join(f"{name} {type_}" for name, (type_, _, _) in columns.items())
    run(server, f"CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, {types})")
    track(server, ["t"], TriggerOptions(style=Style.FIELD))
    came = left_by(server, f"INSERT INTO t VALUES (1, {', '.join(literal for _, literal, _ in TYPES)})")
    assert came == [(1, "k=1", name, None, told) for name, (_, _, told) in columns.items()]
    went = left_by(server, f"UPDATE t SET {', '.join(f'{name} = NULL' for name in columns)}")
    assert went == [(2, "k=1", name, told, None) for name, (_, _, told) in columns.items()]


def test_types_of_mariadb_alone(mariadb: Engine) -> None:
    install(mariadb)
    for type_, told in (("UUID", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), ("INET6", "::1")):
        run(mariadb, f"CREATE TABLE {type_}s (k {type_} NOT NULL PRIMARY KEY, v {type_})")
        track(mariadb, [f"{type_}s"], TriggerOptions(style=Style.FIELD))
        found = left_by(mariadb, f"INSERT INTO {type_}s VALUES ('{told}', '{told}')")
        assert found == [(1, f"k={told}", "v", None, told)]


CONDITIONS = ["v <> 'it''s \\'", "v <> 'ä😀 :x %s %%'", "v <> '' AND v <> ''''", "v NOT IN ('a;b', 'c -- d')"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_trigger_is_known_again_whatever_texts_stand_in_it(server: Engine, condition: str) -> None:
    run(server, "CREATE TABLE t (k VARCHAR(9) NOT NULL PRIMARY KEY, v VARCHAR(9))")
    with session(server) as usual:
        made = track(usual, ["t"], TriggerOptions(style=Style.FIELD, when=condition))
    assert {state.state for state in made} == {TriggerCondition.CURRENT}
    assert left_by(server, "INSERT INTO t VALUES ('it''s', 'a')") == [(1, 'k="it\'s"', "v", None, "a")]
    marker = _marker_of(server, "event_log_t_insert")
    run(server, "DROP TRIGGER event_log_t_insert")
    run(
        server, f"CREATE TRIGGER event_log_t_insert AFTER INSERT ON t FOR EACH ROW BEGIN DO '{marker}'; SET @a = 1; END"
    )
    assert TriggerCondition.OUTDATED in {state.state for state in trigger_states(server)}


def _marker_of(engine: Engine, trigger: str) -> str:
    """The words of a trigger's marker."""
    query = "SELECT action_statement FROM information_schema.triggers WHERE trigger_name = %s AND trigger_schema = DATABASE()"
    with engine.connect() as connection:
        told = str(connection.exec_driver_sql(query, (trigger,)).scalar_one())
    return told.partition("DO '")[2].partition("'")[0]


def test_zero_dates_are_told_and_harm_no_writer(server: Engine) -> None:
    run(server, "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, d DATE, m DATETIME, s TIMESTAMP NULL)")
    track(server, ["t"], TriggerOptions(style=Style.FIELD))
    with session(server) as lenient:
        run(lenient, "INSERT INTO t VALUES (1, 0, 0, 0)")
    zero = "0000-00-00 00:00:00.000000000"
    expected = [("d", "0000-00-00"), ("m", zero), ("s", zero)]
    assert logged(server) == [(1, "k=1", name, None, text) for name, text in expected]


def test_generated_columns_are_columns_like_others(server: Engine) -> None:
    run(
        server,
        "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, a INTEGER, v INTEGER AS (a + 1) VIRTUAL, s INTEGER AS (a + 2) STORED)",
    )
    track(server, ["t"], TriggerOptions(style=Style.FIELD))
    found = left_by(server, "INSERT INTO t (k, a) VALUES (1, 1)", "UPDATE t SET a = 5")
    assert [(row[2], row[4]) for row in found] == [
        ("a", "1"),
        ("v", "2"),
        ("s", "3"),
        ("a", "5"),
        ("v", "6"),
        ("s", "7"),
    ]


def test_what_a_collation_takes_for_equal_is_a_change_all_the_same(server: Engine) -> None:
    words = "VARCHAR(9) COLLATE utf8mb4_general_ci"
    run(server, f"CREATE TABLE t (k {words} NOT NULL PRIMARY KEY, v {words})", "INSERT INTO t VALUES ('a', 'é')")
    track(server, ["t"], TriggerOptions(style=Style.FIELD))
    changes = ("UPDATE t SET v = 'e'", "UPDATE t SET v = 'e '", "UPDATE t SET v = 'e '", "UPDATE t SET k = 'A'")
    assert left_by(server, *changes) == [
        (2, "k=a", "v", "é", "e"),
        (2, "k=a", "v", "e", "e "),
        (4, "k=a", None, None, None),
        (1, "k=A", "v", None, "e "),
    ]


REPLACED: dict[str, list[Logged]] = {
    "REPLACE INTO usr VALUES (1, 'John', NULL, 5)": [
        (4, "idu=1", None, None, None),
        (1, "idu=1", "fname", None, "John"),
        (1, "idu=1", "age", None, "5"),
    ],
    "INSERT INTO usr VALUES (1, 'John', 'x', 5) ON DUPLICATE KEY UPDATE fname = 'John'": [
        (2, "idu=1", "fname", "Jack", "John")
    ],
    "INSERT INTO usr VALUES (1, 'John', 'x', 5) ON DUPLICATE KEY UPDATE fname = 'Jack'": [],
    "INSERT IGNORE INTO usr VALUES (1, 'John', 'x', 5)": [],
}


@pytest.mark.parametrize("statement, rows", REPLACED.items(), ids=["replace", "changed", "same", "ignored"])
def test_inserts_that_meet_a_row_tell_what_they_did(server: Engine, statement: str, rows: list[Logged]) -> None:
    run(server, *USR, JACK)
    track(server, ["usr"], TriggerOptions(style=Style.FIELD))
    assert left_by(server, statement) == rows


def test_cascades_fire_no_triggers_and_the_parent_tells_enough(server: Engine) -> None:
    run(server, *USR, JACK, "INSERT INTO usr_phone VALUES (1, '22')")
    track(server, ["usr"], TriggerOptions(style=Style.FIELD))
    assert left_by(server, "DELETE FROM usr") == [(4, "idu=1", None, None, None)]


def test_a_truncated_table_tells_nothing_for_there_is_no_such_trigger(server: Engine) -> None:
    run(server, "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    track(server, ["t"])
    assert left_by(server, "TRUNCATE TABLE t") == []
