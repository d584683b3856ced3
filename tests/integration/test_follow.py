"""A publisher follows tables that change: no column goes unseen for longer than a poll, and no writer goes on failing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition, history
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track, trigger_states
from eventlog.check.point import PointLevel
from eventlog.check.triggers import trigger_points
from eventlog.core.errors import EventlogError, InstallError
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.following import Site
from tests.support.logged import USR, left_by, run

FIELDS = TriggerOptions(style=Style.FIELD, exclude=("age",))


@pytest.fixture
def usr(engine: Engine) -> Engine:
    install(engine)
    run(engine, *USR)
    run(engine, "INSERT INTO usr VALUES (1, 'Jack', 'Frost', 30)")
    return engine


@pytest.fixture
def follower(usr: Engine) -> Iterator[Site]:
    track(usr, ["usr"], FIELDS)
    site = Site(usr, follow=True)
    with site.publisher:
        site.poll()
        yield site


def test_what_may_not_be_tracked_anew_is_said_once_and_check_knows_why(
    usr: Engine, follower: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> list[str]:
        raise InstallError("must be owner of table usr.", hint="Let its owner do it.")

    monkeypatch.setattr("eventlog.capture.schema_watch.track", refuse)
    run(usr, "ALTER TABLE usr ADD COLUMN mail VARCHAR(64)")
    said = [one for one in follower.poll() if one["event"] == "triggers_behind"]
    assert ["must be owner" in one["why"] for one in said] == [True]
    assert [one for one in follower.poll() if one["event"] == "triggers_behind"] == []
    points = list(trigger_points(usr, LogNames()))
    assert any("must be owner of table usr" in point.said for point in points)
    monkeypatch.undo()
    track(usr, ["usr"], FIELDS)
    follower.poll()
    assert {point.level for point in trigger_points(usr, LogNames())} == {PointLevel.OK}


def states(engine: Engine) -> set[TriggerCondition]:
    return {one.state for one in trigger_states(engine)}


def test_a_column_that_is_added_is_captured_from_the_next_poll_on(usr: Engine, follower: Site) -> None:
    run(usr, "ALTER TABLE usr ADD COLUMN mail VARCHAR(64)")
    said = {one["event"]: one for one in follower.poll()}
    assert said["table_changed"]["added"] == ["mail"]
    assert said["table_changed"]["since"]
    assert "triggers_followed" in said
    assert states(usr) == {TriggerCondition.CURRENT}
    assert left_by(usr, "UPDATE usr SET mail = 'm', age = 31 WHERE idu = 1") == [(2, "idu=1", "mail", None, "m")]
    assert follower.poll() == []


@pytest.mark.in_turn
def test_writers_fail_after_a_rename_and_write_again_from_the_next_poll_on(usr: Engine, follower: Site) -> None:
    run(usr, "ALTER TABLE usr RENAME COLUMN fname TO given")
    if not dialect_of(usr).embedded:  # SQLite writes the new name into its triggers
        with pytest.raises(DBAPIError):
            run(usr, "UPDATE usr SET lname = 'F' WHERE idu = 1")
        assert any(one.fails and "fname" in str(one.note) for one in trigger_states(usr))
        assert PointLevel.FAILURE in {point.level for point in trigger_points(usr, LogNames())}
    said = {one["event"]: one for one in follower.poll()}
    assert said["table_changed"] | {"level": "", "since": ""} == {
        "event": "table_changed",
        "level": "",
        "since": "",
        "table": said["table_changed"]["table"],
        "added": ["given"],
        "gone": ["fname"],
    }
    assert states(usr) == {TriggerCondition.CURRENT}
    assert left_by(usr, "UPDATE usr SET given = 'J' WHERE idu = 1") == [(2, "idu=1", "given", "Jack", "J")]


@pytest.mark.in_turn
def test_an_excluded_column_with_another_name_is_not_guessed(usr: Engine, follower: Site) -> None:
    run(usr, "ALTER TABLE usr RENAME COLUMN age TO years")
    said = [one for one in follower.poll() if one["event"] == "triggers_behind"]
    assert len(said) == 1
    assert "age" in said[0]["why"]
    assert TriggerCondition.CURRENT not in states(usr)
    assert left_by(usr, "UPDATE usr SET years = 40 WHERE idu = 1") == []
    assert follower.poll() == [], "it says so once"


@pytest.mark.in_turn
def test_triggers_that_somebody_took_off_stay_off(usr: Engine, follower: Site) -> None:
    """A table that is made anew has none; a mark of the log alone is no word for tracking it, for publishers write marks."""
    run(usr, "DROP TABLE usr_phone", "DROP TABLE usr", *USR)
    said = [one for one in follower.poll() if one["event"] == "triggers_behind"]
    assert ["All triggers of" in one["why"] for one in said] == [True]
    assert states(usr) == {TriggerCondition.MISSING}


@pytest.mark.in_turn
def test_without_follow_the_journal_and_the_figures_say_that_writers_fail(usr: Engine) -> None:
    track(usr, ["usr"], FIELDS)
    site = Site(usr, follow=False)
    with site.publisher:
        assert site.poll() == []
        run(usr, "ALTER TABLE usr RENAME COLUMN fname TO given")
        said = {one["event"]: one for one in site.poll()}
        reading = site.vitals.reading()
    assert TriggerCondition.OUTDATED in states(usr)
    assert said["triggers_behind"]["writers_fail"] is not dialect_of(usr).embedded
    assert bool(reading.failing_triggers) is not dialect_of(usr).embedded
    assert reading.triggers is not None
    assert reading.triggers["OUTDATED"] > 0


@pytest.mark.in_turn
def test_the_history_has_every_version_that_was_seen_also_over_a_restart(usr: Engine, follower: Site) -> None:
    run(usr, "ALTER TABLE usr ADD COLUMN mail VARCHAR(64)")
    follower.poll()
    follower.publisher.close()
    run(usr, "ALTER TABLE usr RENAME COLUMN mail TO post")
    site = Site(usr, follow=True)
    with site.publisher:
        said = {one["event"]: one for one in site.poll()}
    assert said["table_changed"]["gone"] == ["mail"]
    versions = history(usr, LogNames(), ["usr"])
    assert [(one.version, one.changed) for one in versions] == [
        (1, {}),
        (2, {"added": ["mail"]}),
        (3, {"added": ["post"], "gone": ["mail"]}),
    ]
    assert "usr_phone.phoneno" in versions[0].columns
    assert "post" in versions[2].columns
    with pytest.raises(EventlogError, match="No history of grp"):
        history(usr, LogNames(), ["grp"])


@pytest.mark.in_turn
def test_a_history_that_is_lost_is_said_once_and_before_anything_is_published(usr: Engine, follower: Site) -> None:
    run(usr, "DROP TABLE event_log_schema", "ALTER TABLE usr ADD COLUMN mail VARCHAR(64)")
    lost = list[str]()
    for _ in range(2):
        follower.poll()
        lost += [str(one["error"]) for one in follower.said if one["event"] == "tables_not_seen"]
    assert ["event_log_schema" in error for error in lost] == [True]
    follower.publisher.close()
    with pytest.raises(InstallError, match="The table event_log_schema beside the event log event_log is missing"):
        Site(usr, follow=True).poll()


def test_a_publisher_with_least_rights_says_what_it_may_not_do(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, *USR)
    track(postgresql, ["usr"], FIELDS)
    name = f"reads_{postgresql.url.database}"
    run(postgresql, f"CREATE ROLE {name} LOGIN")
    try:
        give_rights(postgresql, Roles(publisher=name))
        publisher = create_engine(postgresql.url.set(username=name))
        site = Site(publisher, follow=True)
        with site.publisher:
            site.poll()
            run(postgresql, "ALTER TABLE usr RENAME COLUMN fname TO given")
            said = {one["event"]: one for one in site.poll()}
            assert "permission denied" in said["triggers_behind"]["why"]
            assert said["triggers_behind"]["level"] == "error"
            assert [one for one in site.poll() if one["event"] == "triggers_behind"] == []
        publisher.dispose()
        assert any("permission denied" in point.said for point in trigger_points(postgresql, LogNames()))
        assert [one.version for one in history(postgresql, LogNames())] == [1, 2]
    finally:
        run(postgresql, f"DROP OWNED BY {name}", f"DROP ROLE {name}")
