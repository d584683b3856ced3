"""The full load on every database: each row once, under the key that triggers write, from wherever it was broken off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track, untrack
from eventlog.core.errors import DataError, InstallError, SourceError, UsageError
from eventlog.core.schema import Column, Table
from eventlog.core.tablekey import parse
from eventlog.databases.postgresql.dialect import POSTGRESQL
from eventlog.refresh.chunks import Refresh
from eventlog.refresh.key_order import KeyOrder
from eventlog.refresh.loads import Load, RefreshPace, loads
from eventlog.refresh.ranges import RangeState
from eventlog.sources.marks import Marks
from eventlog.sql.connect import limit_sessions
from eventlog.sql.dialect import dialect_of
from eventlog.sql.findlog import locate_log
from eventlog.sql.log import Log
from eventlog.tracked.options import TriggerOptions
from tests.conformance.test_dialect_keys import any_text
from tests.support.examples import examples
from tests.support.logged import run

COMMON: dict[str, list[Any]] = {
    "INTEGER": [-5, 0, 3, 20, 100],
    "VARCHAR(20)": ["a", "A", "b c", "+", 'quote"d', "back\\slash", "it's", "ä", " x", "100%"],
    "DECIMAL(12,3)": ["-1.500", "0.001", "2", "10.25", "123456789.125"],
    "DATE": ["1999-12-31", "2000-01-01", "2026-02-03"],
}
KEYS: dict[str, dict[str, list[Any]]] = {
    "sqlite": {"BLOB": [b"\x01", b"\xff\x00"], "TIMESTAMP": ["2026-02-03 04:05:06.7", "2026-02-04 00:00:00"]},
    "postgresql": {
        "BYTEA": [b"\x01", b"\xff\x00"],
        "TIMESTAMP": ["2026-02-03 04:05:06.789012", "2026-02-03 04:05:06.789013"],
        "TIMESTAMPTZ": ["2026-02-03 04:05:06+02", "2026-02-03 04:05:06+00"],
        "UUID": ["00000000-0000-0000-0000-00000000000a", "f0000000-0000-0000-0000-000000000000"],
        "REAL": ["0.1", "0.2", "16777216"],
        "DOUBLE PRECISION": ["0.1", "0.30000000000000004", "1e300"],
        "INTERVAL": ["1 day", "2 hours", "1 year"],
        "BOOLEAN": ["false", "true"],
    },
    "mysql": {
        "VARBINARY(9)": [b"\x01", b"\xff\x00"],
        "DATETIME(6)": ["2026-02-03 04:05:06.789012", "2026-02-03 04:05:06.789013"],
        "TIMESTAMP(6)": ["2026-02-03 04:05:06.5", "2026-02-03 04:05:07"],
        "DOUBLE": ["0.1", "0.30000000000000004", "1e30"],
        "BIGINT UNSIGNED": ["1", "18446744073709551615"],
        "TIME(3)": ["00:00:01.5", "23:59:59"],
    },
}


def site(engine: Engine, *ddl: str, **options: Any) -> Log:
    """Make a log, and a tracked table t."""
    install(engine)
    run(engine, *ddl)
    track(engine, ["t"], TriggerOptions(**options))
    with engine.connect() as connection:
        return Log(engine, locate_log(connection, None))


def load_of(log: Log, table: str = "t", where: str | None = None) -> Load:
    [load] = loads(log.engine, log.names, [table], None, where)
    return load


def insert(engine: Engine, rows: list[dict[str, Any]]) -> None:
    names = ", ".join(rows[0])
    binds = ", ".join(f":{name}" for name in rows[0])
    with engine.begin() as connection:
        connection.execute(text(f"INSERT INTO t ({names}) VALUES ({binds})"), rows)


def keys(log: Log, *, by_refresh: bool = True) -> list[str]:
    same = "=" if by_refresh else "<>"
    sql = (
        f"SELECT table_key FROM event_log WHERE coalesce(perpetrator, '') {same} 'eventlog refresh' ORDER BY record_id"
    )
    with log.engine.connect() as connection:
        return [str(key) for (key,) in connection.execute(text(sql))]


def marks(log: Log) -> dict[str, str]:
    with log.transaction() as connection:
        return {name: value for name, value in Marks(log).all(connection).items() if name.startswith("refresh")}


def whole(log: Log, chunk: int = 3, where: str | None = None) -> RangeState:
    work = Refresh(log, load_of(log, where=where), RefreshPace(chunk=chunk))
    return list(work.steps(work.begin()))[-1]


def test_each_row_is_asked_for_once_under_the_key_that_triggers_write(engine: Engine) -> None:
    own = KEYS[dialect_of(engine).name]
    install(engine)
    with engine.connect() as connection:
        log = Log(engine, locate_log(connection, None))
    for type_, values in (COMMON | own).items():
        run(engine, f"CREATE TABLE t (k {type_} NOT NULL PRIMARY KEY, v INTEGER)")
        track(engine, ["t"], TriggerOptions())
        insert(engine, [{"k": value, "v": 1} for value in values])
        for chunk in (1, 2, 100):
            assert whole(log, chunk).rows == len(values), type_
            assert sorted(keys(log)) == sorted(keys(log, by_refresh=False)), type_
            run(engine, "DELETE FROM event_log WHERE perpetrator = 'eventlog refresh'")
        run(engine, "DELETE FROM event_log")
        untrack(engine, ["t"])
        run(engine, "DROP TABLE t")


@pytest.fixture
def words(engine: Engine) -> Log:
    return site(engine, "CREATE TABLE t (w VARCHAR(60) NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (w, n))")


@examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    held=st.sets(st.tuples(any_text.filter(bool), st.integers(-3, 3)), min_size=1, max_size=8), chunk=st.integers(1, 4)
)
def test_whatever_stands_in_the_keys_none_is_left_out(words: Log, held: set[tuple[str, int]], chunk: int) -> None:
    run(words.engine, "DELETE FROM t", "DELETE FROM event_log")
    insert(words.engine, [{"w": word, "n": number} for word, number in held])
    assert whole(words, chunk).rows == len(held)
    assert sorted(parse(key).parts for key in keys(words)) == sorted((("w", w), ("n", str(n))) for w, n in held)


def numbered(engine: Engine, count: int = 10, **options: Any) -> Log:
    log = site(engine, "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, v INTEGER)", **options)
    insert(engine, [{"k": number, "v": number % 3} for number in range(1, count + 1)])
    return log


@contextmanager
def impatient(log: Log) -> Iterator[Log]:
    """Open the same log in sessions with a lock timeout of a second at most."""
    engine = create_engine(log.engine.url, connect_args={"timeout": 0.1} if log.dialect.lone_writer else {})
    if not log.dialect.lone_writer:
        limit_sessions(engine, None, 1)
    yield Log(engine, log.names)
    engine.dispose()


@pytest.mark.in_turn
@pytest.mark.parametrize("waits", [2, 3])
def test_a_stretch_that_somebody_locks_out_is_tried_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, waits: int
) -> None:
    """Somebody holds the mark of the load, until a stretch has been tried so often."""
    monkeypatch.setattr("eventlog.refresh.chunks.LOCK_TRIES", 3)
    log = numbered(engine)
    with impatient(log) as hurried, engine.connect() as other:
        work = Refresh(hurried, load_of(log), RefreshPace(chunk=4))
        steps = work.steps(work.begin())
        next(steps)
        other.execute(text("UPDATE event_log_mark SET value = value WHERE name = 'refresh: t'"))
        tried = 0

        def enter() -> bool:
            nonlocal tried
            if tried == waits:
                other.rollback()
            tried += 1
            return True

        monkeypatch.setattr(work.gate, "enter", enter)
        with nullcontext() if waits < 3 else pytest.raises(SourceError) as refused:
            list(steps)
    assert refused is None or refused.value.may_pass
    assert tried == (4 if waits < 3 else 3)
    assert len(keys(log)) == (10 if waits < 3 else 4)


def test_it_begins_anew_when_asked_or_when_other_rows_are_meant(engine: Engine) -> None:
    log = numbered(engine)
    first = Refresh(log, load_of(log), RefreshPace(chunk=3))
    next(first.steps(first.begin()))
    assert first.begin(again=True) == (RangeState(total=10),)
    assert Refresh(log, load_of(log, where="k < 3")).begin() == (RangeState(where="k < 3", total=2),)
    with log.transaction() as connection:
        Marks(log).set(connection, "refresh: t", "{")
    with pytest.raises(DataError, match="'refresh: t' cannot be read"):
        first.begin()


def test_conditions_of_the_caller_and_of_the_triggers_hold_together(engine: Engine) -> None:
    log = numbered(engine, when="v <> 0")
    assert load_of(log).when == "v <> 0"
    assert whole(log).total == 7
    assert keys(log) == [f"k={number}" for number in (1, 2, 4, 5, 7, 8, 10)]
    whole(log, where="t.k > 6 OR k = 1 AND ':x' <> '%'")
    assert keys(log)[7:] == ["k=1", "k=7", "k=8", "k=10"]


def test_it_waits_while_too_many_rows_wait(engine: Engine) -> None:
    log = numbered(engine, 9)
    run(engine, "DELETE FROM event_log")
    told: list[int] = []

    def publish(_: float) -> None:
        told.append(len(keys(log)))
        run(engine, "UPDATE event_log SET status = 'S'")

    work = Refresh(log, load_of(log), RefreshPace(chunk=2, backlog=3), pause=publish)
    assert list(work.steps(work.begin()))[-1].rows == 9
    assert told == [4, 8]


def test_rows_of_one_object_in_a_view_are_one(sqlite: Engine) -> None:
    log = numbered(sqlite, 6)
    run(sqlite, "CREATE VIEW view_t AS SELECT v AS pk_v, k AS mv_k FROM t UNION ALL SELECT NULL, 7")
    load = load_of(log, "view_t")
    assert not load.tracked
    work = Refresh(log, load, RefreshPace(chunk=4))
    list(work.steps(work.begin()))
    assert sorted(set(keys(log))) == ["pk_v=0", "pk_v=1", "pk_v=2"]


def test_a_condition_that_cannot_be_asked_is_the_callers_mistake(engine: Engine) -> None:
    log = numbered(engine)
    for where in ("nosuch = 1", "k <"):
        with pytest.raises(UsageError, match=f"The condition '{where}' cannot be asked of t"):
            Refresh(log, load_of(log, where=where)).begin()


def test_a_key_that_cannot_be_asked_for_ends_it_with_its_name() -> None:
    table = Table(name="t", columns=(Column(name="k", type="integer", key=1),))
    with pytest.raises(DataError, match="Rows after the row k=word of t cannot be asked for"):
        KeyOrder(POSTGRESQL, table, "r").parameters("k=word")


@pytest.mark.parametrize(
    "table, complaint", [("nosuch", "no table or view nosuch"), ("free", "free has no primary key")]
)
def test_what_has_no_rows_or_no_key_is_refused(engine: Engine, table: str, complaint: str) -> None:
    log = numbered(engine)
    run(engine, "CREATE TABLE free (v INTEGER)")
    with pytest.raises(InstallError, match=complaint):
        load_of(log, table)
