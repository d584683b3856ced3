"""Many captured tables: commands ask the database's catalog once about all of them, and not once for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, inspect
from sqlalchemy.engine import Inspector

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states, untrack
from eventlog.check.examine import check
from eventlog.check.point import PointLevel
from eventlog.config.settings import Config, SourceConfig
from eventlog.daemon.logging import library_journal
from eventlog.daemon.publisher import Publisher
from eventlog.daemon.table_watch import TableWatch
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.findlog import log_columns
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.sql.shapes import Schema
from tests.support.logged import run

FEW, MANY = 2, 9
WHOLE_SCHEMA = (
    *("get_table_names", "get_view_names", "get_multi_pk_constraint", "get_multi_foreign_keys"),
    "get_multi_columns",
)
"""Questions whose answer is as long as there are tables."""


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count each query for a whole schema."""
    counts: Counter[str] = Counter()
    for name in WHOLE_SCHEMA:
        monkeypatch.setattr(Inspector, name, counting(name, getattr(Inspector, name), counts))
    return counts


def counting(name: str, asked: Callable[..., Any], counts: Counter[str]) -> Callable[..., Any]:
    @wraps(asked)
    def count(*arguments: Any, **options: Any) -> Any:
        counts[name] += 1
        return asked(*arguments, **options)

    return count


@contextmanager
def asking(counts: Counter[str], into: list[Counter[str]]) -> Iterator[None]:
    """Collect the counts of the block."""
    counts.clear()
    yield
    into.append(Counter(counts))


@pytest.mark.in_turn
def test_the_catalog_is_asked_as_often_for_many_tables_as_for_few(
    engine: Engine, counted: Counter[str], tmp_path: Path
) -> None:
    install(engine)
    config = Config(
        source=SourceConfig(url=engine.url.render_as_string(hide_password=False)),
        output=(FilesOutput(path=str(tmp_path)),),
    )
    asked: dict[str, list[Counter[str]]] = {name: [] for name in ("track", "triggers", "check", "publisher", "untrack")}
    for number in (FEW, MANY):
        tables = [f"t{place}" for place in range(number)]
        run(engine, *(f"CREATE TABLE {table} (idu INTEGER NOT NULL PRIMARY KEY, name VARCHAR(9))" for table in tables))
        with asking(counted, asked["track"]):
            track(engine, tables)
        with asking(counted, asked["triggers"]):
            assert {state.state for state in trigger_states(engine)} == {TriggerCondition.CURRENT}
        with asking(counted, asked["check"]):
            assert not [point for point in check(lambda: config) if point.level is PointLevel.FAILURE]
        with asking(counted, asked["publisher"]), Publisher(config) as publisher:
            publisher.run_once()
        with asking(counted, asked["untrack"]):
            untrack(engine, tables)
        run(engine, *(f"DROP TABLE {table}" for table in tables))
    assert all(few.total() > 0 for few, _ in asked.values())
    assert {name: many for name, (_, many) in asked.items()} == {name: few for name, (few, _) in asked.items()}


def test_a_publisher_that_looks_at_unchanged_tables_asks_nothing_about_a_schema(
    engine: Engine, counted: Counter[str]
) -> None:
    install(engine)
    run(engine, "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY)")
    track(engine, ["usr"])
    log = Log(engine, log_columns(engine, LogNames()))
    watch = TableWatch(log, follow=False, looked=lambda *_: None, journal=library_journal())
    assert not watch.look()
    assert counted.total() > 0
    counted.clear()
    assert not watch.look()
    assert counted.total() == 0


def test_keys_are_those_of_the_schema_or_of_the_first_that_is_searched(postgresql: Engine) -> None:
    run(
        postgresql,
        "CREATE SCHEMA beside",
        'CREATE TABLE "Two" (b INTEGER, a INTEGER, "C d" TEXT, PRIMARY KEY ("C d", b) INCLUDE (a))',
        "CREATE TABLE none (a INTEGER)",
        "CREATE TABLE beside.one (z INTEGER PRIMARY KEY)",
        "CREATE TABLE parts (n INTEGER PRIMARY KEY) PARTITION BY RANGE (n)",
        "CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (9)",
    )
    expected = {"Two": ("C d", "b"), "one": ("z",), "parts": ("n",), "part": ("n",)}
    with postgresql.connect() as connection:
        connection.exec_driver_sql("CREATE TEMPORARY TABLE passing (n INTEGER PRIMARY KEY)")
        for schema, search_path in (
            (None, "public, beside"),
            (None, "beside, public"),
            ("beside", "public"),
            ("public", "beside"),
        ):
            connection.exec_driver_sql(f"SET search_path = {search_path}")
            seen = Schema(connection, schema)
            asked = inspect(connection).get_multi_pk_constraint(schema=seen.name)
            keys = {name: seen.key(name) for name in (*expected, "passing", "none") if seen.key(name)}
            assert keys == {
                name: tuple(key["constrained_columns"])
                for (_, name), key in asked.items()
                if key["constrained_columns"]
            }
            assert keys.items() <= expected.items()


def test_a_name_that_is_there_twice_but_for_its_case_is_meant_as_it_is_written(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, "CREATE TABLE usr (idu INTEGER PRIMARY KEY)", 'CREATE TABLE "USR" (idu INTEGER PRIMARY KEY)')
    for name in ("usr", "USR"):
        track(postgresql, [name])
        assert {state.owner for state in trigger_states(postgresql)} == {f"public.{name}"}
        untrack(postgresql, [name])
    assert {"usr", "USR"} <= set(inspect(postgresql).get_table_names())
