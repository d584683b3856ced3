"""Rows keep the definition under which they were captured, also in a conversion."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track, trigger_states
from eventlog.check.triggers import gap_points
from eventlog.cli.main import exit_code
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.convert import step
from eventlog.explain.rows import explain
from eventlog.policies.steps import Drop
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.integration.publishing import publish_all
from tests.support.altered_logs import altered_log, convert, published, said, url_of
from tests.support.following import Site
from tests.support.logged import run

USR = "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, a VARCHAR(40), b VARCHAR(40))"


def publish(
    engine: Engine,
    folder: Path,
    format_: str = "messages",
    *,
    follow: bool = False,
    steps: Sequence[Any] = (),
    log: str = "event_log",
) -> None:
    facts = {"sink": "files", "name": "out", "path": str(folder), "format": format_, "steps": steps}
    output = msgspec.convert(facts, FilesOutput)
    config = Config(
        source=SourceConfig(url=engine.url.render_as_string(hide_password=False), log=log, user="nobody"),
        publisher=PublisherConfig(wake_up=False, polling_interval=1, follow=follow),
        output=(output,),
    )
    publish_all(config, engine=engine)


def told(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for file in sorted(folder.rglob("*.jsonl")) for line in file.read_text().splitlines() if line
    ]


def statuses(engine: Engine) -> list[tuple[int, str, str | None, str | None]]:
    query = (
        "SELECT l.record_id, l.status, o.reason, o.note FROM event_log l LEFT JOIN event_log_outcome o"
        " ON o.record_id = l.record_id ORDER BY 1"
    )
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


@pytest.mark.parametrize("style", [Style.IMAGE, Style.ROW_BACK])
def test_rows_of_a_table_that_has_another_name_or_is_gone(postgresql: Engine, tmp_path: Path, style: Style) -> None:
    install(postgresql)
    run(postgresql, USR)
    track(postgresql, ["usr"], TriggerOptions(style=style, follow_ddl=True))
    run(postgresql, "INSERT INTO usr VALUES (1, 'x', 'y')", "ALTER TABLE usr RENAME TO person")
    run(postgresql, "UPDATE person SET a = 'z'")
    publish(postgresql, tmp_path)
    assert [one["topic"] for one in told(tmp_path)] == ["public.usr", "public.person"]
    run(postgresql, "UPDATE person SET a = 'last'", "DROP TABLE person")
    publish(postgresql, tmp_path)
    *_, (_, status, reason, note) = statuses(postgresql)
    assert (status, reason) == (("W", "vanished") if style is Style.ROW_BACK else ("S", None)), note


def test_a_policy_sees_todays_names_alone(postgresql: Engine, tmp_path: Path) -> None:
    """What it hides was hidden under another name, too; and what has no name any more nobody could hide."""
    install(postgresql)
    run(postgresql, "CREATE TABLE usr (idu INTEGER PRIMARY KEY, secret TEXT, old TEXT, a TEXT)")
    track(postgresql, ["usr"], TriggerOptions(style=Style.IMAGE, follow_ddl=True))
    run(postgresql, "INSERT INTO usr VALUES (1, 'hush', 'hush', 'x')")
    run(postgresql, "ALTER TABLE usr RENAME COLUMN secret TO hidden", "ALTER TABLE usr DROP COLUMN old")
    publish(postgresql, tmp_path, steps=[Drop(attributes=("hidden",))])
    [one] = told(tmp_path)
    assert "hush" not in json.dumps(one)
    assert one["value"]["data"] == {"idu": 1, "a": "x"}


def test_triggers_follow_a_table_that_has_another_name(sqlite: Engine, tmp_path: Path) -> None:
    install(sqlite)
    run(sqlite, USR)
    track(sqlite, ["usr"], TriggerOptions(style=Style.IMAGE))
    run(sqlite, "INSERT INTO usr VALUES (1, 'x', 'y')", "ALTER TABLE usr RENAME TO person")
    run(sqlite, "INSERT INTO person VALUES (2, 'x', 'y')")
    publish(sqlite, tmp_path, follow=True)
    run(sqlite, "INSERT INTO person VALUES (3, 'x', 'y')")
    publish(sqlite, tmp_path)
    assert [(one["topic"], one["value"]["data"]["idu"]) for one in told(tmp_path)] == [
        ("usr", 1),
        ("usr", 2),
        ("person", 3),
    ]
    assert {one.owner for one in trigger_states(sqlite)} == {"person"}


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "database, style",
    [
        ("postgresql", Style.IMAGE),
        ("postgresql", Style.ROW_BACK),
        ("postgresql", Style.FIELD_BACK),
        ("mariadb", Style.IMAGE),
        ("sqlite", Style.FIELD),
    ],
)
def test_a_log_with_alterations_gives_what_the_publisher_makes_of_it(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str, style: Style
) -> None:
    engine: Engine = request.getfixturevalue(database)
    altered_log(engine, style)
    convert(url_of(engine), tmp_path / "whole", "--engine", "local[1]")
    monkeypatch.setattr(step, "CHUNK_ROWS", 2)
    monkeypatch.setattr(step, "SHAPED_ROWS", 2)
    convert(url_of(engine), tmp_path / "pieces", "--engine", "local[1]")
    published(engine, tmp_path / "published")
    expected = said(tmp_path / "published")
    for folder in ("whole", "pieces"):
        found = said(tmp_path / folder)
        for name, what in expected.items():
            assert found[name] == what, (folder, name)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "database, style, by",
    [
        ("sqlite", Style.IMAGE, "--schema"),
        ("postgresql", Style.ROW_BACK, "--database"),
    ],
)
def test_an_archive_of_such_a_log_is_told_as_the_publisher_tells_it(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    database: str,
    style: Style,
    by: str,
) -> None:
    engine: Engine = request.getfixturevalue(database)
    altered_log(engine, style)
    with engine.connect() as connection:
        found = connection.execute(text("SELECT * FROM event_log ORDER BY record_id")).mappings()
        rows = [dict(row) | {"event_time": str(row["event_time"])} for row in found]
    archive = tmp_path / "archive.parquet"
    parquet.write_table(pa.Table.from_pylist(rows), archive)
    assert exit_code(["catalog", "--database", url_of(engine)]) == 0
    schema = tmp_path / "schema.json"
    schema.write_text(capsys.readouterr().out)
    convert(str(archive), tmp_path / "converted", by, str(schema) if by == "--schema" else url_of(engine))
    published(engine, tmp_path / "published")
    assert said(tmp_path / "converted") == said(tmp_path / "published")


def test_check_says_between_which_rows_a_new_column_may_be_missing(sqlite: Engine) -> None:
    install(sqlite)
    run(sqlite, USR)
    track(sqlite, ["usr"], TriggerOptions(style=Style.IMAGE))
    site = Site(sqlite, follow=True)
    with site.publisher:
        run(sqlite, "INSERT INTO usr VALUES (1, 'x', 'y')")
        site.poll()
        run(sqlite, "ALTER TABLE usr ADD COLUMN c TEXT", "UPDATE usr SET c = 'lost'", "UPDATE usr SET a = 'z'")
        site.poll()
    [point] = gap_points(sqlite, LogNames())
    assert "between rows 1 and 2 of the log, changes of c may not" in point.said


def test_rows_are_explained_as_they_will_be_told(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, USR)
    track(postgresql, ["usr"], TriggerOptions(style=Style.FIELD, follow_ddl=True))
    run(postgresql, "INSERT INTO usr VALUES (1, 'x', 'y')", "UPDATE usr SET a = 'z' WHERE idu = 1")
    run(postgresql, "ALTER TABLE usr RENAME COLUMN a TO aa", "ALTER TABLE usr DROP COLUMN b")
    run(postgresql, "UPDATE usr SET aa = 'last'")
    config = Config(source=SourceConfig(url=postgresql.url.render_as_string(hide_password=False), user="nobody"))
    numbers = [number for number, *_ in statuses(postgresql)]
    found = [explain(postgresql, LogNames(), config, number) for number in numbers]
    assert {row.status for one in found for row in one.rows} == {"S"}
    documents = [one.document or "" for one in found]
    assert all('attr-name="aa"' in document for document in documents)
    assert 'attr-name="b"' in documents[0]


def rebuilt(engine: Engine) -> None:
    """A migration puts another table in the place of `usr`."""
    run(engine, USR.replace("usr", "usr_new"), "INSERT INTO usr_new SELECT * FROM usr", "DROP TABLE usr")
    run(engine, "ALTER TABLE usr_new RENAME TO usr")


@pytest.mark.parametrize("follow_ddl", [True, False])
def test_rows_of_a_table_that_a_migration_rebuilds_are_read_back(
    postgresql: Engine, tmp_path: Path, *, follow_ddl: bool
) -> None:
    install(postgresql)
    run(postgresql, USR)
    options = TriggerOptions(style=Style.ROW_BACK, follow_ddl=follow_ddl)
    track(postgresql, ["usr"], options)
    run(postgresql, "INSERT INTO usr VALUES (1, 'x', 'y')", "UPDATE usr SET a = 'z'")
    rebuilt(postgresql)
    track(postgresql, ["usr"], options)
    run(postgresql, "INSERT INTO usr VALUES (2, 'x', 'y')", "ALTER TABLE usr ADD COLUMN c TEXT")
    track(postgresql, ["usr"], options)
    publish(postgresql, tmp_path)
    assert {status for _, status, _, _ in statuses(postgresql)} == {"S"}
    assert [one["value"]["data"] for one in told(tmp_path)][-1] == {"idu": 2, "a": "x", "b": "y", "c": None}


def restored(engine: Engine, numbers: dict[str, int]) -> None:
    """As after a restore into another cluster: the history has the numbers that tables had in the former one."""
    with engine.begin() as connection:
        for name, number in numbers.items():
            now = connection.execute(text("SELECT CAST(to_regclass(:name) AS oid)"), {"name": name}).scalar_one()
            connection.execute(
                text(
                    "UPDATE event_log_schema SET described = replace(described, :now, :former)"
                    " WHERE table_name = 'public.' || :name"
                ),
                {"now": f'"relation":{now},', "former": f'"relation":{number},', "name": name},
            )


@pytest.mark.parametrize("follow_ddl", [True, False])
def test_in_a_restored_database_a_class_is_no_other_one_that_had_its_number(
    postgresql: Engine, tmp_path: Path, *, follow_ddl: bool
) -> None:
    install(postgresql)
    run(postgresql, USR, USR.replace("usr", "grp"))
    options = TriggerOptions(style=Style.ROW_BACK, follow_ddl=follow_ddl)
    track(postgresql, ["usr", "grp"], options)
    with postgresql.connect() as connection:
        grp = connection.execute(text("SELECT CAST('grp'::regclass AS oid)")).scalar_one()
    restored(postgresql, {"usr": grp, "grp": 1})
    run(postgresql, "INSERT INTO usr VALUES (1, 'of usr', 'y')", "INSERT INTO grp VALUES (1, 'of grp', 'y')")
    track(postgresql, ["usr", "grp"], options)
    run(postgresql, "ALTER TABLE grp ADD COLUMN c TEXT", "ALTER TABLE grp RENAME TO role")
    run(postgresql, "ALTER TABLE usr RENAME COLUMN b TO bb")
    track(postgresql, ["role", "usr"], options)
    run(postgresql, "INSERT INTO usr VALUES (2, 'of usr', 'y')", "INSERT INTO role VALUES (2, 'of role', 'y')")
    publish(postgresql, tmp_path)
    assert {status for _, status, _, _ in statuses(postgresql)} == {"S"}
    assert {(one["topic"], one["value"]["data"]["idu"], one["value"]["data"]["a"]) for one in told(tmp_path)} == {
        ("public.usr", 1, "of usr"),
        ("public.grp", 1, "of grp"),
        ("public.usr", 2, "of usr"),
        ("public.role", 2, "of role"),
    }


@pytest.mark.parametrize("database", ["postgresql", "mariadb", "sqlite"])
def test_a_new_table_under_a_former_name_is_another_class(
    request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    engine: Engine = request.getfixturevalue(database)
    install(engine)
    run(engine, USR)
    options = TriggerOptions(style=Style.ROW_BACK)
    track(engine, ["usr"], options)
    run(engine, "INSERT INTO usr VALUES (1, 'old', 'y'), (2, 'old', 'y')", "ALTER TABLE usr RENAME TO usr_old")
    track(engine, ["usr_old"], options)
    run(engine, USR)
    track(engine, ["usr"], options)
    run(engine, "INSERT INTO usr VALUES (2, 'new', 'y')", "INSERT INTO usr_old VALUES (3, 'old', 'y')")
    publish(engine, tmp_path)
    found = [(one["topic"].removeprefix("public."), one["value"]["data"]) for one in told(tmp_path)]
    assert [(topic, data["idu"], data["a"]) for topic, data in found] == [
        ("usr", 1, "old"),
        ("usr", 2, "old"),
        ("usr", 2, "new"),
        ("usr_old", 3, "old"),
    ]


@pytest.mark.parametrize("database", ["postgresql", "mariadb"])
@pytest.mark.parametrize("style", [Style.IMAGE, Style.ROW_BACK])
def test_tables_of_one_name_in_two_schemas_are_told_apart(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, style: Style
) -> None:
    """Rows of the log's own schema say the name alone; also where one of the tables is another now."""
    engine: Engine = request.getfixturevalue(database)
    own = "public" if database == "postgresql" else str(engine.url.database)
    other, names = f"{own}_hr", LogNames(schema=own)
    run(engine, f"CREATE SCHEMA {other}")
    try:
        install(engine, names)
        run(engine, USR, USR.replace("usr", f"{other}.usr"))
        options = TriggerOptions(style=style)
        track(engine, ["usr", f"{other}.usr"], options, names)
        run(engine, "INSERT INTO usr VALUES (1, 'own', 'y')", f"INSERT INTO {other}.usr VALUES (1, 'other', 'y')")
        run(engine, f"ALTER TABLE {other}.usr DROP COLUMN b", "ALTER TABLE usr ADD COLUMN c VARCHAR(9)")
        track(engine, ["usr", f"{other}.usr"], options, names)
        run(engine, "INSERT INTO usr VALUES (2, 'own', 'y', 'c')", f"INSERT INTO {other}.usr VALUES (2, 'other')")
        publish(engine, tmp_path, log=names.whole)
        assert {status for _, status, _, _ in statuses(engine)} == {"S"}
        found = sorted((one["topic"], *one["value"]["data"].values()) for one in told(tmp_path))
    finally:
        run(engine, f"DROP SCHEMA {other}{' CASCADE' if database == 'postgresql' else ''}")
    whole = "public.usr" if database == "postgresql" else "usr"
    more, gone = ((None,), ()) if style is Style.ROW_BACK else ((), ("y",))
    expected = [(whole, 1, "own", "y", *more), (whole, 2, "own", "y", "c")]
    assert found == sorted([*expected, (f"{other}.usr", 1, "other", *gone), (f"{other}.usr", 2, "other")])
