"""Rows keep the definition under which they were captured, whatever becomes of their table before they are published."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine, text

from eventlog.admin.check.triggers import gap_points
from eventlog.capture import Style, TriggerOptions, track, trigger_states
from eventlog.capture.install import install
from eventlog.capture.installed import history
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.explain.rows import explain
from eventlog.policies.steps import Drop
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.names import LogNames
from tests.integration.publishing import publish_all
from tests.support.following import Site
from tests.support.logged import run

USR = "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, a VARCHAR(40), b VARCHAR(40))"


def publish(
    engine: Engine, folder: Path, format_: str = "messages", *, follow: bool = False, steps: Sequence[Any] = ()
) -> None:
    facts = {"sink": "files", "name": "out", "path": str(folder), "format": format_, "steps": steps}
    output = msgspec.convert(facts, FilesOutput)
    config = Config(
        source=SourceConfig(url=engine.url.render_as_string(hide_password=False), user="nobody"),
        publisher=PublisherConfig(wake_up=False, polling_interval=1, follow=follow),
        output=(output,),
    )
    publish_all(config, engine=engine)


def told(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for file in sorted(folder.rglob("*.jsonl")) for line in file.read_text().splitlines() if line
    ]


def letters(engine: Engine) -> list[tuple[int, str, str | None, str | None]]:
    query = (
        "SELECT l.record_id, l.status, o.reason, o.note FROM event_log l LEFT JOIN event_log_outcome o"
        " ON o.record_id = l.record_id ORDER BY 1"
    )
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_rows_before_a_rename_and_a_drop_are_told_as_they_were(postgresql: Engine, tmp_path: Path) -> None:
    """And whole images go on at once, under the new names."""
    install(postgresql)
    run(postgresql, USR)
    track(postgresql, ["usr"], TriggerOptions(style=Style.IMAGE, follow_ddl=True))
    run(postgresql, "INSERT INTO usr VALUES (1, 'x', 'y'), (2, 'x', 'y')", "UPDATE usr SET b = 'z' WHERE idu = 1")
    run(postgresql, "ALTER TABLE usr RENAME COLUMN a TO aa", "ALTER TABLE usr DROP COLUMN b")
    run(postgresql, "DELETE FROM usr WHERE idu = 2")
    publish(postgresql, tmp_path)
    assert [(one["value"]["beforeData"], one["value"]["data"]) for one in told(tmp_path)] == [
        (None, {"idu": 1, "a": "x", "b": "y"}),
        (None, {"idu": 2, "a": "x", "b": "y"}),
        ({"idu": 1, "a": "x", "b": "y"}, {"idu": 1, "a": "x", "b": "z"}),
        (None, {"idu": 2, "aa": "x"}),
    ]
    assert {status for _, status, *_ in letters(postgresql)} == {"S"}


def test_rows_are_explained_as_they_will_be_told(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, USR)
    track(postgresql, ["usr"], TriggerOptions(style=Style.FIELD, follow_ddl=True))
    run(postgresql, "INSERT INTO usr VALUES (1, 'x', 'y')", "UPDATE usr SET a = 'z' WHERE idu = 1")
    run(postgresql, "ALTER TABLE usr RENAME COLUMN a TO aa", "ALTER TABLE usr DROP COLUMN b")
    run(postgresql, "UPDATE usr SET aa = 'last'")
    config = Config(source=SourceConfig(url=postgresql.url.render_as_string(hide_password=False), user="nobody"))
    numbers = [number for number, *_ in letters(postgresql)]
    found = [explain(postgresql, LogNames(), config, number) for number in numbers]
    assert {row.status for one in found for row in one.rows} == {"S"}
    documents = [one.document or "" for one in found]
    assert all('attr-name="aa"' in document for document in documents)
    assert 'attr-name="b"' in documents[0]


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
    *_, (_, status, reason, note) = letters(postgresql)
    assert (status, reason) == (("S", None) if style is Style.IMAGE else ("W", "vanished")), note


def test_a_single_column_that_is_gone_cannot_be_read_back(postgresql: Engine, tmp_path: Path) -> None:
    install(postgresql)
    run(postgresql, USR)
    run(postgresql, "INSERT INTO usr VALUES (1, 'x', 'y')")
    track(postgresql, ["usr"], TriggerOptions(style=Style.FIELD_BACK, follow_ddl=True))
    run(postgresql, "UPDATE usr SET a = 'z', b = 'z'", "ALTER TABLE usr DROP COLUMN b")
    run(postgresql, "ALTER TABLE usr RENAME COLUMN a TO aa")
    publish(postgresql, tmp_path, "xds")
    [document] = tmp_path.glob("*.xml")
    assert 'attr-name="aa"' in document.read_text()
    (_, renamed, _, _), (_, gone, _, note) = letters(postgresql)
    assert (renamed, gone) == ("S", "W")
    assert note == "usr has no captured column b any more to be read back, and no value of it was logged."


def test_types_are_those_of_then(postgresql: Engine, tmp_path: Path) -> None:
    install(postgresql)
    run(postgresql, "CREATE TABLE usr (idu INTEGER PRIMARY KEY, n INTEGER)")
    track(postgresql, ["usr"], TriggerOptions(style=Style.IMAGE, follow_ddl=True))
    run(postgresql, "INSERT INTO usr VALUES (1, 5)", "ALTER TABLE usr ALTER COLUMN n TYPE TEXT")
    run(postgresql, "INSERT INTO usr VALUES (2, 'five')", "ALTER TABLE usr ADD COLUMN at TIMESTAMP")
    run(postgresql, "UPDATE usr SET at = '2026-01-02 03:04:05' WHERE idu = 2")
    publish(postgresql, tmp_path)
    assert [one["value"]["data"] for one in told(tmp_path)] == [
        {"idu": 1, "n": 5},
        {"idu": 2, "n": "five"},
        {"idu": 2, "n": "five", "at": "2026-01-02 03:04:05.000000"},
    ]
    versions = history(postgresql, LogNames(), ["usr"])
    assert [[*one.columns] for one in versions] == [["idu", "n"], ["idu", "n"], ["idu", "n", "at"]]


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
    assert "between rows 2 and 4 of the log, changes of c may not" in point.said


def test_a_number_that_a_row_cannot_have_takes_no_documents_place(postgresql: Engine, tmp_path: Path) -> None:
    install(postgresql)
    run(postgresql, USR)
    track(postgresql, ["usr"], TriggerOptions(style=Style.IMAGE))
    write = "INSERT INTO event_log (record_id, event_type, table_name, table_key, column_name, new_value)"
    row = "{} VALUES ({}, 1, 'usr', 'idu=1', 'a', '{}')".format
    run(postgresql, row(write, 1000, "first"))
    publish(postgresql, tmp_path, "xds")
    [document] = tmp_path.glob("*.xml")
    before = document.read_text()
    run(postgresql, row(write, 1000, "second"), row(write, -5, "x"), row(write, 0, "x"), row(write, 999, "late"))
    publish(postgresql, tmp_path, "xds")
    assert document.read_text() == before
    assert len(list(tmp_path.glob("*.xml"))) == 2
    found = [(number, status) for number, status, *_ in letters(postgresql)]
    assert sorted(found) == [(-5, "E"), (0, "E"), (999, "S"), (1000, "E"), (1000, "S")]
