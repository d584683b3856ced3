"""Triggers are made, told of and removed; one that cannot be made costs neither the one that stands nor whoever writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, text

from eventlog.capture import log_tables
from eventlog.capture.install import install, uninstall
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states, untrack
from eventlog.cli.main import exit_code
from eventlog.core.errors import EX_TRY_AGAIN, EX_USAGE, OK, SourceError
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.conformance.event_logs import LogTable
from tests.support.logged import USR, left_by, logged, run
from tests.support.servers import databases


def test_triggers_that_are_made_and_removed_are_told(sqlite: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    install(sqlite)
    LogTable(sqlite).run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40))")
    where = ("--database", str(sqlite.url), "--json")
    assert exit_code(["track", "usr", *where]) == OK
    made = json.loads(capsys.readouterr().out)
    assert {one["state"] for one in made} == {"CURRENT"}
    assert {one["table"] for one in made} == {"usr"}
    assert exit_code(["triggers", *where]) == OK
    assert {one["name"] for one in json.loads(capsys.readouterr().out)} == {one["name"] for one in made}
    assert exit_code(["untrack", "usr", "--yes", *where]) == OK
    assert sorted(json.loads(capsys.readouterr().out)["removed"]) == sorted(one["name"] for one in made)


def test_options_stay_until_they_are_said_anew(sqlite: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    install(sqlite)
    LogTable(sqlite).run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40), salary INTEGER)")
    where = ("--database", str(sqlite.url))

    def asked(*words: str) -> str:
        assert exit_code(["track", *words, *where]) == OK
        told = capsys.readouterr().err  # how the options changed; the triggers themselves are the report
        assert exit_code(["triggers", "--json", *where]) == OK
        (found,) = {one["asked"] for one in json.loads(capsys.readouterr().out)}
        assert (found in told) == ("usr" in told and "tracked" in told)
        return str(found)

    assert asked("usr", "--exclude", "salary", "--events", "field") == "--events field --exclude salary"
    assert asked("usr") == "--events field --exclude salary"
    assert asked("--all") == "--events field --exclude salary"
    assert asked("usr", "--when", "salary > 1") == "--events field --exclude salary --when 'salary > 1'"
    assert asked("usr", "--when", "", "--exclude", "", "--row-triggers") == "--events field --row-triggers"
    assert asked("usr", "--reset") == "--events row-back"
    assert exit_code(["triggers", *where]) == OK
    assert "tracked with" in capsys.readouterr().out
    assert exit_code(["track", "usr", "--all", *where]) == EX_USAGE
    assert "leave out the names" in capsys.readouterr().err
    assert exit_code(["track", *where]) == EX_USAGE


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


@pytest.fixture(params=[name for name in databases() if name != "sqlite"])
def usr(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """A tracked table on each server; whoever changes it waits for a second."""
    engine: Engine = request.getfixturevalue(request.param)
    install(engine)
    run(engine, USR[0])
    track(engine, ["usr"])
    monkeypatch.setattr(log_tables, "DDL_LOCK_SECONDS", 1)
    return engine


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "change",
    [
        lambda engine: track(engine, ["usr"], TriggerOptions(style=Style.FIELD)),
        lambda engine: untrack(engine, ["usr"]),
        lambda engine: uninstall(engine, LogNames(), purge=True),
    ],
    ids=["track", "untrack", "uninstall"],
)
def test_a_table_that_is_in_use_is_not_waited_for_for_ever(usr: Engine, change: Callable[[Engine], object]) -> None:
    with usr.connect() as writer:
        writer.execute(text("INSERT INTO usr (idu) VALUES (1)"))
        with pytest.raises(SourceError, match="did not come within 1 s") as told:
            change(usr)
        assert (told.value.may_pass, told.value.exit_code) == (True, EX_TRY_AGAIN)
        writer.commit()
    assert {state.state for state in trigger_states(usr)} == {TriggerCondition.CURRENT}
    run(usr, "INSERT INTO usr (idu) VALUES (2)")
    assert [row[:2] for row in logged(usr)] == [(5, "idu=1"), (5, "idu=2")]
    change(usr)


def test_a_session_waits_for_locks_as_before_when_it_is_done(usr: Engine) -> None:
    asked = {"postgresql": "SHOW lock_timeout", "mysql": "SELECT @@lock_wait_timeout = @@GLOBAL.lock_wait_timeout"}
    with usr.connect() as connection:
        before = connection.execute(text(asked[usr.dialect.name])).scalar()
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD_BACK))
    with usr.connect() as connection:
        assert connection.execute(text(asked[usr.dialect.name])).scalar() == before
