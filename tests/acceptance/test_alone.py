"""`eventlog` without a word: help, and in a folder with a configuration how the log is and what comes next."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from eventlog.care.status import Publishing
from eventlog.cli.main import exit_code
from eventlog.delivery.output import OutputState
from tests.web.states import FACTS


def says(capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    """What it says, on both streams."""
    assert exit_code([]) == code
    said = capsys.readouterr()
    return said.out + said.err


def test_it_leads_from_nothing_to_published_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Try it: eventlog demo" in says(capsys, code=64)
    assert exit_code(["init", "--database", "sqlite:///app.db", "--place", "out"]) == 0
    capsys.readouterr()
    assert "`eventlog install` makes it" in says(capsys, code=78)
    assert exit_code(["install"]) == 0
    with closing(sqlite3.connect("app.db")) as database:
        database.execute("CREATE TABLE usr (idu INTEGER PRIMARY KEY, lname TEXT)")
        assert "Next: eventlog track TABLE" in says(capsys)
        assert exit_code(["track", "usr"]) == 0
        database.execute("INSERT INTO usr VALUES (1, 'Ann')")
        database.commit()
        assert "Next: eventlog run" in says(capsys)
        database.execute("ALTER TABLE usr ADD COLUMN born TEXT")
        database.commit()
        assert "Next: eventlog check" in says(capsys)


def test_what_fails_is_looked_at_before_rows_that_ended() -> None:
    at_work = Publishing(host="db1", pid=1, since=None, lease_until="soon", expired=False)
    ended = replace(FACTS, rows={"E": 3}, triggers={}, publisher=at_work)
    assert ended.next_step() == "eventlog log --status E"
    failing = {"hr": OutputState(error="no route", failed_at=1.0)}
    assert replace(ended, outputs=failing).next_step() == "eventlog check"
