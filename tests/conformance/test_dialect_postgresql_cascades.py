"""Foreign keys of PostgreSQL that act: a row that one statement changes twice, and parents that are emptied with their children."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, trigger_states
from eventlog.capture.install import install
from tests.support.logged import left_by, logged, run, said_of

FIELDS = TriggerOptions(style=Style.FIELD)
ACTS = "ON UPDATE CASCADE ON DELETE CASCADE"
SHAPES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a tree": (
        (
            f"CREATE TABLE t (tid INTEGER PRIMARY KEY, up INTEGER REFERENCES t {ACTS}, x TEXT)",
            "INSERT INTO t VALUES (1, NULL, 'a'), (2, 1, 'b'), (3, 2, 'c'), (4, 4, 'd')",
        ),
        (
            "UPDATE t SET tid = tid + 10",
            "UPDATE t SET x = 'y', tid = tid + 10 WHERE tid = 12",
            "DELETE FROM t WHERE tid = 22",
        ),
    ),
    "two keys to one parent": (
        (
            "CREATE TABLE p (pid INTEGER PRIMARY KEY)",
            f"CREATE TABLE t (tid INTEGER PRIMARY KEY, a INTEGER REFERENCES p {ACTS}, b INTEGER REFERENCES p {ACTS})",
            "INSERT INTO p VALUES (1), (2), (3)",
            "INSERT INTO t VALUES (1, 1, 2), (2, 2, 1), (3, 1, 1), (4, 3, NULL)",
        ),
        ("UPDATE p SET pid = pid + 10", "DELETE FROM p WHERE pid IN (11, 13)"),
    ),
    "one deletes, the other clears": (
        (
            "CREATE TABLE p (pid INTEGER PRIMARY KEY)",
            "CREATE TABLE t (tid INTEGER PRIMARY KEY, a INTEGER REFERENCES p ON DELETE CASCADE)",
            "ALTER TABLE t ADD b INTEGER REFERENCES p ON DELETE SET NULL",
            "INSERT INTO p VALUES (1), (2), (3)",
            "INSERT INTO t VALUES (1, 1, 2), (2, 2, 1), (3, 1, 1), (4, 3, 2)",
        ),
        ("DELETE FROM p WHERE pid < 3",),
    ),
}


def held(engine: Engine) -> dict[str, dict[str, Any]]:
    """What t holds, without its empty values."""
    with engine.connect() as connection:
        rows = [dict(row) for row in connection.execute(text("SELECT * FROM t")).mappings()]
    return {f"tid={row.pop('tid')}": {name: str(one) for name, one in row.items() if one is not None} for row in rows}


def told(engine: Engine, begin: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What somebody holds who began with that and did as the log says, believing nothing."""
    store = {key: dict(row) for key, row in begin.items()}
    for kind, key, column, old, new in logged(engine):
        if not key.startswith("tid="):
            continue
        if kind == 4:
            assert store.pop(key, None) is not None, f"{key} ends and is not there"
            continue
        assert kind == 1 or key in store, f"{key} changes and is not there"
        row = store.setdefault(key, {})
        assert column is not None
        assert kind == 1 or row.get(column) == old, f"{column} of {key} was {row.get(column)} and not {old}"
        row.pop(column, None) if new is None else row.update({column: new})
    return store


@pytest.mark.parametrize("shape", SHAPES)
def test_the_log_says_what_the_table_says(postgresql: Engine, shape: str) -> None:
    made, done = SHAPES[shape]
    install(postgresql)
    run(postgresql, *made)
    track(postgresql, ["t"], FIELDS)
    for one in done:
        before = held(postgresql)
        run(postgresql, "DELETE FROM event_log")
        run(postgresql, one)
        assert told(postgresql, before) == held(postgresql)


def test_track_chooses_row_triggers_and_says_why(postgresql: Engine) -> None:
    install(postgresql)
    run(
        postgresql,
        *SHAPES["two keys to one parent"][0],
        "CREATE TABLE o (oid INTEGER PRIMARY KEY REFERENCES p ON DELETE CASCADE)",
    )
    track(postgresql, ["p", "t", "o"])
    [said] = said_of(postgresql, ["p", "t", "o"])
    assert said == (
        "t gets row triggers, because foreign keys may change one of its rows twice when p is changed; bulk statements take"
        " longer with them."
    )
    assert "because" not in " ".join(said_of(postgresql, ["t"], TriggerOptions(rows=True)))
    with postgresql.connect() as connection:
        query = "SELECT relname, bool_or(tgtype & 1 = 1) FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
        found = connection.execute(text(f"{query} WHERE tgname LIKE 'event\\_log%' GROUP BY relname"))
        assert sorted(map(tuple, found)) == [("o", False), ("p", False), ("t", True)]


def test_a_foreign_key_that_comes_later_makes_triggers_outdated(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, "CREATE TABLE t (tid INTEGER PRIMARY KEY, up INTEGER)")
    track(postgresql, ["t"])
    run(postgresql, "ALTER TABLE t ADD FOREIGN KEY (up) REFERENCES t ON UPDATE CASCADE")
    assert TriggerCondition.OUTDATED in {state.state for state in trigger_states(postgresql)}
    track(postgresql, ["t"])
    assert {state.state for state in trigger_states(postgresql)} == {TriggerCondition.CURRENT}


@pytest.mark.parametrize("style", [Style.FIELD, Style.FIELD_REPLACE])
def test_values_of_children_are_not_told_of_parents_that_may_have_ended(postgresql: Engine, style: Style) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE TABLE p (pid INTEGER PRIMARY KEY)",
        "CREATE TABLE c (p INTEGER REFERENCES p, v TEXT, UNIQUE (p, v))",
        "INSERT INTO p VALUES (1)",
        "INSERT INTO c VALUES (1, 'x')",
    )
    track(postgresql, ["p"], TriggerOptions(style=style))
    end, came = (4, "pid=1", None, None, None), (1, "pid=1", "pid", None, "1")
    value, read = (1, "pid=1", "c.v", None, "x"), (8, "pid=1", "c.v", None, None)
    filled = ("INSERT INTO p VALUES (1)", "INSERT INTO c VALUES (1, 'x')")
    assert left_by(postgresql, "TRUNCATE p CASCADE") == [end]
    run(postgresql, *filled)
    assert left_by(postgresql, "TRUNCATE c") == [(2, "pid=1", "c.v", "x", None)]
    # Who has emptied the parent before in the same transaction has it locked still.
    assert left_by(postgresql, "TRUNCATE p CASCADE", *filled, "TRUNCATE c") == [end, came, value, read]
    run(postgresql, filled[1])
    assert left_by(postgresql, "TRUNCATE c, p") == [read, end]
