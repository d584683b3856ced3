"""A load in ranges on every database: each row once, however keys are compared, cut, broken off and gone on with."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice
from time import sleep
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from eventlog.core.errors import SourceError
from eventlog.refresh.chunks import Refresh, work_on
from eventlog.refresh.loads import RefreshPace
from eventlog.refresh.ranges import RangeState, RangeStates
from eventlog.sql.dialect import dialect_of
from eventlog.sql.log import Log
from tests.conformance.test_dialect_keys import any_text
from tests.conformance.test_refresh import COMMON, KEYS, insert, keys, load_of, marks, numbered, site
from tests.support.examples import examples
from tests.support.logged import run
from tests.support.servers import databases

COLLATED = {
    "sqlite": "VARCHAR(60) COLLATE NOCASE",
    "postgresql": 'VARCHAR(60) COLLATE "und-x-icu"',
    "mysql": "VARCHAR(60) COLLATE utf8mb4_general_ci",
}


def refresh(log: Log, chunk: int = 1, where: str | None = None) -> Refresh:
    return Refresh(log, load_of(log, where=where), RefreshPace(chunk=chunk))


def jobs_for(log: Log, jobs: int) -> int:
    """Return how many jobs may write at once."""
    return 1 if log.dialect.lone_writer else jobs


def finish(log: Log, work: Refresh, stands: RangeStates, jobs: int = 3) -> int:
    told = [sum(stand.rows for stand in stands)]
    work_on(work, stands, jobs_for(log, jobs), told.append)
    return told[-1]


def test_keys_of_every_type_are_cut_where_the_database_orders_them(engine: Engine) -> None:
    """Each range of one row, from one bound to the next."""
    log = numbered(engine, 1)
    for type_, values in (COMMON | KEYS[dialect_of(engine).name]).items():
        run(engine, "DROP TABLE t", f"CREATE TABLE t (k {type_} NOT NULL PRIMARY KEY)")
        insert(engine, [{"k": value} for value in values])
        run(engine, "DELETE FROM event_log")
        work = refresh(log)
        stands = work.begin(jobs=len(values))
        assert [stand.total for stand in stands] == [1] * len(values), type_
        assert [step.rows for step in work.steps(stands) if step.done] == [1] * len(values), type_
        assert len(set(keys(log))) == len(keys(log)) == len(values), type_


def has_icu(engine: Engine) -> bool:
    """Return True if the server has ICU's collations; the one from a wheel has none."""
    with engine.connect() as connection:
        return bool(connection.execute(text("SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'")).all())


@pytest.fixture(params=["plain", "collated"])
def words(request: pytest.FixtureRequest, engine: Engine) -> Log:
    plain = request.param == "plain"
    type_ = "VARCHAR(60)" if plain else COLLATED[dialect_of(engine).name]
    if "icu" in type_ and not has_icu(engine):
        pytest.skip("this PostgreSQL was built without ICU, and has no collation of it")
    return site(engine, f"CREATE TABLE t (w {type_} NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (w, n))")


