"""Triggers that fire for replicated changes too, where a database has such."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.admin.check.triggers import trigger_points
from eventlog.capture import TrackRequest, TriggerCondition, TriggerOptions, track, trigger_states
from eventlog.capture.install import install
from eventlog.core.errors import UsageError
from eventlog.sql.names import LogNames
from tests.support.logged import USR, logged, run

ALWAYS = TriggerOptions(always=True)
REPLICA = "SET LOCAL session_replication_role = replica"


@pytest.mark.parametrize("rows", [False, True])
def test_a_replicated_change_is_logged_by_triggers_that_fire_always(postgresql: Engine, rows: bool) -> None:
    install(postgresql)
    run(postgresql, *USR)
    track(postgresql, ["usr"], TriggerOptions(rows=rows))
    run(postgresql, REPLICA, "INSERT INTO usr (idu) VALUES (1)")
    assert logged(postgresql) == []
    made = track(postgresql, ["usr"], TriggerOptions(rows=rows, always=True))
    assert {one.state for one in made} == {TriggerCondition.CURRENT}
    run(postgresql, REPLICA, "INSERT INTO usr (idu) VALUES (2)")
    run(postgresql, "INSERT INTO usr (idu) VALUES (3)")
    assert [row[1] for row in logged(postgresql)] == ["idu=2", "idu=3"]
    assert track(postgresql, ["usr"], TriggerOptions(rows=rows, always=True)) == made


def test_one_that_was_set_back_sleeps_until_it_is_tracked_again(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, *USR)
    track(postgresql, ["usr"], ALWAYS)
    run(postgresql, "ALTER TABLE usr ENABLE TRIGGER event_log_usr_insert")
    assert TriggerCondition.DISABLED in {one.state for one in trigger_states(postgresql)}
    assert {one.state for one in track(postgresql, ["usr"], ALWAYS)} == {TriggerCondition.CURRENT}


def test_a_database_without_such_triggers_says_so(sqlite: Engine) -> None:
    install(sqlite)
    run(sqlite, *USR)
    with pytest.raises(UsageError, match="sqlite has no triggers that fire for replicated"):
        track(sqlite, ["usr"], ALWAYS)


def test_a_view_cannot_fire_always(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, *USR, "CREATE VIEW person AS SELECT idu AS pk_idu, fname FROM usr")
    run(
        postgresql,
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER writes INSTEAD OF INSERT ON person FOR EACH ROW EXECUTE FUNCTION nothing()",
    )
    with pytest.raises(UsageError, match="is a view; --always is for tables"):
        track(postgresql, ["person"], ALWAYS)


def test_it_is_kept_and_said_until_it_is_taken_back(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, *USR)
    track(postgresql, ["usr"], ALWAYS)
    assert {one.asked for one in track(postgresql, ["usr"])} == {"--events row-back --always"}
    run(postgresql, "ALTER TABLE usr ENABLE TRIGGER event_log_usr_insert")
    mends = {point.mend for point in trigger_points(postgresql, LogNames(schema="public"))}
    assert mends == {"Run `eventlog track public.usr --events row-back --always --reset`."}
    assert {one.asked for one in track(postgresql, ["usr"], TrackRequest(reset=True))} == {"--events row-back"}
    run(postgresql, REPLICA, "INSERT INTO usr (idu) VALUES (1)")
    assert logged(postgresql) == []
