"""Partitioned tables of PostgreSQL: rows that move, partitions that come and go, and what no trigger sees of them."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, track_sql, trigger_states
from eventlog.capture.install import install
from eventlog.sql.reflect import reflect
from tests.support.logged import Logged, left_by, run

both = pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])
FIRST = "INSERT INTO t VALUES (1, 'a', 'x')"
THIRD = "CREATE TABLE tc (x TEXT, region TEXT NOT NULL, gone INTEGER, id INTEGER NOT NULL, PRIMARY KEY (id, region))"
"""A partition whose columns stand in another order, and which has lost one."""


@pytest.fixture
def table(postgresql: Engine) -> Engine:
    """A table in two partitions, and a third one that is not attached yet."""
    install(postgresql)
    run(
        postgresql,
        "CREATE TABLE t (id INTEGER, region TEXT, x TEXT, PRIMARY KEY (id, region)) PARTITION BY LIST (region)",
        "CREATE TABLE ta PARTITION OF t FOR VALUES IN ('a')",
        "CREATE TABLE tb PARTITION OF t FOR VALUES IN ('b') PARTITION BY RANGE (id)",
        "CREATE TABLE tb1 PARTITION OF tb FOR VALUES FROM (0) TO (10)",
        THIRD,
        "ALTER TABLE tc DROP COLUMN gone",
    )
    return postgresql


def followed(engine: Engine, style: Style, rows: bool) -> Engine:
    track(engine, ["t"], TriggerOptions(style=style, rows=rows))
    return engine


def moved(style: Style, gone: str, came: str, value: str) -> list[Logged]:
    arrival: Logged = (5, came, None, None, None) if style is Style.ROW_BACK else (1, came, "x", None, value)
    return [(4, gone, None, None, None), arrival]


@both
@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD])
def test_a_row_that_moves_to_another_partition_leaves_and_comes(table: Engine, style: Style, rows: bool) -> None:
    run(followed(table, style, rows), FIRST)
    found = left_by(table, "UPDATE t SET region = 'b', x = 'y'")
    assert found == moved(style, "id=1+region=a", "id=1+region=b", "y")


@both
def test_a_merge_that_moves_a_row_is_told_too(table: Engine, rows: bool) -> None:
    """Statement triggers see nothing of it, in any version: so a table with partitions has row triggers."""
    with table.connect() as connection:
        if int(connection.execute(text("SHOW server_version_num")).scalar_one()) < 150_000:
            pytest.skip("MERGE came with PostgreSQL 15")
    run(followed(table, Style.FIELD, rows), FIRST)
    merge = "MERGE INTO t USING (VALUES (1)) AS come (id) ON t.id = come.id WHEN MATCHED THEN UPDATE SET region = 'b'"
    assert left_by(table, merge) == moved(Style.FIELD, "id=1+region=a", "id=1+region=b", "x")


def test_tracking_it_twice_is_once_and_the_triggers_say_what_they_are(table: Engine) -> None:
    made = track(table, ["t"])
    assert track_sql(table, ["t"]) == ""
    assert trigger_states(table) == made
    assert {state.state for state in made} == {TriggerCondition.CURRENT}


def test_a_child_table_may_be_the_one_that_has_partitions(table: Engine) -> None:
    run(
        table,
        "CREATE TABLE usr (idu INTEGER PRIMARY KEY)",
        "CREATE TABLE usr_tag (idu INTEGER REFERENCES usr, tag TEXT, UNIQUE (idu, tag)) PARTITION BY LIST (tag)",
        "CREATE TABLE usr_tag_1 PARTITION OF usr_tag FOR VALUES IN ('x', 'y')",
        "INSERT INTO usr VALUES (1)",
    )
    track(table, ["usr"], TriggerOptions(style=Style.FIELD))
    assert left_by(table, "INSERT INTO usr_tag VALUES (1, 'x')") == [(1, "idu=1", "usr_tag.tag", None, "x")]
    assert left_by(table, "UPDATE usr_tag_1 SET tag = 'y'") == [
        (2, "idu=1", "usr_tag.tag", "x", None),
        (1, "idu=1", "usr_tag.tag", None, "y"),
    ]


def test_the_parent_of_a_child_table_may_have_partitions(table: Engine) -> None:
    run(table, "CREATE TABLE word (id INTEGER, region TEXT, w TEXT, FOREIGN KEY (id, region) REFERENCES t)", FIRST)
    track(table, ["t"], TriggerOptions(style=Style.FIELD))
    assert left_by(table, "INSERT INTO word VALUES (1, 'a', 'z')") == [(1, "id=1+region=a", "word.w", None, "z")]


def test_partitions_are_no_classes_of_their_own_unless_somebody_names_one(table: Engine) -> None:
    assert [found.name for found in reflect(table) if not found.name.startswith("event_log")] == ["t", "tc"]
    track(table, ["tb1"])
    assert left_by(table, "INSERT INTO t VALUES (1, 'b', 'x')") == [(5, "id=1+region=b", None, None, None)]


@both
def test_what_is_attached_is_captured_from_then_on_and_what_is_detached_no_longer(table: Engine, rows: bool) -> None:
    followed(table, Style.FIELD, rows)
    fill = "INSERT INTO tc (id, region, x) VALUES (7, 'c', 'q')"
    assert left_by(table, fill, "ALTER TABLE t ATTACH PARTITION tc FOR VALUES IN ('c')") == []
    assert left_by(table, "UPDATE t SET x = 'w'") == [(2, "id=7+region=c", "x", "q", "w")]
    assert left_by(table, FIRST, "UPDATE t SET region = 'c' WHERE id = 1")[1:] == moved(
        Style.FIELD, "id=1+region=a", "id=1+region=c", "x"
    )
    assert {state.state for state in trigger_states(table)} == {TriggerCondition.CURRENT}
    assert left_by(table, "ALTER TABLE t DETACH PARTITION tc", "UPDATE tc SET x = 'v'", "DROP TABLE tc") == []
    assert {state.state for state in trigger_states(table)} == {TriggerCondition.CURRENT}


@both
def test_who_writes_to_a_partition_is_seen_and_who_empties_it_is_not(table: Engine, rows: bool) -> None:
    run(followed(table, Style.FIELD, rows), "INSERT INTO t VALUES (1, 'b', 'x')")
    assert left_by(table, "UPDATE tb1 SET x = 'y'") == [(2, "id=1+region=b", "x", "x", "y")]
    assert left_by(table, "TRUNCATE tb1") == []


@both
def test_a_truncated_table_tells_the_rows_of_all_its_partitions(table: Engine, rows: bool) -> None:
    run(followed(table, Style.FIELD, rows), FIRST, "INSERT INTO t VALUES (1, 'b', 'x')")
    gone = [(4, f"id=1+region={region}", None, None, None) for region in "ab"]
    assert sorted(left_by(table, "TRUNCATE t"), key=str) == gone
