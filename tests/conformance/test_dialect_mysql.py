"""What only MariaDB and MySQL have: modes and time zones of sessions, collations, their types, replacing inserts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, create_engine

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states
from eventlog.core.errors import InstallError
from eventlog.core.schema import WHOLE_ROW
from eventlog.tracked.options import Style, TriggerOptions
from tests.conformance.cases import CURRENT, FIELDS, Case, came, changed, check_left, gone, states
from tests.support.logged import USR, left_by, logged, run
from tests.support.servers import mysqls

MODES = [
    "",
    "ANSI",
    "TRADITIONAL",
    "NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION",
]
ZONES = ["SYSTEM", "+00:00", "-11:30", "+05:30"]
TYPES = [
    ("BIT", "b'1'", "1"),
    ("BIT(12)", "b'101'", "5"),
    ("TINYINT(1)", "0", "0"),
    ("TINYINT", "-128", "-128"),
    ("INT(6) ZEROFILL", "42", "42"),
    ("BIGINT(20) ZEROFILL", "0", "0"),
    ("DECIMAL(8,2) ZEROFILL", "1.5", "1.50"),
    ("DECIMAL(8,2) ZEROFILL", "0", "0.00"),
    ("DECIMAL(65,0) ZEROFILL", "100", "100"),
    ("FLOAT ZEROFILL", "0.1", "0.1"),
    ("DOUBLE(10,3) ZEROFILL", "30.5", "30.500"),
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
    ("GEOMETRYCOLLECTION", "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2))')", "GEOMETRYCOLLECTION(POINT(1 2))"),
]
WORDS = "VARCHAR(9) COLLATE utf8mb4_general_ci"
JACK = "INSERT INTO usr VALUES (1, 'Jack', 'Frost', NULL)"
MET = "INSERT INTO usr VALUES (1, 'John', 'x', 5) ON DUPLICATE KEY UPDATE fname = "
CASES = {
    "a replaced row": Case(
        made=(*USR, JACK),
        tables=("usr",),
        left={
            "INSERT IGNORE INTO usr VALUES (1, 'John', 'x', 5)": [],
            f"{MET} 'John'": changed("idu=1", fname=("Jack", "John")),
            f"{MET} 'John' ": [],
            "REPLACE INTO usr VALUES (1, 'Joe', NULL, 5)": [*gone("idu=1"), *came("idu=1", fname="Joe", age="5")],
        },
    ),
    "a cascade fires no triggers, and the parent tells enough": Case(
        made=(*USR, JACK, "INSERT INTO usr_phone VALUES (1, '22')"),
        tables=("usr",),
        left={"DELETE FROM usr": gone("idu=1")},
    ),
    "a truncated table tells nothing": Case(
        made=("CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY)", "INSERT INTO t VALUES (1)"),
        left={"TRUNCATE TABLE t": []},
    ),
    "computed columns": Case(
        made=(
            "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, a INTEGER, v INTEGER AS (a + 1) VIRTUAL, s INTEGER AS (a + 2) STORED)",
        ),
        left={
            "INSERT INTO t (k, a) VALUES (1, 1)": came("k=1", a="1", v="2", s="3"),
            "UPDATE t SET a = 5": changed("k=1", a=("1", "5"), v=("2", "6"), s=("3", "7")),
        },
    ),
    "what a collation takes for equal": Case(
        made=(f"CREATE TABLE t (k {WORDS} NOT NULL PRIMARY KEY, v {WORDS})", "INSERT INTO t VALUES ('a', 'é')"),
        left={
            "UPDATE t SET v = 'e'": changed("k=a", v=("é", "e")),
            "UPDATE t SET v = 'e '": changed("k=a", v=("e", "e ")),
            "UPDATE t SET k = 'A'": [*gone("k=a"), *came("k=A", v="e ")],
        },
    ),
    "numbers as keys, without the zeros before them": Case(
        made=(
            "CREATE TABLE t (k INT(6) ZEROFILL, d DECIMAL(8,2) ZEROFILL, f FLOAT ZEROFILL, v INTEGER, PRIMARY KEY (k, d, f))",
        ),
        left={"INSERT INTO t VALUES (42, 1.5, 0.5, 1)": came("k=42+d=1.50+f=0.5", v="1")},
    ),
}


@pytest.fixture(params=mysqls())
def bare(request: pytest.FixtureRequest) -> Engine:
    """Return an engine on each of the two."""
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def server(bare: Engine) -> Engine:
    """Return such an engine with a log in its database."""
    install(bare)
    return bare


@contextmanager
def session(engine: Engine, modes: str = "", zone: str = "SYSTEM") -> Iterator[Engine]:
    """Open sessions of the same database with these settings."""
    command = f"SET SESSION sql_mode = '{modes}', time_zone = '{zone}'"
    found = create_engine(engine.url, connect_args={"init_command": command})
    yield found
    found.dispose()


@pytest.mark.parametrize("case", CASES)
def test_what_is_left(bare: Engine, case: str) -> None:
    check_left(bare, CASES[case])


@pytest.mark.in_turn
@pytest.mark.parametrize("modes", MODES)
@pytest.mark.parametrize("zone", ZONES)
def test_no_mode_and_no_time_zone_changes_what_is_logged(server: Engine, modes: str, zone: str) -> None:
    run(
        server,
        "CREATE TABLE t (k CHAR(9) NOT NULL PRIMARY KEY, at TIMESTAMP(6) NULL, day DATE, on_ BOOLEAN, b BLOB, plain DATETIME)",
    )
    with session(server, modes, zone) as installer:
        track(installer, ["t"], FIELDS)
    with session(server, modes, zone) as writer, writer.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO t VALUES (%s, FROM_UNIXTIME(1742727439.25), '2025-03-23', TRUE, %s, '2025-03-23 10:57:19')",
            ('a+"\\', b"\xaa\xaa"),
        )
    times = {"at": "2025-03-23 10:57:19.250000000", "plain": "2025-03-23 10:57:19.000000000"}
    told = {"at": times["at"], "day": "2025-03-23", "on_": "1", "b": "qqo=", "plain": times["plain"]}
    assert logged(server) == came('k="a+\\"\\\\"', told)


@pytest.mark.parametrize("moment", [1761438600, 1761442200, 1743296400, 1])
def test_moments_of_an_hour_that_comes_twice_are_told_apart(server: Engine, moment: int) -> None:
    run(server, "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, at TIMESTAMP NULL)")
    with session(server, zone="+00:00") as clock, clock.begin() as connection:
        connection.exec_driver_sql(f"INSERT INTO t VALUES (1, FROM_UNIXTIME({moment}))")
        expected = connection.exec_driver_sql("SELECT CONCAT(at, '.000000000') FROM t").scalar()
    track(server, ["t"], FIELDS)
    # The key changes, so that the moment stays as it is: MySQL copies moments from table to table by the wall clock.
    assert left_by(server, "UPDATE t SET k = 2") == [*gone("k=1"), *came("k=2", at=expected)]


def test_a_value_of_each_type_has_its_text(server: Engine) -> None:
    columns = {f"v{place}": one for place, one in enumerate(TYPES)}
    types = ", ".join(f"{name} {type_}" for name, (type_, _, _) in columns.items())
    run(server, f"CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, {types})")
    track(server, ["t"], FIELDS)
    inserted = left_by(server, f"INSERT INTO t VALUES (1, {', '.join(literal for _, literal, _ in TYPES)})")
    assert inserted == came("k=1", {name: told for name, (_, _, told) in columns.items()})
    cleared = left_by(server, f"UPDATE t SET {', '.join(f'{name} = NULL' for name in columns)}")
    assert cleared == changed("k=1", {name: (told, None) for name, (_, _, told) in columns.items()})


@pytest.mark.parametrize("type_, told", [("UUID", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), ("INET6", "::1")])
def test_types_of_mariadb_alone(mariadb: Engine, type_: str, told: str) -> None:
    made = (f"CREATE TABLE t (k {type_} NOT NULL PRIMARY KEY, v {type_})",)
    check_left(mariadb, Case(made=made, left={f"INSERT INTO t VALUES ('{told}', '{told}')": came(f"k={told}", v=told)}))


CONDITIONS = ["v <> 'it''s \\'", "v <> 'ä😀 :x %s %%'", "v <> '' AND v <> ''''", "v NOT IN ('a;b', 'c -- d')"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_trigger_is_known_again_whatever_texts_stand_in_it(server: Engine, condition: str) -> None:
    run(server, "CREATE TABLE t (k VARCHAR(9) NOT NULL PRIMARY KEY, v VARCHAR(9))")
    with session(server) as usual:
        made = track(usual, ["t"], replace(FIELDS, when=condition))
    assert {state.state for state in made} == CURRENT
    assert left_by(server, "INSERT INTO t VALUES ('it''s', 'a')") == came('k="it\'s"', v="a")
    query = "SELECT action_statement FROM information_schema.triggers WHERE trigger_name = %s AND trigger_schema = DATABASE()"
    with server.connect() as connection:
        body = str(connection.exec_driver_sql(query, ("event_log_t_insert",)).scalar_one())
    marker = body.partition("DO '")[2].partition("'")[0]
    other = f"AFTER INSERT ON t FOR EACH ROW BEGIN DO '{marker}'; SET @a = 1; END"
    run(server, "DROP TRIGGER event_log_t_insert", f"CREATE TRIGGER event_log_t_insert {other}")
    assert TriggerCondition.OUTDATED in states(server)


def test_zero_dates_are_told_and_harm_no_writer(server: Engine) -> None:
    run(server, "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, d DATE, m DATETIME, s TIMESTAMP NULL)")
    track(server, ["t"], FIELDS)
    with session(server) as lenient:
        run(lenient, "INSERT INTO t VALUES (1, 0, 0, 0)")
    zero = "0000-00-00 00:00:00.000000000"
    assert logged(server) == came("k=1", d="0000-00-00", m=zero, s=zero)


RENEWED = """CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, a VARCHAR(9), x VARCHAR(9),
    u DATETIME NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, day INTEGER AS (DAY(u)) STORED)"""
SPRING, NEXT_DAY = "2025-03-23 10:57:19.000000000", "2025-03-24 00:00:00.000000000"


@pytest.mark.parametrize("style", Style)
def test_an_update_that_changes_nothing_renews_no_time_of_the_log(server: Engine, style: Style) -> None:
    run(server, RENEWED, f"INSERT INTO t (k, a, u) VALUES (1, 'a', '{SPRING[:19]}')")
    track(server, ["t"], TriggerOptions(style=style, exclude=("x",)))
    for nothing in (
        "UPDATE t SET a = 'a'",
        "INSERT INTO t (k, a) VALUES (1, 'z') ON DUPLICATE KEY UPDATE a = 'a'",
        "UPDATE t SET x = NULL, a = a",
        f"UPDATE t SET u = '{SPRING[:19]}'",
    ):
        assert left_by(server, nothing) == [], nothing
    # Whoever sets the time alone changes the row, also to the time that the server would have given it.
    for something in ("UPDATE t SET u = NOW()", f"UPDATE t SET u = '{SPRING[:19]}'", "UPDATE t SET x = 'x'"):
        assert left_by(server, something), something


def test_a_renewed_time_is_told_where_the_row_is_written(server: Engine) -> None:
    run(server, RENEWED, f"INSERT INTO t (k, a, u) VALUES (1, 'a', '{SPRING[:19]}')")
    track(server, ["t"], replace(FIELDS, exclude=("x",)))
    expected = changed("k=1", u=(SPRING, NEXT_DAY), day=("23", "24"))
    assert left_by(server, f"UPDATE t SET u = '{NEXT_DAY[:19]}'") == expected
    told = left_by(server, "UPDATE t SET a = 'b'")
    with server.connect() as connection:
        stored = connection.exec_driver_sql("SELECT CONCAT(u, '.000000000') FROM t").scalar()
    assert told[:2] == changed("k=1", a=("a", "b"), u=(NEXT_DAY, stored))
    assert left_by(server, "UPDATE t SET k = 2, u = u")[0] == gone("k=1")[0]


def test_a_renewed_time_of_rows_without_a_key_and_of_child_rows(server: Engine) -> None:
    run(
        server,
        "CREATE TABLE bare (a VARCHAR(9), u DATETIME ON UPDATE CURRENT_TIMESTAMP)",
        "CREATE TABLE p (k INTEGER NOT NULL PRIMARY KEY, v INTEGER)",
        """CREATE TABLE c (k INTEGER, a VARCHAR(9), u DATETIME ON UPDATE CURRENT_TIMESTAMP,
            FOREIGN KEY (k) REFERENCES p (k))""",
        f"INSERT INTO bare VALUES ('a', '{SPRING[:19]}'), ('b', NULL)",
        "INSERT INTO p VALUES (1, 1)",
        f"INSERT INTO c VALUES (1, 'a', '{SPRING[:19]}')",
    )
    track(server, ["bare"], TriggerOptions(style=Style.IMAGE, key=(WHOLE_ROW,)))
    track(server, ["p"], FIELDS)
    assert left_by(server, "UPDATE bare SET a = a", "UPDATE c SET a = a") == []
    assert len(left_by(server, "UPDATE bare SET a = 'c' WHERE a = 'a'")) == 2
    assert left_by(server, "UPDATE c SET a = 'c', u = NULL") != []


@pytest.mark.parametrize("key", ["id, f", "id, p WITHOUT OVERLAPS"])
def test_a_key_with_a_period_is_refused_for_its_rows_would_be_lost(mariadb: Engine, key: str) -> None:
    install(mariadb)
    period = "id INTEGER, s DATE, f DATE, PERIOD FOR p (s, f)"
    run(
        mariadb,
        f"CREATE TABLE price ({period}, PRIMARY KEY ({key}))",
        f"CREATE TABLE numbered (n INTEGER AUTO_INCREMENT PRIMARY KEY, {period}, UNIQUE ({key}))",
        "CREATE TABLE versioned (n INTEGER PRIMARY KEY, v INTEGER) WITH SYSTEM VERSIONING",
    )
    with pytest.raises(InstallError, match=r"The key of price has a period of time \(f, s\)"):
        track(mariadb, ["price"])
    left: list[str] = []
    track(mariadb, ["*"], leave=left.append)
    assert len(left) == 1
    assert {state.table for state in trigger_states(mariadb)} == {"numbered", "versioned"}
    run(mariadb, "INSERT INTO numbered (id, s, f) VALUES (1, '2024-01-01', '2025-01-01')", "DELETE FROM event_log")
    cut = "DELETE FROM numbered FOR PORTION OF p FROM '2024-03-01' TO '2024-04-01'"
    assert [row[:2] for row in left_by(mariadb, cut)] == [(5, "n=2"), (5, "n=3"), (4, "n=1")]
