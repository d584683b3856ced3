"""`eventlog track`, `untrack` and `triggers`: what was made, removed and asked for, for people and as JSON."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.cli.main import exit_code
from eventlog.core.errors import EX_USAGE, OK
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
    assert exit_code(["untrack", "usr", "--yes", *where]) == OK
    assert sorted(json.loads(capsys.readouterr().out)["removed"]) == sorted(one["name"] for one in made)


def test_options_stay_until_they_are_said_anew(sqlite: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    install(sqlite)
    LogTable(sqlite).run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40), salary INTEGER)")
    where = ("--database", str(sqlite.url))

    def asked(*words: str) -> str:
        assert exit_code(["track", *words, *where]) == OK
        told = capsys.readouterr().err  # how the options changed; the triggers themselves are the report
        assert exit_code(["triggers", "--json", *where]) == OK
        (found,) = {one["asked"] for one in json.loads(capsys.readouterr().out)}
        assert (found in told) == ("usr" in told and "tracked" in told)
        return str(found)

    assert asked("usr", "--exclude", "salary", "--events", "field") == "--events field --exclude salary"
    assert asked("usr") == "--events field --exclude salary"
    assert asked("--all") == "--events field --exclude salary"
    assert asked("usr", "--when", "salary > 1") == "--events field --exclude salary --when 'salary > 1'"
    assert asked("usr", "--when", "", "--exclude", "", "--row-triggers") == "--events field --row-triggers"
    assert asked("usr", "--reset") == "--events row-back"
    assert exit_code(["triggers", *where]) == OK
    assert "tracked with" in capsys.readouterr().out
    assert exit_code(["track", "usr", "--all", *where]) == EX_USAGE
    assert "leave out the names" in capsys.readouterr().err
    assert exit_code(["track", *where]) == EX_USAGE
