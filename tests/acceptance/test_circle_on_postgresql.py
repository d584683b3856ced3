"""The circle on a real PostgreSQL server, by the commands of the contract: schemas, references, children, loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from sqlalchemy import Engine

from tests.acceptance.command import ok

TABLES = """
CREATE SCHEMA indirect;
CREATE TABLE indirect.usr (idu INTEGER PRIMARY KEY, fname VARCHAR(64), photo BYTEA, born DATE, active BOOLEAN,
                           manager INTEGER REFERENCES indirect.usr);
CREATE TABLE indirect.usr_phone (idu INTEGER NOT NULL REFERENCES indirect.usr, phoneno VARCHAR(32));
CREATE TABLE indirect.grp (idg INTEGER PRIMARY KEY, "Full Title" VARCHAR(64));
"""

LOOPBACK = {"EVENTLOG_PUBLISHER__ALLOW_LOOPBACK": "yes"}


def execute(engine: Engine, script: str) -> None:
    with engine.begin() as connection:
        for statement in script.split(";"):
            if statement.strip():
                connection.exec_driver_sql(statement)


def events(text: str) -> list[etree._Element]:
    """The events of the documents on a stream."""
    documents = text.split('<?xml version="1.0" encoding="UTF-8"?>')[1:]
    return [event for document in documents for event in etree.fromstring(document.strip()).iterfind("input/*")]


@pytest.fixture
def where(postgresql: Engine) -> dict[str, str]:
    execute(postgresql, TABLES)
    url = postgresql.url.render_as_string(hide_password=False)
    return {
        "EVENTLOG_SOURCE__URL": url,
        "EVENTLOG_SOURCE__LOG": "indirect.event_log",
        "EVENTLOG_SOURCE__SCHEMA": "indirect",
    }


def test_from_install_to_documents(postgresql: Engine, where: dict[str, str]) -> None:
    ok("install", environment=where)
    ok("track", "usr", environment=where)
    ok("track", "grp", "--events", "field", environment=where)
    execute(
        postgresql,
        "INSERT INTO indirect.usr VALUES (1, 'Jack', '\\xAAAA', '1990-02-03', true, NULL), (2, 'Ann', NULL, NULL, false, 1);"
        "INSERT INTO indirect.usr_phone VALUES (2, '555-1111');"
        "INSERT INTO indirect.grp VALUES (7, 'Staff'); UPDATE indirect.grp SET \"Full Title\" = 'All' WHERE idg = 7",
    )
    assert ok("run", "--until-empty", environment=where) == ""  # the publisher's own user made the changes: loopback
    execute(postgresql, "UPDATE indirect.event_log SET status = 'N'")
    shown = events(ok("run", "--until-empty", environment=where | LOOPBACK))
    assert [(event.tag, event.findtext("association")) for event in shown] == [
        ("modify", "idu=1,table=usr,schema=indirect"),
        ("modify", "idu=2,table=usr,schema=indirect"),
        ("add", "idg=7,table=grp,schema=indirect"),
        ("modify", "idg=7,table=grp,schema=indirect"),
    ]
    jack = {one.get("attr-name"): one.find("add-value/value") for one in list(shown[0])[1:]}
    assert {name: value is not None and (value.get("type"), value.text) for name, value in jack.items()} == {
        "fname": ("string", "Jack"),
        "photo": ("octet", "qqo="),
        "born": ("string", "1990-02-03"),
        "active": ("state", "true"),
        "manager": False,
        "usr_phone.phoneno": False,
    }
    ann = {one.get("attr-name"): one.find("add-value/value") for one in list(shown[1])[1:]}
    assert ann["manager"] is not None
    assert ann["manager"].get("association-ref") == "idu=1,table=usr,schema=indirect"
    assert ann["usr_phone.phoneno"] is not None
    assert json.loads(ok("status", "--json", environment=where))["rows"]["S"] == 5
    assert {one["state"] for one in json.loads(ok("triggers", "--json", environment=where))} == {"CURRENT"}
    tables = json.loads(ok("catalog", environment=where))["tables"]
    assert {table["name"]: [child["name"] for child in table.get("children", [])] for table in tables} == {
        "usr": ["usr_phone"],
        "grp": [],
    }


def test_what_install_and_track_would_do_can_be_printed_and_run(
    postgresql: Engine, where: dict[str, str], tmp_path: Path
) -> None:
    for command in (["install"], ["track", "usr", "--events", "field-back"]):
        script = ok(*command, "--sql", environment=where)
        with postgresql.connect() as connection:
            psycopg: Any = connection.connection.driver_connection
            psycopg.autocommit = True
            psycopg.execute(script)
    execute(postgresql, "INSERT INTO indirect.usr (idu, fname) VALUES (5, 'Eve')")
    shown = events(ok("run", "--until-empty", environment=where | LOOPBACK))
    assert [event.findtext("association") for event in shown] == ["idu=5,table=usr,schema=indirect"]


def test_tracked_classes_are_known_wherever_they_stand_and_with_the_children_they_were_tracked_with(
    postgresql: Engine,
) -> None:
    where = {"EVENTLOG_SOURCE__URL": postgresql.url.render_as_string(hide_password=False)} | LOOPBACK
    execute(
        postgresql,
        "CREATE SCHEMA app; CREATE TABLE app.usr (idu INTEGER PRIMARY KEY, fname TEXT);"
        "CREATE TABLE app.mail (idm INTEGER PRIMARY KEY, idu INTEGER REFERENCES app.usr, address TEXT)",
    )
    ok("install", environment=where)
    ok("track", "app.usr", "--child", "app.mail", environment=where)
    execute(
        postgresql, "INSERT INTO app.usr VALUES (1, 'Jack'); INSERT INTO app.mail VALUES (9, 1, 'jack@example.org')"
    )
    [jack] = events(ok("run", "--until-empty", environment=where))
    assert jack.findtext("association") == "idu=1,table=usr,schema=app"
    assert {one.get("attr-name"): one.findtext("add-value/value") for one in list(jack)[1:]} == {
        "fname": "Jack",
        "mail.idm": "9",
        "mail.address": "jack@example.org",
    }
