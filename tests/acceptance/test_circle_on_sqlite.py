"""The whole circle on SQLite, by the commands of the contract and nothing else."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.acceptance.command import expect_refused, ok

TABLES = """
CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname VARCHAR(64), lname VARCHAR(64), photo BLOB);
CREATE TABLE usr_phone (idu INTEGER NOT NULL REFERENCES usr, phoneno VARCHAR(32));
CREATE TABLE grp (code VARCHAR(16) PRIMARY KEY, title VARCHAR(64));
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "app.db"
    run(path, TABLES)
    return path


def run(database: Path, script: str) -> None:
    with sqlite3.connect(database) as connection:
        connection.executescript(script)
    connection.close()


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(database) as connection:
        found = connection.execute(query).fetchall()
    connection.close()
    return found


def url(database: Path) -> str:
    return f"sqlite:///{database}"


def published(folder: Path) -> list[etree._Element]:
    """Every event of every document, in the order of the documents."""
    documents = [etree.fromstring(file.read_bytes()) for file in sorted(folder.glob("*.xml"))]
    return [event for document in documents for event in document.iterfind("input/*")]


def test_from_install_to_documents_and_back(database: Path, tmp_path: Path) -> None:
    where, out = ("--database", url(database)), tmp_path / "out"
    ok("install", *where)
    ok("track", "usr", *where)
    ok("track", "grp", "--events", "field", *where)
    run(database, "INSERT INTO usr VALUES (1, 'Jack', 'Frost', X'AAAA'); INSERT INTO usr_phone VALUES (1, '555-1111')")
    run(database, "INSERT INTO grp VALUES ('a+b', 'Staff'); UPDATE grp SET title = 'All staff'")
    run(database, "INSERT INTO usr VALUES (2, 'Ann', 'Lee', NULL); DELETE FROM usr WHERE idu = 2")
    ok("run", "--until-empty", "--out", out, *where)
    events = published(out)
    assert [(event.tag, event.findtext("association")) for event in events] == [
        ("modify", "idu=1,table=usr"),
        ("add", 'code="a+b",table=grp'),
        ("modify", 'code="a+b",table=grp'),
        ("delete", "idu=2,table=usr"),
    ]
    attributes = {
        attribute.get("attr-name"): attribute.findtext("add-value/value") for attribute in list(events[0])[1:]
    }
    assert attributes == {"fname": "Jack", "lname": "Frost", "photo": "qqo=", "usr_phone.phoneno": "555-1111"}
    assert "0 problems" in ok("validate", *sorted(out.glob("*.xml")))
    statuses: dict[str, int] = dict(rows(database, "SELECT status, count(*) FROM event_log GROUP BY status"))
    assert statuses == {"S": 5, "W": 1}
    assert ok("run", "--once", "--out", out, *where) == ""
    later = "INSERT INTO event_log (table_key, status, event_type, event_time, table_name) VALUES ('idu=1', 'N', 4, '2999-01-01', 'usr')"
    run(database, later)
    assert "not due" in ok("explain", "7", *where, environment={"EVENTLOG_PUBLISHER__HANDLE_FUTURE_EVENTS": "yes"})
    assert "published" in ok("explain", "7", *where)
    run(database, "DELETE FROM event_log WHERE record_id = 7; ALTER TABLE usr ADD COLUMN mail VARCHAR(64)")
    assert "OUTDATED" in ok("triggers", *where)
    ok("untrack", "usr", "grp", "--yes", *where)
    ok("uninstall", "--yes", *where)
    assert rows(database, "SELECT name FROM sqlite_master WHERE name LIKE 'event_log%' OR type = 'trigger'") == []


def test_the_demo_shows_documents_and_leaves_nothing(tmp_path: Path) -> None:
    shown = ok("demo", cwd=tmp_path)
    for element in ("<add ", "<modify ", "<delete ", "Try next"):
        assert element in shown
    assert list(tmp_path.iterdir()) == []


def test_a_kept_demo_can_be_explored_with_the_commands_it_names(tmp_path: Path) -> None:
    shown = ok("demo", "--keep", "kept", cwd=tmp_path)
    steps = shown.partition("Try next")[2].splitlines()
    commands = [line.split("   ")[1].removeprefix("eventlog ") for line in steps if line.startswith("   eventlog ")]
    assert len(commands) >= 4
    for command in commands:
        ok(*command.split(), cwd=tmp_path)
    expect_refused(64, "not empty", "demo", "--keep", "kept", cwd=tmp_path)


def test_bad_rows_end_with_a_reason_and_hold_nobody_up(database: Path, tmp_path: Path) -> None:
    where, out = ("--database", url(database)), tmp_path / "out"
    ok("install", *where)
    run(
        database,
        "DROP TABLE event_log; CREATE TABLE event_log (record_id INTEGER PRIMARY KEY, table_key, status, event_type,"
        " event_time, perpetrator, table_name, column_name, old_value, new_value)",
    )
    log = [
        ("idu=", "N", 1, "fname", "x" * 100), ("idu=1", "n", 1, "fname", "A"), ("idu=1", "N ", 1, "fname", "A"),
        ("idu=1", "N", 9, "fname", "A"), ("idu=1", "N", None, "fname", "A"), ("idu=1", "N", 1, None, "A"),
        ('idu="1', "N", 1, "fname", "A"), ("idu=1", "N", 1, "nosuch", "A"), ("idu=2", "N", 1, "fname", "\x0b"),
        ("idu=3", "N", 1, "fname", "z" * 10_000_000),
    ]  # fmt: skip
    with sqlite3.connect(database) as connection:
        connection.executemany(
            "INSERT INTO event_log (table_key, status, event_type, event_time, table_name, column_name, new_value)"
            " VALUES (?, ?, ?, '2026-01-01', 'usr', ?, ?)", log,
        )  # fmt: skip
    connection.close()
    ok("run", "--until-empty", "--out", out, *where)
    assert [status for (status,) in rows(database, "SELECT status FROM event_log ORDER BY record_id")] == [
        "S", "n", "N ", "E", "E", "E", "E", "E", "W", "S",
    ]  # fmt: skip
    notes: dict[int, str] = dict(rows(database, "SELECT record_id, note FROM event_log_outcome"))
    assert sorted(notes) == [4, 5, 6, 7, 8, 9]
    assert "U+000B" in str(notes[9])
    assert [len(str(event[1].findtext("value"))) for event in published(out) if len(event) > 1] == [
        100, 10_000_000,
    ]  # fmt: skip  # the object of row 9 has no attribute, for its only value is left out
    told = json.loads(ok("status", "--json", *where))
    assert (told["rows"]["E"], told["ignored"]) == (5, {"n": 1, "N ": 1})
    assert "column_name is missing" in ok("explain", "6", *where)


def test_a_repeated_batch_is_published_once(database: Path, tmp_path: Path) -> None:
    where, out = ("--database", url(database)), tmp_path / "out"
    ok("install", *where)
    ok("track", "grp", "--events", "field", *where)
    run(database, "INSERT INTO grp VALUES ('a', 'A'), ('b', 'B')")
    ok("run", "--once", "--out", out, *where)
    first = {file.name: file.read_bytes() for file in out.glob("*.xml")}
    run(database, "UPDATE event_log SET status = 'N'")  # as if the publisher had died before it marked them
    ok("run", "--once", "--out", out, *where)
    assert {file.name: file.read_bytes() for file in out.glob("*.xml")} == first