@examples(12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    held=st.sets(st.tuples(any_text.map(str.strip).filter(bool), st.integers(-3, 3)), min_size=1, max_size=12),
    chunk=st.integers(1, 3),
    jobs=st.integers(2, 4),
)
def test_whatever_stands_in_the_keys_ranges_hold_each_once(
    words: Log, held: set[tuple[str, int]], chunk: int, jobs: int
) -> None:
    run(words.engine, "DELETE FROM t", "DELETE FROM event_log")
    distinct = {(word.lower(), number): number for word, number in held}  # what a collation takes for one key
    rows = [{"w": word, "n": place * 10 + number} for place, ((word, _), number) in enumerate(distinct.items())]
    insert(words.engine, rows)
    asked = sorted(keys(words, by_refresh=False))
    work = refresh(words, chunk)
    stands = work.begin(again=True, jobs=jobs)
    assert len(stands) == max(1, min(len(rows) // chunk, jobs * 4))
    assert list(work.steps(stands))[-1].done
    assert sorted(keys(words)) == asked
    assert marks(words) == {}


def test_keys_of_several_columns_are_cut_between_any_two(engine: Engine) -> None:
    log = site(
        engine, "CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR(9) NOT NULL, c DATE NOT NULL, PRIMARY KEY (a, b, c))"
    )
    days = ("2026-01-01", "2026-01-02")
    insert(engine, [{"a": a, "b": b, "c": c} for a in (2, 1, 10) for b in ("x", "X", "y+") for c in days])
    work = refresh(log)
    stands = work.begin(jobs=18)
    assert len(stands) == 18
    assert finish(log, work, stands) == 18
    assert sorted(keys(log)) == sorted(keys(log, by_refresh=False))


@pytest.mark.parametrize("rows, chunk, ranges", [(0, 5, 1), (4, 5, 1), (9, 5, 1), (10, 5, 2), (100, 5, 12)])
def test_small_tables_are_one_range(engine: Engine, rows: int, chunk: int, ranges: int) -> None:
    log = numbered(engine, 1)
    run(engine, "DELETE FROM t")
    if rows:
        insert(engine, [{"k": number, "v": 0} for number in range(rows)])
    work = refresh(log, chunk)
    stands = work.begin(jobs=3)
    assert len(stands) == ranges
    assert sum(stand.total for stand in stands) == rows
    assert finish(log, work, stands) == rows
    assert sorted(keys(log)) == sorted(f"k={number}" for number in range(rows))
    assert marks(log) == {}


def begun(log: Log, jobs: int = 2) -> Iterator[RangeState]:
    """Begin a load in eight ranges of five rows, and take steps in each by turns."""
    work = refresh(log, 2)
    walks = [work.write_chunks(stand) for stand in work.begin(jobs=jobs)]
    assert len(walks) == 8
    for _ in range(3):
        for walk in walks:
            yield from islice(walk, 1)


@pytest.mark.parametrize("jobs", [1, 4, 12])
@pytest.mark.parametrize("steps", [0, 7, 17, 24])
def test_each_range_goes_on_where_it_was_with_any_number_of_jobs(engine: Engine, jobs: int, steps: int) -> None:
    log = numbered(engine, 40)
    before = sum({step.place: step.rows for step in islice(begun(log), steps)}.values())
    assert len(keys(log)) == before
    work = refresh(log, 2)
    stands = work.begin(jobs=jobs)
    assert sum(stand.rows for stand in stands) == before
    assert sum(stand.total for stand in stands) == 40
    left = [stand for stand in stands if not stand.done]
    assert len(left) >= min(jobs, (40 - before) // 4)
    assert finish(log, work, stands, jobs) == 40
    assert sorted(keys(log)) == sorted(f"k={number}" for number in range(1, 41))
    assert marks(log) == {}


def test_a_new_load_forgets_the_ranges_of_the_one_before(engine: Engine) -> None:
    log = numbered(engine, 40)
    list(islice(begun(log), 9))
    work = refresh(log, 2)
    assert work.begin(again=True) == (RangeState(total=40),)
    assert list(marks(log)) == ["refresh: t"]
    list(islice(begun(log), 9))
    other = refresh(log, 2, where="k < 9").begin(jobs=2)
    assert [stand.where for stand in other] == ["k < 9"] * 4
    assert len(marks(log)) == 4


def test_ranges_of_two_loads_that_were_mixed_begin_anew(engine: Engine) -> None:
    """Both were killed: ranges of the one say nothing of what the other one has told."""
    log = numbered(engine, 40)
    first = refresh(log, 2)
    old = first.begin(jobs=2)
    second = refresh(log, 2)
    second.begin(again=True, jobs=2)
    next(iter(first.write_chunks(old[3])))
    assert refresh(log, 2).begin(jobs=2)[3] != old[3]
    assert sum(stand.rows for stand in refresh(log, 2).begin()) == 0


@pytest.mark.parametrize("database", databases()[1:])
def test_what_goes_wrong_in_one_range_ends_the_others_and_all_go_on(
    request: pytest.FixtureRequest, database: str
) -> None:
    engine: Engine = request.getfixturevalue(database)
    log = numbered(engine, 40)
    run(
        engine,
        "DELETE FROM event_log",
        "ALTER TABLE event_log ADD CONSTRAINT no CHECK (table_key <> 'k=23')",
    )
    work = refresh(log, 2)
    told: list[int] = []
    stands = work.begin(jobs=2)
    with pytest.raises(
        SourceError, match="What was written stays, and the same command continues from there"
    ) as raised:
        work_on(work, stands, 2, told.append)
    assert "event_log cannot be used" in raised.value.message
    assert len(keys(log)) == len(set(keys(log))) == told[-1]
    run(engine, "ALTER TABLE event_log DROP CONSTRAINT no")
    again = refresh(log, 2)
    assert finish(log, again, again.begin(jobs=3)) == 40
    assert sorted(keys(log)) == sorted(f"k={number}" for number in range(1, 41))


def test_who_interrupts_while_threads_are_started_waits_for_those_at_work(
    sqlite: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = numbered(sqlite, 40)
    work = refresh(log)
    told: list[int] = []
    at_work = threading.Event()

    class Interrupted(threading.Thread):
        def start(self) -> None:
            super().start()
            at_work.wait()
            raise KeyboardInterrupt

    def tell(rows: int) -> None:
        at_work.set()
        sleep(0.01)
        told.append(rows)

    monkeypatch.setattr("eventlog.refresh.chunks.Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        work_on(work, work.begin(), 1, tell)
    assert len(keys(log)) == told[-1] < 40


def test_keys_at_the_ends_of_their_type_bound_ranges_too(postgresql: Engine) -> None:
    log = site(postgresql, "CREATE TABLE t (k DATE NOT NULL PRIMARY KEY)")
    days: list[dict[str, Any]] = [{"k": f"2026-01-{day:02}"} for day in range(1, 7)]
    insert(postgresql, [*days, {"k": "infinity"}])
    work = refresh(log, 2)
    stands = work.begin(jobs=3)
    assert [stand.upto for stand in stands] == ["k=2026-01-02", "k=2026-01-04", ""]
    tied = refresh(log, 1).begin(again=True, jobs=2)
    assert tied[-1].after == "k=2026-01-06"
    run(postgresql, "DELETE FROM t WHERE k BETWEEN '2026-01-02' AND '2026-01-06'", "INSERT INTO t VALUES ('-infinity')")
    assert [stand.upto for stand in refresh(log, 1).begin(again=True, jobs=3)] == ["k=-infinity", "k=2026-01-01", ""]
