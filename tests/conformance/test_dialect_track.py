"""Tracking is idempotent; states tell what stands against what would be made today, and what cannot be captured is refused."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, track_sql, trigger_states, untrack
from eventlog.core.errors import EventlogError, InstallError, UsageError
from eventlog.sql.dialect import dialect_of, offers
from eventlog.sql.findlog import locate_log
from eventlog.sql.names import OLD_ORDER, STANDARD, LogNames
from eventlog.tracked.classes import list_tracked
from eventlog.tracked.options import Style, TrackRequest, TriggerOptions
from tests.conformance.cases import CURRENT, FIELDS, asked, came, installed_usr, states
from tests.support.logged import USR, left_by, logged, run


@pytest.fixture
def usr(engine: Engine) -> Engine:
    return installed_usr(engine)


def test_tracking_makes_triggers_that_are_current_and_twice_is_once(usr: Engine) -> None:
    made = track(usr, ["usr"])
    assert {(state.state, state.style) for state in made} == {(TriggerCondition.CURRENT, Style.ROW_BACK)}
    assert {state.table for state in made} == {"usr", "usr_phone"}
    assert track_sql(usr, ["usr"]) == ""
    assert track(usr, ["usr"]) == made
    assert sorted(trigger_states(usr), key=str) == sorted(made, key=str)


def test_a_new_column_makes_triggers_outdated_until_they_are_tracked_again(usr: Engine) -> None:
    options = TriggerOptions(style=Style.FIELD, exclude=("age",), when="1 = 1 OR fname = '/* */ : %'")
    track(usr, ["usr"], options)
    run(usr, "ALTER TABLE usr ADD COLUMN mail VARCHAR(64)")
    assert TriggerCondition.OUTDATED in states(usr)
    track(usr, ["usr"], options)
    assert states(usr) == CURRENT
    assert left_by(usr, "INSERT INTO usr (idu, mail) VALUES (1, 'm')") == came("idu=1", mail="m")


def test_a_trigger_that_somebody_took_off_is_missing(usr: Engine) -> None:
    track(usr, ["usr"])
    on_table = " ON usr" if offers(dialect_of(usr), "instead_of_triggers") and dialect_of(usr).schemas else ""
    run(usr, f"DROP TRIGGER event_log_usr_insert{on_table}")
    missing = [state for state in trigger_states(usr) if state.state is TriggerCondition.MISSING]
    assert [(state.name, state.table) for state in missing] == [("event_log_usr_insert", "usr")]
    track(usr, ["usr"])
    assert states(usr) == CURRENT


def test_triggers_of_a_table_that_has_another_name_now_are_strays_and_keep_no_other_from_being_told(
    usr: Engine,
) -> None:
    run(usr, *(f"CREATE TABLE {name} (id INTEGER NOT NULL PRIMARY KEY, a INTEGER)" for name in ("first", "zebra")))
    track(usr, ["first", "usr", "zebra"])
    run(usr, "ALTER TABLE usr RENAME TO person")
    with usr.connect() as connection:
        assert {table.name for table in list_tracked(connection, locate_log(connection, None))} == {"first", "zebra"}
    assert states(usr) == {TriggerCondition.STRAY, TriggerCondition.CURRENT}
    untrack(usr, ["usr"])
    assert states(usr) == CURRENT


def test_untracking_takes_off_what_was_made(usr: Engine) -> None:
    track(usr, ["usr"])
    assert {"event_log_usr_insert", "event_log_usr__usr_phone_delete"} <= set(untrack(usr, ["usr"]))
    assert left_by(usr, "INSERT INTO usr (idu) VALUES (1)", "DELETE FROM usr") == []
    with pytest.raises(InstallError, match=r"^usr is not tracked for event_log\. `eventlog triggers` lists what is\.$"):
        untrack(usr, ["usr"])


def test_two_tables_whose_names_differ_in_case_are_both_tracked_where_rows_tell_them_apart(
    postgresql: Engine, mariadb: Engine
) -> None:
    ours = "CREATE TABLE usr (id INTEGER NOT NULL PRIMARY KEY, a INTEGER)"
    install(postgresql)
    run(postgresql, ours, ours.replace("usr", '"Usr"'))
    for tables in (["usr", "Usr"], ["Usr"]):
        with pytest.raises(InstallError, match=r"public.usr is tracked, and its name differs .* only in case"):
            track(postgresql, tables)
        track(postgresql, ["usr"])
    install(mariadb)
    run(mariadb, ours, ours.replace("usr", "Usr"))
    track(mariadb, ["usr", "Usr"], FIELDS)
    assert {name.removeprefix("event_log_")[:3] for name in untrack(mariadb, ["Usr"])} == {"Usr"}
    assert left_by(mariadb, "INSERT INTO Usr VALUES (1, 1)", "INSERT INTO usr VALUES (2, 2)") == came("id=2", a="2")
    assert untrack(mariadb, ["USR"]) != []


def test_two_logs_track_one_table_side_by_side(usr: Engine) -> None:
    other = LogNames(table="Own Log", columns=(*STANDARD[:7], "col", "before", "select"))
    install(usr, other, OLD_ORDER)
    track(usr, ["usr"])
    track(usr, ["usr"], FIELDS, other)
    assert (states(usr), states(usr, other)) == (CURRENT, CURRENT)
    run(usr, "INSERT INTO usr VALUES (1, 'a', NULL, NULL)")
    assert (logged(usr), logged(usr, other)) == (asked(5, "idu=1"), came("idu=1", fname="a"))
    untrack(usr, ["usr"], other)
    assert (states(usr), trigger_states(usr, other)) == (CURRENT, [])


def test_a_log_that_does_not_number_its_rows_is_refused_before_it_fails_a_writer(engine: Engine) -> None:
    start = "record_id BIGINT NOT NULL, status CHAR(1), event_type INTEGER, event_time TIMESTAMP NULL"
    texts = ", ".join(f"{name} VARCHAR(200)" for name in STANDARD[4:])
    run(engine, f"CREATE TABLE event_log ({start}, {texts})", *USR)
    install(engine)
    with pytest.raises(InstallError, match=r"event_log (does not take the rows of triggers|gives its rows no number)"):
        track(engine, ["usr"])
    assert logged(engine) == []


def test_a_log_whose_numbers_stay_empty_is_refused(sqlite: Engine) -> None:
    columns = ", ".join(STANDARD[1:])
    run(sqlite, f"CREATE TABLE event_log (record_id BIGINT PRIMARY KEY, {columns})", *USR)
    install(sqlite)
    with pytest.raises(InstallError, match=r"gives its rows no number\. Let record_id number itself"):
        track(sqlite, ["usr"])
    assert logged(sqlite) == []


REFUSED: list[tuple[list[str], TriggerOptions, str]] = [
    (["keyless"], FIELDS, "keyless has no primary key.*--child"),
    (["odd"], FIELDS, r"key column 'a\+b' of odd has a character"),
    (["nowhere"], FIELDS, "no table or view nowhere"),
    (["event_log"], FIELDS, "the log itself|no primary key"),
    (["usr"], TriggerOptions(columns=("nope",)), "usr has no column nope"),
    ([], FIELDS, "Which table"),
    (["usr"], TriggerOptions(when="nope = 1"), "cannot be asked of usr"),
    (["usr"], TriggerOptions(when="age >"), "cannot be asked of usr"),
    (["usr"], TriggerOptions(when="1 = 1) OR ("), "cannot be asked of usr"),
]


def test_what_cannot_be_captured_is_refused_with_a_sentence(usr: Engine) -> None:
    odd = dialect_of(usr).quote("a+b")
    run(usr, "CREATE TABLE keyless (a INTEGER)", f"CREATE TABLE odd ({odd} INTEGER NOT NULL PRIMARY KEY)")
    for tables, options, said in REFUSED:
        with pytest.raises((InstallError, UsageError), match=said):
            track(usr, tables, options)
    assert trigger_states(usr) == []


@pytest.mark.parametrize(
    "options, said",
    [
        (TriggerOptions(always=True), "triggers that fire for replicated changes too.* Leave out --always"),
        (
            TriggerOptions(follow_ddl=True),
            "triggers on DDL that could follow an ALTER TABLE.* set publisher.follow = true",
        ),
    ],
)
def test_what_a_database_cannot_do_is_refused_with_the_way_out(usr: Engine, options: TriggerOptions, said: str) -> None:
    if offers(dialect_of(usr), "statement_trigger"):
        assert track(usr, ["usr"], options)
        return
    with pytest.raises(EventlogError, match=said):
        track(usr, ["usr"], options)
    assert trigger_states(usr) == []


def test_there_must_be_a_log(engine: Engine) -> None:
    run(engine, *USR)
    with pytest.raises(InstallError, match=r"no event log \S*event_log in"):
        track(engine, ["usr"])


def test_a_script_makes_what_tracking_would(usr: Engine) -> None:
    script, dialect = track_sql(usr, ["usr"], FIELDS), dialect_of(usr)
    assert script.startswith(dialect.ddl.script_start)
    assert trigger_states(usr) == []
    parts = script.removeprefix(dialect.ddl.script_start).split(f"{dialect.ddl.script_end}\n\n")
    run(usr, *(part.strip() for part in parts if part.strip()))
    assert states(usr) == CURRENT
    track(usr, ["usr"])
    assert {one.style for one in trigger_states(usr)} == {Style.FIELD}


@pytest.mark.parametrize("table", LogNames().own[:-1])
def test_no_table_of_the_log_is_tracked(usr: Engine, table: str) -> None:
    with pytest.raises(InstallError, match="tracking it would never end"):
        track(usr, [table])


def test_what_is_not_tracked_in_the_end_is_not_said_to_be(usr: Engine) -> None:
    track(usr, ["usr"], FIELDS)
    said: list[str] = []
    with pytest.raises(InstallError, match="The condition 'nope > 1' cannot be asked"):
        track(usr, ["usr"], TrackRequest(when="nope > 1"), note=said.append)
    assert said == []
    track(usr, ["usr"], TrackRequest(when="age > 1"), note=said.append)
    assert [text for text in said if "it is now tracked with" in text]
