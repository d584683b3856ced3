"""What a trigger cannot know is read back: who has a key that a row left, and who else has a value that goes."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, trigger_states
from eventlog.capture.install import install
from eventlog.sql.dialect import dialect_of
from tests.support.logged import Logged, left_by, logged, run, said_of

FIELDS = (Style.FIELD, Style.FIELD_REPLACE)
GONE: Logged = (4, "id=1", None, None, None)
LOOK: Logged = (5, "id=1", None, None, None)
TAG: Logged = (8, "id=1", "tag.v", None, None)
OWNER = (
    "CREATE TABLE p (id INTEGER NOT NULL PRIMARY KEY, x VARCHAR(9))",
    "CREATE TABLE tag (p INTEGER, v VARCHAR(9), once VARCHAR(9), UNIQUE (p, once), FOREIGN KEY (p) REFERENCES p (id))",
    "INSERT INTO p VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO tag VALUES (1, 'v', 'one'), (1, 'v', 'two')",
)


@pytest.fixture
def owner(engine: Engine) -> Engine:
    install(engine)
    run(engine, *OWNER)
    return engine


@pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])
@pytest.mark.parametrize("style", FIELDS)
def test_the_end_of_a_value_that_may_be_there_twice_is_read_back(owner: Engine, style: Style, rows: bool) -> None:
    """A receiver has it once, and would lose it with the first of the two."""
    track(owner, ["p"], TriggerOptions(style=style, rows=rows))
    assert sorted(left_by(owner, "DELETE FROM tag WHERE once = 'two'"), key=str) == [
        (2, "id=1", "tag.once", "two", None),
        TAG,
    ]
    assert left_by(owner, "INSERT INTO tag VALUES (1, 'v', NULL)") == [(1, "id=1", "tag.v", None, "v")]
    assert left_by(owner, "UPDATE tag SET v = 'w' WHERE once IS NULL") == [TAG, (1, "id=1", "tag.v", None, "w")]
    moved = left_by(owner, "UPDATE tag SET p = 2 WHERE once IS NULL")
    assert moved == [TAG, (1, "id=2", "tag.v", None, "w")]
    assert left_by(owner, "UPDATE tag SET v = NULL WHERE p = 2") == [(8, "id=2", "tag.v", None, None)]


def test_a_unique_index_more_or_less_makes_triggers_outdated(owner: Engine) -> None:
    track(owner, ["p"], TriggerOptions(style=Style.FIELD))
    run(owner, "DELETE FROM tag", "CREATE UNIQUE INDEX no_more ON tag (v, p)")
    states = {state.state for state in trigger_states(owner)}
    assert TriggerCondition.OUTDATED in states
    track(owner, ["p"], TriggerOptions(style=Style.FIELD))
    run(owner, "INSERT INTO tag VALUES (1, 'v', NULL)")
    assert left_by(owner, "DELETE FROM tag") == [(2, "id=1", "tag.v", "v", None)]


def test_what_is_unique_for_a_part_or_only_in_the_end_is_not_unique(postgresql: Engine) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE TABLE p (id INTEGER PRIMARY KEY)",
        "CREATE TABLE c (p INTEGER REFERENCES p, a TEXT, b TEXT, c TEXT, d TEXT, UNIQUE (p, b) DEFERRABLE, UNIQUE (p, d))",
        "CREATE UNIQUE INDEX ON c (p, a) WHERE a <> ''",
        "CREATE UNIQUE INDEX ON c (p, lower(c))",
    )
    [said] = said_of(postgresql, ["p"], TriggerOptions(style=Style.FIELD))
    assert "twice under one parent (a, b, c)" in said


@pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])
@pytest.mark.parametrize("style", [*FIELDS, Style.FIELD_BACK])
def test_a_parent_that_goes_and_comes_in_one_statement_keeps_its_children(
    postgresql: Engine, style: Style, rows: bool
) -> None:
    install(postgresql)
    run(postgresql, *OWNER)
    track(postgresql, ["p"], TriggerOptions(style=style, rows=rows))
    anew = "WITH gone AS (DELETE FROM p WHERE id = {0} RETURNING 1) INSERT INTO p SELECT {0}, 'new' FROM gone"
    found = left_by(postgresql, anew.format(1))
    assert found[:2] == [GONE, LOOK]
    assert [row[:3] for row in found[2:]] == [(7 if style is Style.FIELD_BACK else 1, "id=1", "x")]
    assert (5, "id=2", None, None, None) not in left_by(postgresql, anew.format(2))
    run(postgresql, "ALTER TABLE tag DROP CONSTRAINT tag_p_fkey")
    run(postgresql, "ALTER TABLE tag ADD FOREIGN KEY (p) REFERENCES p ON DELETE CASCADE")
    assert LOOK not in left_by(postgresql, anew.format(1))


def test_a_parent_that_a_condition_leaves_out_is_not_looked_for(postgresql: Engine) -> None:
    """What stands there now may be what the condition keeps back."""
    install(postgresql)
    run(postgresql, *OWNER)
    track(postgresql, ["p"], TriggerOptions(style=Style.FIELD, when="x <> 'secret'"))
    anew = "WITH gone AS (DELETE FROM p WHERE id = 1 RETURNING 1) INSERT INTO p SELECT 1, '{}' FROM gone"
    assert left_by(postgresql, anew.format("c"))[:2] == [GONE, LOOK]
    assert left_by(postgresql, anew.format("secret")) == [GONE]


def test_a_replaced_row_keeps_its_children(owner: Engine) -> None:
    """Where foreign keys are looked at, such a parent is refused or its children go with it."""
    dialect = dialect_of(owner)
    if dialect.transition_tables:
        return  # PostgreSQL has no REPLACE
    setting = "PRAGMA recursive_triggers = ON" if dialect.embedded else "SET foreign_key_checks = 0"
    track(owner, ["p"], TriggerOptions(style=Style.FIELD))
    with owner.connect() as connection:
        connection.exec_driver_sql(setting)
        connection.execute(text("REPLACE INTO p VALUES (1, 'new')"))
        connection.execute(text("REPLACE INTO p VALUES (2, 'new')"))
        connection.commit()
        connection.invalidate()
    came = (1, "id=2", "x", None, "new")
    assert logged(owner) == [GONE, LOOK, (1, "id=1", "x", None, "new"), (4, "id=2", None, None, None), came]


SEAT = (
    "CREATE TABLE s (id INTEGER, x TEXT, PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED)",
    "INSERT INTO s VALUES (1, 'a')",
)


@pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])
@pytest.mark.parametrize("style", [Style.FIELD, Style.ROW_BACK])
def test_a_key_that_passes_between_transactions_is_read_back(postgresql: Engine, style: Style, rows: bool) -> None:
    """The one that takes it is logged before the one that leaves it, and neither sees the other."""
    install(postgresql)
    run(postgresql, *SEAT)
    track(postgresql, ["s"], TriggerOptions(style=style, rows=rows))
    with postgresql.connect() as leaves, postgresql.connect() as takes:
        takes.execute(text("INSERT INTO s VALUES (1, 'b')"))
        leaves.execute(text("DELETE FROM s WHERE x = 'a'"))
        leaves.commit()
        takes.commit()
    came: Logged = (1, "id=1", "x", None, "b") if style is Style.FIELD else (5, "id=1", None, None, None)
    assert logged(postgresql) == [came, GONE, LOOK]


def test_rows_of_parts_that_change_keys_are_told_once(postgresql: Engine) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE TABLE s (id INTEGER, x TEXT, PRIMARY KEY (id) DEFERRABLE) PARTITION BY RANGE (id)",
        "CREATE TABLE s1 PARTITION OF s FOR VALUES FROM (0) TO (9)",
        "CREATE TABLE s2 PARTITION OF s FOR VALUES FROM (9) TO (99)",
        "CREATE TABLE u (id INTEGER PRIMARY KEY, x TEXT) PARTITION BY RANGE (id)",
        "CREATE TABLE u1 PARTITION OF u DEFAULT",
        "INSERT INTO s VALUES (1, 'a'), (2, 'b'), (11, 'c')",
        "INSERT INTO u VALUES (2, 'b'), (1, 'a')",
    )
    track(postgresql, ["s", "u"], TriggerOptions(style=Style.FIELD))
    for change in ("id = 3 - id WHERE id < 9", "id = 12 - id WHERE id IN (1, 11)"):
        found = left_by(postgresql, f"UPDATE s SET {change}")
        for kind in (1, 4, 5):
            assert len([row for row in found if row[0] == kind]) == 2, kind
    assert left_by(postgresql, "UPDATE u SET id = id + 1") == [
        (4, "id=2", None, None, None),
        (1, "id=3", "x", None, "b"),
        (4, "id=1", None, None, None),
        (1, "id=2", "x", None, "a"),
    ]
