"""A trigger that cannot be made does not cost the one that stands: on every database, wherever the making breaks off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, trigger_states
from eventlog.capture.install import install
from tests.support.logged import USR, left_by, logged, run


class RefusedError(Exception):
    """What a server says that lets somebody drop a trigger and not make one."""


@contextmanager
def refusing(engine: Engine, words: str, after: int) -> Iterator[None]:
    """Statements that hold these words are refused after so many."""
    seen: list[str] = []

    def refuse(_connection: Any, _cursor: Any, sql: str, *_: Any) -> None:
        if words in sql:
            seen.append(sql)
            if len(seen) > after:
                raise RefusedError(sql)

    event.listen(engine, "before_cursor_execute", refuse)
    yield
    event.remove(engine, "before_cursor_execute", refuse)


@pytest.mark.parametrize("after", [0, 1])
def test_who_may_not_make_a_trigger_has_not_lost_the_former_one(engine: Engine, after: int) -> None:
    install(engine)
    run(engine, USR[0])
    track(engine, ["usr"])
    # MariaDB and MySQL commit each trigger by itself, and make each twice.
    made = 2 * after if engine.dialect.name == "mysql" else after
    with refusing(engine, "CREATE TRIGGER", made), pytest.raises(RefusedError):
        track(engine, ["usr"], TriggerOptions(style=Style.FIELD))
    found = {state.state for state in trigger_states(engine)}
    assert TriggerCondition.MISSING not in found
    changes = ("INSERT INTO usr VALUES (1, 'a', 'b', 3)", "UPDATE usr SET age = 4", "DELETE FROM usr")
    assert {row[1] for row in left_by(engine, *changes)} == {"idu=1"}
    assert {row[0] for row in logged(engine)} & {1, 5}, "the insert was logged by the former trigger or the new one"
    assert {row[0] for row in logged(engine)} & {2, 6}
    assert {state.state for state in track(engine, ["usr"])} == {TriggerCondition.CURRENT}


def test_a_trigger_that_was_only_tried_is_a_stray_and_goes(mariadb: Engine) -> None:
    install(mariadb)
    run(mariadb, USR[0])
    track(mariadb, ["usr"])
    with refusing(mariadb, "DROP TRIGGER", 0), pytest.raises(RefusedError):
        track(mariadb, ["usr"], TriggerOptions(style=Style.FIELD))
    assert [state.name for state in trigger_states(mariadb) if state.state is TriggerCondition.STRAY] == [
        "event_log_usr_insert_tried"
    ]
    track(mariadb, ["usr"])
    assert {state.state for state in trigger_states(mariadb)} == {TriggerCondition.CURRENT}
    assert left_by(mariadb, "INSERT INTO usr (idu) VALUES (1)") == [(5, "idu=1", None, None, None)]


def test_the_table_is_free_again_when_the_making_was_refused(mariadb: Engine) -> None:
    install(mariadb)
    run(mariadb, USR[0])
    track(mariadb, ["usr"])
    with refusing(mariadb, "CREATE TRIGGER", 0), pytest.raises(RefusedError):
        track(mariadb, ["usr"], TriggerOptions(style=Style.FIELD))
    other = create_engine(mariadb.url, connect_args={"init_command": "SET SESSION lock_wait_timeout = 1"})
    run(other, "INSERT INTO usr (idu) VALUES (1)")
    other.dispose()
    assert logged(mariadb) == [(5, "idu=1", None, None, None)]
