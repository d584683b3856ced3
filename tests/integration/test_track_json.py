"""`eventlog track` and `untrack` for programs: what was made and what was removed, as JSON."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from eventlog.core.errors import OK
from eventlog.sql.install import install
from tests.conformance.event_logs import LogTable


def test_triggers_that_are_made_and_removed_are_told(sqlite: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    install(sqlite)
    LogTable(sqlite).run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40))")
    where = ("--database", str(sqlite.url), "--json")
    assert exit_code(["track", "usr", *where]) == OK
    made = json.loads(capsys.readouterr().out)
    assert {one["state"] for one in made} == {"CURRENT"}
    assert {one["table"] for one in made} == {"usr"}
    assert exit_code(["triggers", *where]) == OK
    assert {one["name"] for one in json.loads(capsys.readouterr().out)} == {one["name"] for one in made}
    assert exit_code(["untrack", "usr", *where]) == OK
    assert sorted(json.loads(capsys.readouterr().out)["removed"]) == sorted(one["name"] for one in made)
