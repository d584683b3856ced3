"""What only SQLite has: REPLACE, values of any type in any column, rows without a rowid."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, text

from eventlog.capture import bodies
from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.database.mirror import Mirrors
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.tracked.options import Style, TriggerOptions
from tests.conformance.cases import FIELDS, Case, asked, came, changed, check_left, gone
from tests.support.logged import USR, left_by, logged, run

JACK = "INSERT INTO usr VALUES (1, 'Jack', 'Frost', NULL)"
REPLACE = "REPLACE INTO usr VALUES (1, NULL, 'Doe', NULL)"
CASES = {
    "an upsert": Case(
        made=(*USR, JACK),
        tables=("usr",),
        left={
            "INSERT OR IGNORE INTO usr VALUES (1, 'x', 'y', 3)": [],
            "INSERT INTO usr VALUES (1, 'John', 'x', NULL) ON CONFLICT DO UPDATE SET fname = excluded.fname": changed(
                "idu=1", fname=("Jack", "John")
            ),
        },
    ),
    "a replaced row, where triggers are not recursive": Case(
        made=(*USR, JACK), tables=("usr",), left={REPLACE: came("idu=1", lname="Doe")}
    ),
    "a replaced row that is read back": Case(
        made=(*USR, JACK), tables=("usr",), options=TriggerOptions(), left={REPLACE: asked(5, "idu=1")}
    ),
    "a column that is computed when it is read": Case(
        made=("CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, v INTEGER AS (coalesce(a, 0) + 1) VIRTUAL)",),
        left={
            "INSERT INTO t (k) VALUES (1)": came("k=1", v="1"),
            "UPDATE t SET a = 5": changed("k=1", a=(None, "5"), v=("1", "6")),
        },
    ),
    "a table without a rowid": Case(
        made=("CREATE TABLE t (k NOT NULL PRIMARY KEY, n NUMERIC, b BLOB) WITHOUT ROWID",),
        left={
            "INSERT INTO t VALUES ('a=b', 7.0, 'text')": came('k="a=b"', n="7", b="dGV4dA=="),
            "INSERT INTO t VALUES (2, NULL, NULL)": came("k=2", n=None),
        },
    ),
}
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
REALS = {"0.1": "0.1", "2.0": "2", "0.1 + 0.2": "0.30000000000000004", "'abc'": "abc"}
BLOBS = {
    "x'4A'": "Sg==",
    "x'4A61'": "SmE=",
    "x'4A6163'": "SmFj",
    "x'FFFEFDFCFB0001'": "//79/PsAAQ==",
    "x''": "",
}
WRITTEN = {
    "timestamp": TIMES,
    "timestamp with time zone": TIMES,
    "real": REALS | {"9007199254740993.0 * 3": "27021597764222976.0"},
    "blob": BLOBS,
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_left(sqlite: Engine, case: str) -> None:
    check_left(sqlite, CASES[case])


def test_replace_is_a_delete_and_an_insert_where_triggers_are_recursive(sqlite: Engine) -> None:
    install(sqlite)
    run(sqlite, *USR, JACK)
    track(sqlite, ["usr"], FIELDS)
    with sqlite.connect() as connection:
        connection.exec_driver_sql("PRAGMA recursive_triggers = ON")
        connection.execute(text(REPLACE))
        connection.commit()
    assert logged(sqlite) == [*gone("idu=1"), *came("idu=1", lname="Doe")]


def test_a_table_of_many_columns_is_logged_in_their_order(sqlite: Engine) -> None:
    install(sqlite)
    columns = [f"c{number}" for number in range(600)]  # SQLite puts no more than 500 SELECTs together
    run(sqlite, f"CREATE TABLE wide (k INTEGER PRIMARY KEY, {' TEXT, '.join(columns)} TEXT)")
    track(sqlite, ["wide"], FIELDS)
    values = ", ".join(f"'{name}'" for name in columns)
    filled = {name: name for name in columns}
    assert left_by(sqlite, f"INSERT INTO wide VALUES (1, {values})") == came("k=1", filled)
    assert left_by(sqlite, "UPDATE wide SET c599 = 'x', c3 = NULL") == changed(
        "k=1", c3=("c3", None), c599=("c599", "x")
    )
    moved = left_by(sqlite, "UPDATE wide SET k = 2, c3 = 'y'")
    assert moved == [*gone("k=1"), *came("k=2", {**filled, "c3": "y", "c599": "x"})]


def test_a_value_as_the_log_has_it(sqlite: Engine) -> None:
    install(sqlite)
    columns = {f"v{place}": sql_type for place, sql_type in enumerate(WRITTEN)}
    types = ", ".join(f"{name} {sql_type}" for name, sql_type in columns.items())
    run(sqlite, f"CREATE TABLE item (id INTEGER PRIMARY KEY, {types})")
    track(sqlite, ["item"], FIELDS)
    for name, sql_type in columns.items():
        for written, told in WRITTEN[sql_type].items():
            found = left_by(sqlite, "DELETE FROM item", f"INSERT INTO item (id, {name}) VALUES (1, {written})")
            assert [row[4] for row in found if row[0] == 1] == [told], (sql_type, written)


_keys = st.integers(1, 3)
_texts = st.sampled_from(["NULL", "'a'", "'b'", "7"])
_statements = st.one_of(
    st.builds("INSERT OR IGNORE INTO usr VALUES ({}, {}, {}, {})".format, _keys, _texts, _texts, _texts),
    st.builds("REPLACE INTO usr VALUES ({}, {}, {}, {})".format, _keys, _texts, _texts, _texts),
    st.builds("UPDATE usr SET fname = {}, age = {} WHERE idu >= {}".format, _texts, _texts, _keys),
    st.builds("UPDATE OR IGNORE usr SET idu = {}, lname = {} WHERE idu = {}".format, _keys, _texts, _keys),
    st.builds("DELETE FROM usr WHERE idu = {}".format, _keys),
)


@cache
def tracked(style: Style, together: int) -> Engine:
    """Make a database whose triggers write so many rows in one statement."""
    engine = create_engine("sqlite://")
    install(engine)
    run(engine, *USR)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "TOGETHER_ROWS", together)
        track(engine, ["usr"], TriggerOptions(style=style))
    return engine


@pytest.mark.parametrize("style", list(Style))
@given(statements=st.lists(_statements, max_size=8))
def test_rows_of_one_statement_are_those_that_one_after_the_other_writes(style: Style, statements: list[str]) -> None:
    together, apart = [
        left_by(tracked(style, count), "DELETE FROM usr", *statements) for count in (bodies.TOGETHER_ROWS, 1)
    ]
    assert together == apart


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
@pytest.mark.parametrize("style", list(Style))
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_row_that_refers_to_itself_ends_as_it_is_there(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, style: Style, action: str
) -> None:
    """SQLite follows a foreign key before it fires the trigger of the change that it follows."""
    engine: Engine = request.getfixturevalue(database)
    install(engine)
    run(
        engine,
        f"CREATE TABLE emp (id INTEGER PRIMARY KEY, code INTEGER UNIQUE, boss INTEGER REFERENCES emp (id) ON UPDATE {action},"
        f" twin INTEGER REFERENCES emp (code) ON UPDATE {action})",
    )
    track(engine, ["emp"], TriggerOptions(style=style))
    there = create_engine(f"sqlite:///{tmp_path / 'copy.db'}")
    url = engine.url.render_as_string(hide_password=False)
    output = DatabaseOutput(url=str(there.url))
    config = Config(source=SourceConfig(url=url), publisher=PublisherConfig(allow_loopback=True), output=(output,))
    rows = "INSERT INTO emp VALUES (1, 10, 1, 10), (2, 20, 1, 10)"
    with engine.connect() as connection:
        if database == "sqlite":
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
        for statement in (rows, "UPDATE emp SET id = 7 WHERE id = 1", "UPDATE emp SET code = 70 WHERE id = 7"):
            connection.exec_driver_sql(statement)
            connection.commit()
            with Publisher(config) as publisher:
                publisher.run_once()
        wanted = connection.exec_driver_sql("SELECT id, code, boss, twin FROM emp ORDER BY id").all()
    Mirrors(there, None, None).apply(["emp"])
    with there.connect() as connection:
        assert connection.exec_driver_sql("SELECT id, code, boss, twin FROM emp__mirror ORDER BY id").all() == wanted
    there.dispose()
    followed = (7, 70) if action == "CASCADE" else (None, None)
    assert wanted == [(2, 20, *followed), (7, 70, *followed)]
