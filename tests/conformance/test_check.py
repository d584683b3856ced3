"""`eventlog check` on every database: what is well is said in one line each, and everything that can be wrong is found."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, create_engine, inspect

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition, TriggerState
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track
from eventlog.check.examine import check
from eventlog.check.point import Point, PointLevel
from eventlog.check.server import local_time, version_point
from eventlog.check.triggers import write_remedy
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import EX_CONFIG, EX_UNAVAILABLE, ConfigError
from eventlog.databases.postgresql.dialect import POSTGRESQL
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.connect import REFUSED, SILENT
from eventlog.tracked.options import Style, TriggerOptions
from tests.conformance.cases import installed_usr
from tests.support.logged import run
from tests.support.servers import mysqls

WRITTEN = "INSERT INTO event_log (table_key, event_type, table_name, status, event_time) VALUES "
FOUND = {
    "a missing column": ("ALTER TABLE event_log RENAME COLUMN old_value TO former", "log", "old_value"),
    "a missing companion": ("DROP TABLE event_log_mark", "state tables", "event_log_mark"),
    "another version": ("UPDATE event_log_version SET version_num = '0000'", "log", "at migration 0000; eventlog"),
    "no version": ("DELETE FROM event_log_version", "state tables", "no migration version"),
    "a row that waits": (f"{WRITTEN}('idu=1', 6, 'usr', 'N', '2020-01-01')", "rows", " has waited"),
    "a row that nobody reads": (
        f"{WRITTEN}('idu=1', 6, 'usr', 'X', '2020-01-01')",
        "rows",
        "status 'X', which no publisher",
    ),
    "an error": (f"{WRITTEN}('idu=1', 6, 'usr', 'E', '2020-01-01')", "rows", "1 row ended as an error."),
}
"""What is wrong: a statement that makes it so, and the point and the words of it that tell."""


@pytest.fixture
def usr(engine: Engine) -> Engine:
    """Track a table without any fault."""
    track(installed_usr(engine), ["usr"])
    return engine


def config(engine: Engine) -> Config:
    return Config(source=SourceConfig(url=engine.url.render_as_string(hide_password=False)))


def found(engine: Engine, name: str) -> list[Point]:
    """Find the points of this name other than OK."""
    return [point for point in check(lambda: config(engine)) if point.name == name and point.level is not PointLevel.OK]


def test_where_all_is_well_every_point_is_ok_and_nothing_is_changed(usr: Engine) -> None:
    alone = replace(config(usr), publisher=PublisherConfig(allow_loopback=True))  # here one user does everything
    points = list(check(lambda: alone))
    assert [point.said for point in points if point.level is not PointLevel.OK] == []
    names = [point.name for point in points]
    assert names[:3] == ["configuration", "connection", "server"]
    assert {"clock", "log", "state tables", "rights", "triggers", "rows"} < set(names)
    assert all(point.exit_code == 0 for point in points)


@pytest.mark.parametrize("what", FOUND)
def test_what_is_wrong_is_told(usr: Engine, what: str) -> None:
    statement, name, said = FOUND[what]
    run(usr, statement)
    (point,) = found(usr, name)
    assert said in point.said
    assert (point.level, point.exit_code) == (
        (PointLevel.FAILURE, EX_CONFIG) if name != "rows" else (PointLevel.WARNING, 0)
    )


def test_a_log_that_nobody_has_adopted_fails_in_one_point(usr: Engine) -> None:
    """Its missing tables were told ten times, as rights that would be given in vain."""
    for table in ("mark", "outcome", "version", "trigger", "tracked"):
        run(usr, f"DROP TABLE event_log_{table}")
    failures = [point for point in check(lambda: config(usr)) if point.level is PointLevel.FAILURE]
    assert [point.name for point in failures] == ["state tables"]
    assert "adopts it" in (failures[0].mend or "")


def test_a_point_that_breaks_is_a_failure_and_the_others_are_asked(
    sqlite: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("nobody foresaw it")

    install(sqlite)
    monkeypatch.setattr("eventlog.check.examine.server_points", broken)
    points = list(check(lambda: config(sqlite)))
    [failed] = [point for point in points if point.level is PointLevel.FAILURE]
    assert (failed.name, failed.exit_code) == ("server", 70)
    assert "This could not be looked at: ZeroDivisionError: nobody foresaw it." in failed.said
    names = [point.name for point in points]
    assert names.index("log") > names.index("server")


def test_an_output_that_is_no_more_is_said_and_how_to_keep_it(sqlite: Engine, tmp_path: Path) -> None:
    """Who was renamed would get anew what it has."""
    install(sqlite)
    run(sqlite, "INSERT INTO event_log_output (name, position, plans) VALUES ('hr', 0, 0)")

    def points(**also: Any) -> list[tuple[PointLevel, str]]:
        output = FilesOutput(path=str(tmp_path), name="people", **also)
        told = check(lambda: replace(config(sqlite), output=(output,)))
        return [(one.level, f"{one.said} {one.mend}") for one in told if one.name in ("journal", "outputs")]

    [_, (level, said)] = points()
    assert level is PointLevel.FAILURE
    assert "former_names" in said
    assert "has a place for hr, and this configuration has people alone" in said
    assert [level for level, _ in points(former_names=("hr",))] == [PointLevel.OK]


def test_a_configuration_that_cannot_be_read_is_the_only_point() -> None:
    def read() -> Config:
        raise ConfigError("publisher.batch_sise is not a key.", hint="Did you mean batch_size?")

    (point,) = check(read)
    assert (point.name, point.level, point.exit_code) == ("configuration", PointLevel.FAILURE, EX_CONFIG)
    assert point.mend == "Did you mean batch_size?"


def test_a_configuration_without_a_database_fails_and_its_outputs_are_looked_at(tmp_path: Path) -> None:
    points = check(lambda: Config(output=(FilesOutput(path=str(tmp_path)),)))
    levels = {point.name: point.level for point in points}
    assert levels == {"configuration": PointLevel.FAILURE, "output 1": PointLevel.OK}


@pytest.mark.parametrize(
    "url,code", [("postgresql+psycopg://idm:s3cret@127.0.0.1:1/app", EX_UNAVAILABLE), ("sqlite:///none.db", EX_CONFIG)]
)
def test_a_database_that_does_not_answer_is_told_without_its_password(
    url: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, point = check(lambda: Config(source=SourceConfig(url=url)))
    assert (point.name, point.level, point.exit_code) == ("connection", PointLevel.FAILURE, code)
    assert "s3cret" not in point.said


@pytest.mark.parametrize("database", ["postgresql", *mysqls()])
def test_who_is_refused_is_told_that_waiting_does_not_help(database: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(database).url
    for other, mend in ((url.set(username="nobody_knows", password="s3cret"), REFUSED), (url.set(port=1), SILENT)):
        source = SourceConfig(url=other.render_as_string(hide_password=False))
        _, point = check(lambda source=source: Config(source=source))  # type: ignore[misc]  # a default in a lambda
        assert (point.level, point.exit_code, point.mend) == (PointLevel.FAILURE, EX_UNAVAILABLE, mend)
        assert "s3cret" not in point.said


def test_a_missing_log_ends_the_questions(engine: Engine) -> None:
    if engine.dialect.name == "sqlite":
        run(engine, "CREATE TABLE t (a INTEGER)")  # so that there is a file
    *_, point = check(lambda: config(engine))
    assert (point.name, point.level, point.exit_code) == ("log", PointLevel.FAILURE, EX_CONFIG)
    assert point.mend == "`eventlog install` makes it."


def test_a_clock_that_is_wrong_is_told_with_its_direction(usr: Engine) -> None:
    for seconds, side in ((5, "behind"), (-5, "ahead of")):
        shift = dt.timedelta(seconds=seconds)
        points = check(lambda: config(usr), lambda shift=shift: local_time() + shift)  # type: ignore[misc]  # a default in a lambda
        (point,) = (point for point in points if point.name == "clock")
        assert point.level is PointLevel.WARNING
        assert f"s {side} this machine's" in point.said


@pytest.mark.parametrize("order", [("record_id", "status"), ("status", "record_id")])
def test_a_log_without_an_index_of_waiting_rows_is_told_with_the_statement_that_makes_one(
    usr: Engine, order: tuple[str, str]
) -> None:
    inspector = inspect(usr)
    name = next(one["name"] for one in inspector.get_indexes("event_log") if str(one["name"]).endswith("_new"))
    drop = f"DROP INDEX {name} ON event_log" if usr.dialect.name == "mysql" else f"DROP INDEX {name}"
    run(usr, drop)
    (point,) = found(usr, "index")
    assert (point.level, point.exit_code) == (PointLevel.WARNING, 0)
    statement = str(point.mend).removeprefix("Let a DBA run: ").removesuffix(";")
    run(usr, statement.replace("CONCURRENTLY ", ""))
    assert found(usr, "index") == []
    run(usr, drop, f"CREATE INDEX theirs ON event_log ({', '.join(order)})")
    assert bool(found(usr, "index")) is (order[0] == "record_id")


def test_triggers_that_are_not_current_come_with_the_command_that_mends(usr: Engine) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD))
    run(usr, "ALTER TABLE usr ADD COLUMN email VARCHAR(64)")
    points = found(usr, "triggers")
    assert points
    assert all("OUTDATED" in point.said and "--events field" in str(point.mend) for point in points)
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD))
    assert found(usr, "triggers") == []


def test_a_log_that_nothing_writes_to_is_told(engine: Engine) -> None:
    install(engine)
    (point,) = found(engine, "triggers")
    assert "No trigger" in point.said


@pytest.mark.parametrize("database", mysqls())
def test_rights_that_a_publisher_lacks_on_mariadb_are_told_until_they_are_given(
    database: str, request: pytest.FixtureRequest
) -> None:
    admin: Engine = request.getfixturevalue(database)
    track(installed_usr(admin), ["usr"])
    name = f"c{admin.url.database}"[-30:]
    run(admin, f"CREATE USER `{name}`@`%`", f"GRANT SELECT ON event_log TO `{name}`@`%`")
    publisher = create_engine(admin.url.set(username=name))
    try:
        lacking = {point.said.partition(" cannot")[0] for point in found(publisher, "rights")}
        assert lacking >= {"The event log", "The state table event_log_outcome"}
        give_rights(admin, Roles(publisher=f"{name}@%"))
        assert found(publisher, "rights") == []
    finally:
        publisher.dispose()
        run(admin, f"DROP USER `{name}`@`%`")


def test_the_mending_command_repeats_what_was_asked_for() -> None:
    options = TriggerOptions(style=Style.FIELD, columns=("a", "b"), children=("c",), when="idu > 1", rows=True)
    state = TriggerState(name="t", table="usr", owner="app.usr", state=TriggerCondition.MISSING)
    asked = "eventlog track app.usr --events field --columns a,b --child c --when 'idu > 1' --row-triggers --reset"
    assert write_remedy(state, options) == asked
    assert write_remedy(replace(state, state=TriggerCondition.STRAY), options) == "eventlog untrack app.usr"


def test_a_server_older_than_the_tests_is_told() -> None:
    assert version_point(POSTGRESQL, (13, 0), "PostgreSQL 13.0").level is PointLevel.OK
    assert "older than 13" in version_point(POSTGRESQL, (12, 22), "PostgreSQL 12.22").said


LOOSE = {
    "sqlite": "TEXT COLLATE NOCASE",
    "postgresql": "VARCHAR(9) COLLATE loose",
    "mysql": "VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
}


def test_keys_with_several_spellings_for_one_row_are_named(usr: Engine) -> None:
    """Rows of the log that no trigger writes may have another one than the table, and be two objects."""
    name = usr.dialect.name.replace("mariadb", "mysql")
    if name == "postgresql":
        run(usr, "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    run(usr, f"CREATE TABLE named (k {LOOSE[name]} NOT NULL PRIMARY KEY, v VARCHAR(9))")
    run(usr, "CREATE TABLE numbered (k INTEGER NOT NULL PRIMARY KEY, v VARCHAR(9))")
    track(usr, ["named", "numbered"])
    said = [point.said for point in check(lambda: config(usr)) if point.name == "keys"]
    assert len(said) == 1
    assert "named.k takes different texts for one row (" in said[0]
