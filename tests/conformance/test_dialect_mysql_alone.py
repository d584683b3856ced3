"""What MySQL has and MariaDB has not: keys that nobody asked for, vectors, its own JSON, more words that are reserved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install, uninstall
from eventlog.capture.track import track
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.schema import Catalog
from eventlog.daemon.publisher import Publisher
from eventlog.databases.mysql.dialect import MYSQL
from eventlog.refresh.chunks import Refresh
from eventlog.refresh.loads import loads
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sql.connect import connect, limit_sessions
from eventlog.sql.findlog import locate_log
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import reflect
from tests.conformance.cases import CURRENT, FIELDS, Case, asked, came, changed, check_left, states
from tests.conformance.test_rowreader_values import found
from tests.support.logged import USR, left_by, logged, run

MADE_KEY = "SET SESSION sql_generate_invisible_primary_key = ON"
KEPT = '{"a": [1, null, "ä"], "b": 1}'
CASES = {
    "a key that the server made": Case(
        made=(MADE_KEY, "CREATE TABLE t (v VARCHAR(9))", f"{MADE_KEY[:-2]} OFF"),
        left={
            "INSERT INTO t VALUES ('a')": came("my_row_id=1", v="a"),
            "UPDATE t SET v = 'b'": changed("my_row_id=1", v=("a", "b")),
        },
    ),
    "an invisible column": Case(
        made=("CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, v VARCHAR(9) INVISIBLE)",),
        left={"INSERT INTO t (k, v) VALUES (1, 'a')": came("k=1", v="a")},
    ),
    "JSON, as the server keeps it": Case(
        made=("CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, v JSON)",),
        left={
            'INSERT INTO t VALUES (1, \'{"b":1, "a":[1,null,"ä"]}\')': came("k=1", v=KEPT),
            "UPDATE t SET v = JSON_SET(v, '$.b', 1)": [],
            "UPDATE t SET v = JSON_SET(v, '$.b', 2)": changed("k=1", v=(KEPT, KEPT.replace('"b": 1', '"b": 2'))),
        },
    ),
}


@pytest.fixture
def log(mysql: Engine) -> Engine:
    """Install a log in a database."""
    install(mysql)
    return mysql


@contextmanager
def sessions(engine: Engine, command: str) -> Iterator[Engine]:
    """Open sessions of the same database with this setting."""
    made = create_engine(engine.url, connect_args={"init_command": f"SET SESSION {command}"})
    yield made
    made.dispose()


@pytest.mark.parametrize("case", CASES)
def test_what_is_left(mysql: Engine, case: str) -> None:
    check_left(mysql, CASES[case])


@pytest.mark.parametrize("setting", ["sql_generate_invisible_primary_key = ON", "sql_require_primary_key = ON"])
def test_a_log_comes_and_goes_where_every_table_must_have_a_key(mysql: Engine, setting: str) -> None:
    with sessions(mysql, setting) as engine:
        install(engine)
        run(engine, "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY)")
        track(engine, ["t"])
        assert left_by(engine, "INSERT INTO t VALUES (1)") == asked(5, "k=1")
        uninstall(engine, purge=True)
        assert [table.name for table in reflect(engine).tables] == ["t"]


def test_a_child_whose_key_the_server_made_is_named_to_be_one(log: Engine) -> None:
    run(log, MADE_KEY, *USR, f"{MADE_KEY[:-2]} OFF")
    assert reflect(log, ["usr"]).tables[0].children == ()
    track(log, ["usr"], replace(FIELDS, children=("usr_phone",)))
    added = left_by(log, "INSERT INTO usr (idu) VALUES (1)", "INSERT INTO usr_phone (idu, phoneno) VALUES (1, '22')")
    assert (1, "idu=1", "usr_phone.phoneno", None, "22") in added


def test_a_vector_is_base64_and_keeps_no_other_table_from_being_read(log: Engine) -> None:
    run(log, "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, v VECTOR(3))")
    run(log, "CREATE TABLE plain (k INTEGER NOT NULL PRIMARY KEY, v INTEGER)")
    track(log, ["t", "plain"], FIELDS)
    one, two = "AACAPwAAAEAAAEBA", "AACAPwAAAEAAAIBA"
    assert left_by(log, "INSERT INTO t VALUES (1, TO_VECTOR('[1,2,3]'))", "UPDATE t SET v = v") == came("k=1", v=one)
    assert left_by(log, "UPDATE t SET v = TO_VECTOR('[1,2,4]')") == changed("k=1", v=(one, two))
    assert found(log, "1") == [two]
    assert Catalog(reflect(log, ["t"]).tables).tables[0].columns[1].type == "VECTOR(3)"


def test_every_word_that_the_server_reserves_is_quoted(log: Engine) -> None:
    with log.connect() as connection:
        query = text("SELECT LOWER(word) FROM information_schema.keywords WHERE reserved = 1")
        words = list(connection.execute(query).scalars())
    columns = ", ".join(f'"{word}" INTEGER' for word in words if word != "external")
    run(log, f'CREATE TABLE "library" ("external" INTEGER NOT NULL PRIMARY KEY, {columns})')
    track(log, ["library"])
    run(log, 'INSERT INTO "library" ("external") VALUES (1)', 'UPDATE "library" SET "tablesample" = 2')
    assert [row[:2] for row in logged(log)] == [(5, "external=1"), (6, "external=1")]
    assert [word for word in words if MYSQL.quote(word) == word] == []


def test_a_target_takes_tables_whose_names_are_reserved_there(log: Engine) -> None:
    run(log, 'CREATE TABLE "library" (k INTEGER NOT NULL PRIMARY KEY, "external" VARCHAR(9))')
    track(log, ["library"])
    run(log, "INSERT INTO \"library\" VALUES (1, 'a')")
    url = log.url.render_as_string(hide_password=False)
    publishing = PublisherConfig(allow_loopback=True)
    with Publisher(
        Config(source=SourceConfig(url=url), publisher=publishing, output=(DatabaseOutput(url=url),))
    ) as one:
        assert one.run_once().finished == 1
    with log.connect() as connection:
        assert connection.execute(text('SELECT "external" FROM library__ct')).scalars().all() == ["a"]


def test_a_log_may_have_a_name_that_newer_servers_reserve(mysql: Engine) -> None:
    engine = connect(mysql.url.render_as_string(hide_password=False))
    names = LogNames(table="library")
    install(engine, names)
    run(engine, "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY)")
    track(engine, ["t"], names=names)
    run(engine, "INSERT INTO t VALUES (1)")
    assert states(engine, names) == CURRENT
    assert logged(engine, names) == asked(5, "k=1")
    engine.dispose()


@pytest.mark.parametrize("level, waits", [("REPEATABLE READ", True), ("READ COMMITTED", False)])
def test_after_a_statement_that_failed_others_wait_at_repeatable_read_alone(
    log: Engine, level: str, waits: bool
) -> None:
    run(
        log,
        "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY)",
        "CREATE TABLE child (k INTEGER NOT NULL PRIMARY KEY, FOREIGN KEY (k) REFERENCES t (k))",
        "INSERT INTO t VALUES (1), (2), (3)",
        "INSERT INTO child VALUES (3)",
    )
    track(log, ["t"])
    with sessions(log, f"TRANSACTION ISOLATION LEVEL {level}") as engine, engine.connect() as failing:
        with pytest.raises(DBAPIError, match="1451"):
            failing.execute(text("DELETE FROM t"))
        with sessions(log, "innodb_lock_wait_timeout = 1") as others:
            with pytest.raises(DBAPIError, match="1205") if waits else nullcontext():
                run(others, "INSERT INTO t VALUES (4)")
            failing.rollback()
            run(others, "INSERT INTO t VALUES (5)")
    assert [row[1] for row in logged(log)] == (["k=5"] if waits else ["k=4", "k=5"])


def test_a_full_load_outlasts_a_statement_that_failed(log: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The load's first try ends with error 1205; before its second one the transaction with the failed statement ends."""
    run(log, "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    track(log, ["t"])
    engine = create_engine(log.url)
    limit_sessions(engine, None, 1)
    with engine.connect() as connection:
        names = locate_log(connection, None)
    [load] = loads(engine, names, ["t"], None, None)
    work = Refresh(Log(engine, names), load)
    stands = work.begin()
    with log.connect() as failing:
        with pytest.raises(DBAPIError, match="1062"):
            failing.execute(text("INSERT INTO t VALUES (3), (1)"))
        ends = iter([lambda: None, failing.rollback])

        def enter() -> bool:
            next(ends)()
            return True

        monkeypatch.setattr(work.gate, "enter", enter)
        assert [stand.rows for stand in work.steps(stands)] == [2]
    engine.dispose()
    assert list(ends) == []
    assert [row[1] for row in logged(log)] == ["k=1", "k=2"]
