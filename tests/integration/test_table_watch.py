"""A publisher whose tables and triggers are as somebody left them compares nothing, and one whose are not says so at once."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.capture import schema_watch
from eventlog.capture.install import install
from eventlog.capture.track import track, untrack
from eventlog.sources.marks import CURRENT_AT
from eventlog.sql.dialect import dialect_of
from eventlog.tracked import stamp
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.following import Site
from tests.support.logged import USR, run

FIELDS = TriggerOptions(style=Style.FIELD)


@pytest.fixture
def usr(engine: Engine) -> Engine:
    install(engine)
    run(engine, *USR)
    track(engine, ["usr"], FIELDS)
    return engine


@pytest.fixture(autouse=True)
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """One for each time that classes are compared with their triggers."""
    compare, seen = schema_watch.compare_tables, list[str | None]()

    def note(*given: Any) -> schema_watch.SchemaComparison:
        seen.append(None)
        return compare(*given)

    monkeypatch.setattr(schema_watch, "compare_tables", note)
    return seen


def figures(site: Site) -> dict[str, int]:
    """Return how many triggers the publisher counts in which state, without those in which there is none."""
    return {state: count for state, count in (site.vitals.reading().triggers or {}).items() if count}


def begin(engine: Engine, *, follow: bool = False) -> tuple[list[str], dict[str, int]]:
    """Begin a publisher and end it; return what it says of tables at its first poll, and its figures."""
    site = Site(engine, follow=follow)
    with site.publisher:
        said = [str(one["event"]) for one in site.poll()]
        return said, figures(site)


def test_what_was_just_tracked_is_counted_and_not_compared(usr: Engine, compared: list[None]) -> None:
    said, counted = begin(usr)
    assert (said, [*counted], compared) == ([], ["CURRENT"], [])
    track(usr, ["usr"], FIELDS)
    assert begin(usr) == (said, counted)
    assert compared == []


@pytest.mark.in_turn
def test_of_several_commands_the_first_publisher_compares_and_the_next_need_not(
    usr: Engine, compared: list[None]
) -> None:
    run(usr, "CREATE TABLE other (id INTEGER PRIMARY KEY, name VARCHAR(20))")
    track(usr, ["other"], FIELDS)
    first = begin(usr)
    assert len(compared) > 0
    compared.clear()
    assert begin(usr) == first
    assert compared == []
    untrack(usr, ["other"])
    _, counted = begin(usr)
    assert counted["CURRENT"] < first[1]["CURRENT"]


@pytest.mark.in_turn
@pytest.mark.parametrize("follow", [False, True])
def test_what_changed_while_no_publisher_ran_is_said_by_the_next(usr: Engine, *, follow: bool) -> None:
    begin(usr)
    run(usr, "ALTER TABLE usr ADD COLUMN mail VARCHAR(64)")
    said, counted = begin(usr, follow=follow)
    assert ("triggers_followed" if follow else "triggers_behind") in said
    assert [*counted] == ["CURRENT"] if follow else "OUTDATED" in counted
    said, counted = begin(usr, follow=follow)
    assert said == ([] if follow else ["triggers_behind"])


@pytest.mark.in_turn
def test_a_trigger_that_somebody_dropped_is_missed_at_the_start(usr: Engine) -> None:
    begin(usr)
    [name, table] = first_trigger(usr)
    run(usr, f"DROP TRIGGER {name}" + (f" ON {table}" if dialect_of(usr).name == "postgresql" else ""))
    _, counted = begin(usr)
    assert counted["MISSING"] == 1


def first_trigger(engine: Engine) -> tuple[str, str]:
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT name, table_name FROM event_log_trigger ORDER BY name").all()
    return str(rows[0][0]), str(rows[0][1])


@pytest.mark.in_turn
def test_another_version_of_eventlog_compares_once(
    usr: Engine, compared: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stamp, "VERSION", "9.9")
    begin(usr)
    assert len(compared) == 1
    begin(usr)
    assert len(compared) == 1


@pytest.mark.in_turn
@pytest.mark.parametrize("value", ["no json", "{}", "[" * 10_000, '{"stamp": "x", "triggers": {"CURRENT": 1}}'])
def test_a_mark_of_nobodys_making_compares(usr: Engine, compared: list[None], value: str) -> None:
    with usr.begin() as connection:
        changed = text("UPDATE event_log_mark SET value = :value WHERE name = :name")
        connection.execute(changed, {"name": CURRENT_AT, "value": value})
    assert [*begin(usr)[1]] == ["CURRENT"]
    assert len(compared) == 1


def test_what_is_tracked_while_a_publisher_runs_is_told_as_before(usr: Engine) -> None:
    site = Site(usr, follow=False)
    with site.publisher:
        assert site.poll() == []
        run(usr, "ALTER TABLE usr ADD COLUMN mail VARCHAR(64)")
        track(usr, ["usr"], FIELDS)
        said = {one["event"]: one for one in site.poll()}
    assert said["table_changed"]["added"] == ["mail"]


def test_where_nothing_is_tracked_nothing_is_compared_again_until_something_is(
    engine: Engine, compared: list[None]
) -> None:
    install(engine)
    run(engine, *USR)
    site = Site(engine, follow=False)
    with site.publisher:
        site.poll()
        assert len(compared) == 1
        site.poll()
        assert len(compared) == 1
        track(engine, ["usr"], FIELDS)
        site.poll()
        assert [*figures(site)] == ["CURRENT"]


@pytest.mark.in_turn
def test_what_changes_while_triggers_are_compared_is_compared_at_the_next_look(
    usr: Engine, compared: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(usr, "CREATE TABLE other (id INTEGER PRIMARY KEY, name VARCHAR(20))")
    track(usr, ["other"], FIELDS)
    read, turns = stamp.read_stamp, iter([True])

    def read_late(*given: object) -> object:
        if next(turns, False):
            run(usr, "ALTER TABLE other ADD COLUMN more INTEGER")
        return read(*given)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr("eventlog.capture.schema_watch.read_stamp", read_late)
    begin(usr)
    compared.clear()
    said, counted = begin(usr)
    assert compared
    assert "OUTDATED" in counted
    assert "triggers_behind" in said
