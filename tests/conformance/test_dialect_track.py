"""Tracking is idempotent and remembers what was asked; states tell what stands against what would be made today."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from eventlog.capture import (
    Style,
    TriggerCondition,
    TriggerOptions,
    track,
    track_sql,
    tracked,
    trigger_states,
    untrack,
)
from eventlog.capture.install import install, uninstall
from eventlog.capture.track import located
from eventlog.core.errors import InstallError, UsageError
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import OLD_ORDER, STANDARD, LogNames
from tests.support.logged import USR, left_by, logged, run


@pytest.fixture
def usr(engine: Engine) -> Engine:
    install(engine)
    run(engine, *USR)
    return engine


def found_states(engine: Engine, names: LogNames | None = None) -> set[TriggerCondition]:
    return {state.state for state in trigger_states(engine, names)}


def test_tracking_makes_triggers_that_are_current_and_twice_is_once(usr: Engine) -> None:
    made = track(usr, ["usr"])
    assert {state.state for state in made} == {TriggerCondition.CURRENT}
    assert {state.table for state in made} == {"usr", "usr_phone"}
    assert {state.style for state in made} == {Style.ROW_BACK}
    assert track_sql(usr, ["usr"]) == ""
    assert track(usr, ["usr"]) == made
    assert sorted(trigger_states(usr), key=str) == sorted(made, key=str)


def test_tracking_anew_replaces_what_was_asked_before(usr: Engine) -> None:
    track(usr, ["usr"])
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD_BACK, columns=("fname",)))
    states = trigger_states(usr)
    assert {state.style for state in states} == {Style.FIELD_BACK}
    assert {state.table for state in states} == {"usr"}
    assert left_by(usr, "INSERT INTO usr VALUES (1, 'a', 'b', 3)") == [(7, "idu=1", "fname", None, None)]


def test_a_new_column_makes_triggers_outdated_until_they_are_tracked_again(usr: Engine) -> None:
    options = TriggerOptions(style=Style.FIELD, exclude=("age",), when="1 = 1 OR fname = '/* */ : %'")
    track(usr, ["usr"], options)
    run(usr, "ALTER TABLE usr ADD COLUMN mail VARCHAR(64)")
    assert TriggerCondition.OUTDATED in found_states(usr)
    track(usr, ["usr"], options)
    assert found_states(usr) == {TriggerCondition.CURRENT}
    assert left_by(usr, "INSERT INTO usr (idu, mail) VALUES (1, 'm')") == [(1, "idu=1", "mail", None, "m")]


def test_a_trigger_that_somebody_took_off_is_missing(usr: Engine) -> None:
    track(usr, ["usr"])
    on_table = " ON usr" if dialect_of(usr).comments_on_triggers else ""
    run(usr, f"DROP TRIGGER event_log_usr_insert{on_table}")
    missing = [state for state in trigger_states(usr) if state.state is TriggerCondition.MISSING]
    assert [(state.name, state.table) for state in missing] == [("event_log_usr_insert", "usr")]
    track(usr, ["usr"])
    assert found_states(usr) == {TriggerCondition.CURRENT}


def test_triggers_of_a_child_that_is_none_any_more_are_strays_and_go(usr: Engine) -> None:
    track(usr, ["usr"])
    run(usr, "ALTER TABLE usr RENAME TO person")
    assert found_states(usr) == {TriggerCondition.STRAY}
    untrack(usr, ["usr"])
    assert trigger_states(usr) == []


def test_untracking_takes_off_what_was_made(usr: Engine) -> None:
    track(usr, ["usr"])
    removed = untrack(usr, ["usr"])
    assert {"event_log_usr_insert", "event_log_usr__usr_phone_delete"} <= set(removed)
    assert left_by(usr, "INSERT INTO usr (idu) VALUES (1)", "DELETE FROM usr") == []
    with pytest.raises(InstallError, match=r"^usr is not tracked for event_log\. `eventlog triggers` lists what is\.$"):
        untrack(usr, ["usr"])


def test_uninstalling_takes_the_triggers_off_too(usr: Engine) -> None:
    track(usr, ["usr"])
    uninstall(usr)
    run(usr, "INSERT INTO usr (idu) VALUES (1)")
    with usr.connect() as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM usr")).scalar() == 1


def test_what_is_tracked_is_told_as_tables(usr: Engine) -> None:
    run(usr, "CREATE TABLE other (id INTEGER NOT NULL PRIMARY KEY)")
    track(usr, ["usr"])
    with usr.connect() as connection:
        tables = tracked(connection, located(connection, None))
    assert [(table.name, len(table.children)) for table in tables] == [("usr", 1)]


def test_a_class_whose_table_has_another_name_now_keeps_no_other_from_being_told(usr: Engine) -> None:
    run(usr, *(f"CREATE TABLE {name} (id INTEGER NOT NULL PRIMARY KEY, a INTEGER)" for name in ("first", "zebra")))
    track(usr, ["first", "usr", "zebra"])
    run(usr, "ALTER TABLE usr RENAME TO person")
    with usr.connect() as connection:
        tables = tracked(connection, located(connection, None))
    assert {table.name for table in tables} == {"first", "zebra"}


def test_two_logs_track_one_table_side_by_side(usr: Engine) -> None:
    other = LogNames(table="Own Log", columns=(*STANDARD[:7], "col", "before", "select"))
    install(usr, other, OLD_ORDER)
    track(usr, ["usr"])
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD), other)
    assert (found_states(usr), found_states(usr, other)) == ({TriggerCondition.CURRENT}, {TriggerCondition.CURRENT})
    run(usr, "INSERT INTO usr VALUES (1, 'a', NULL, NULL)")
    assert logged(usr) == [(5, "idu=1", None, None, None)]
    assert logged(usr, other) == [(1, "idu=1", "fname", None, "a")]
    untrack(usr, ["usr"], other)
    assert (found_states(usr), trigger_states(usr, other)) == ({TriggerCondition.CURRENT}, [])


def test_an_adopted_log_is_written_to_by_its_own_names(engine: Engine) -> None:
    number = {"sqlite": "INTEGER PRIMARY KEY", "postgresql": "SERIAL PRIMARY KEY"}
    key = number.get(dialect_of(engine).name, "INTEGER PRIMARY KEY AUTO_INCREMENT")
    texts = ", ".join(f"{name} VARCHAR(200)" for name in ("who", "tab", "k", "c", "o", "n"))
    run(engine, f"CREATE TABLE theirs (id {key}, st CHAR(1), kind INTEGER, at TIMESTAMP NULL, {texts})", *USR)
    names = LogNames(table="theirs", columns=("id", "st", "kind", "at", "who", "tab", "k", "c", "o", "n"))
    install(engine, names)
    track(engine, ["usr"], TriggerOptions(style=Style.FIELD), names)
    run(engine, "INSERT INTO usr VALUES (1, 'a', NULL, NULL)")
    assert logged(engine, names) == [(1, "idu=1", "fname", None, "a")]


def test_a_log_that_does_not_number_its_rows_is_refused_before_it_fails_a_writer(engine: Engine) -> None:
    start = "record_id BIGINT NOT NULL, status CHAR(1), event_type INTEGER, event_time TIMESTAMP NULL"
    texts = ", ".join(f"{name} VARCHAR(200)" for name in STANDARD[4:])
    run(engine, f"CREATE TABLE event_log ({start}, {texts})", *USR)
    with pytest.raises(InstallError, match=r"event_log (does not take the rows of triggers|gives its rows no number)"):
        track(engine, ["usr"])


def test_a_log_whose_numbers_stay_empty_is_refused(sqlite: Engine) -> None:
    columns = ", ".join(STANDARD[1:])
    run(sqlite, f"CREATE TABLE event_log (record_id BIGINT PRIMARY KEY, {columns})", *USR)
    with pytest.raises(InstallError, match=r"gives its rows no number\. Let record_id number itself"):
        track(sqlite, ["usr"])
    assert logged(sqlite) == []


def test_what_cannot_be_captured_is_refused_with_a_sentence(usr: Engine) -> None:
    run(usr, "CREATE TABLE keyless (a INTEGER)")
    quoted = dialect_of(usr).quoted("a+b")
    run(usr, f"CREATE TABLE odd ({quoted} INTEGER NOT NULL PRIMARY KEY)")
    for table, words in (
        ("keyless", "keyless has no primary key.*--child"),
        ("odd", r"key column 'a\+b' of odd has a character"),
        ("nowhere", "no table or view nowhere"),
        ("event_log", "the log itself|no primary key"),
    ):
        with pytest.raises(InstallError, match=words):
            track(usr, [table])
    with pytest.raises(UsageError, match="usr has no column nope"):
        track(usr, ["usr"], TriggerOptions(columns=("nope",)))
    with pytest.raises(UsageError, match="Which table"):
        track(usr, [])
    assert trigger_states(usr) == []


def test_a_condition_with_a_mistake_is_refused_before_it_fails_a_writer(usr: Engine) -> None:
    for condition in ("nope = 1", "age >", "1 = 1) OR ("):
        with pytest.raises(InstallError, match="cannot be asked of usr"):
            track(usr, ["usr"], TriggerOptions(when=condition))
    assert trigger_states(usr) == []


def test_one_table_that_cannot_be_tracked_leaves_the_others_as_they_were(usr: Engine) -> None:
    run(usr, "CREATE TABLE keyless (a INTEGER)")
    with pytest.raises(InstallError):
        track(usr, ["usr", "keyless"])
    assert trigger_states(usr) == []


def test_there_must_be_a_log(engine: Engine) -> None:
    run(engine, *USR)
    with pytest.raises(InstallError, match=r"no event log \S*event_log in"):
        track(engine, ["usr"])


def test_a_script_makes_what_tracking_would(usr: Engine) -> None:
    script = track_sql(usr, ["usr"])
    dialect = dialect_of(usr)
    assert script.startswith(dialect.script_start)
    statements = script.removeprefix(dialect.script_start).split(f"{dialect.script_end}\n\n")
    parts = [part.strip() for part in statements if part.strip()]
    assert trigger_states(usr) == []
    run(usr, *parts)
    assert found_states(usr) == {TriggerCondition.CURRENT}
