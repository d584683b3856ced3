"""What commands report to programs, and how addresses are given, the same for all of them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from eventlog.cli.main import COMMANDS, exit_code
from eventlog.core.errors import EX_CONFIG, EX_USAGE, OK, ConfigError
from tests.acceptance.command import eventlog, ok

NOT_REPORTING = frozenset(
    {
        "demo",
        "init",
        "run",
        "web",
        "receive",
        "emulate",
        "help",
        "completion",
        "man",
        "policy",
        "decode",
        "convert",
    }
)
"""They work until they are ended, write a file, print a text, or are groups, whose commands are named below."""


@pytest.fixture
def where(tmp_path: Path) -> list[str]:
    with sqlite3.connect(tmp_path / "app.db") as database:
        database.execute("CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname TEXT)")
        database.execute('CREATE TABLE odd ("id=" INTEGER PRIMARY KEY, a TEXT)')
    database.close()
    return ["--no-config", "--database", f"sqlite:///{tmp_path / 'app.db'}"]


OF_GROUPS = (
    *(f"outputs {name}" for name in ("list", "pause", "resume", "skip", "forget")),
    *("policy test", "decode gbase", "decode linter"),
    *(f"convert {name}" for name in ("files", "database", "gbase", "linter")),
)


@pytest.mark.parametrize("command", sorted([*({*COMMANDS} - NOT_REPORTING), *OF_GROUPS]))
def test_every_command_that_reports_has_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code([*command.split(), "--help"]) == OK
    assert "--json" in capsys.readouterr().out


def test_a_log_comes_and_goes_with_reports(where: list[str]) -> None:
    assert json.loads(ok("install", "--json", *where)) == {"installed": "event_log"}
    assert json.loads(ok("upgrade", "--json", *where)) == {"upgraded": "event_log"}
    planned = json.loads(ok("upgrade", "--to", "0001", "--dry-run", "--json", *where))
    assert planned["would_upgrade"]["to"] == "0001"
    assert json.loads(ok("uninstall", "--dry-run", "--json", *where)) == {
        "would_uninstall": "event_log",
        "triggers": [],
    }
    assert json.loads(ok("uninstall", "--yes", "--json", *where)) == {"uninstalled": "event_log"}


def test_an_adopted_log_is_not_said_to_be_made(tmp_path: Path, where: list[str]) -> None:
    with sqlite3.connect(tmp_path / "app.db") as database:
        database.execute(
            "CREATE TABLE indirect_process (record_id INTEGER PRIMARY KEY, table_key, status, event_type, event_time,"
            " perpetrator, table_name, column_name, old_value, new_value)"
        )
    database.close()
    for _ in range(2):
        said = " ".join(ok("install", "--log", "indirect_process", *where).split())
        assert said.startswith(
            "The event log indirect_process was there before and is adopted: its table stays as it is"
        )
        assert "`eventlog check`" in said
    assert json.loads(ok("install", "--json", "--log", "indirect_process", *where)) == {"installed": "indirect_process"}
    for _ in range(2):
        assert ok("install", *where) == "The event log event_log is installed.\n"


def test_reports_are_on_standard_output_and_notes_are_not(where: list[str]) -> None:
    assert ok("install", *where) == "The event log event_log is installed.\n"
    assert ok("upgrade", *where) == "The event log event_log is current.\n"
    planned = ok("upgrade", "--to", "0001", "--dry-run", *where)
    assert planned.startswith("The log would move from migration ")
    tracked = eventlog("track", "usr", *where)
    assert tracked.stdout.splitlines()[0] == "CURRENT event_log_usr_insert on usr"
    changed = eventlog("track", "usr", "--events", "field", *where)
    assert changed.stderr.startswith("usr was tracked with --events row-back")
    assert ok("untrack", "usr", "--dry-run", *where).startswith("would be removed: event_log_usr_")
    assert list(json.loads(ok("untrack", "usr", "--dry-run", "--json", *where))) == ["would_remove"]
    assert ok("untrack", "usr", "--yes", *where).startswith("removed event_log_usr_")
    assert ok("uninstall", "--dry-run", *where).startswith("This would be removed:\n")
    assert ok("uninstall", "--yes", *where) == "The event log event_log is removed.\n"


def test_one_odd_key_does_not_end_the_tracking_of_all(where: list[str]) -> None:
    ok("install", *where)
    done = eventlog("track", "--all", "--json", *where)
    assert done.returncode == EX_CONFIG
    assert {one["table"] for one in json.loads(done.stdout)} == {"usr"}
    assert "odd is left out: The key column 'id=' of odd" in done.stderr
    assert "Traceback" not in done.stderr


def test_before_there_is_a_log_check_fails_at_one_point(where: list[str]) -> None:
    done = eventlog("check", "--json", *where)
    failures = [point for point in json.loads(done.stdout)["points"] if point["level"] == "failure"]
    assert done.returncode == EX_CONFIG
    [point] = failures
    assert point["mend"] == "`eventlog install` makes it."


@pytest.mark.parametrize(
    "words", [["receive", "--http", "127.0.0.1:8781"], ["receive", "--http", "8781"], ["receive", "--port", "8781"]]
)
def test_the_receivers_address_is_given_as_the_pages_is(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    class Stub:
        url = "http://x"

        def __init__(self, *_: object, host: str, port: int, **__: object) -> None:
            asked.append((host, port))

        def serve(self) -> None:
            pass

    monkeypatch.setattr("eventlog.sinks.http.receiver.Receiver", Stub)
    assert exit_code(words) == OK
    assert asked == [("127.0.0.1", 8781)]


@pytest.mark.parametrize("command", ["web", "receive"])
def test_two_addresses_at_once_are_refused(where: list[str], command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [command, "--http", "127.0.0.1:8781", "--port", "8782", *(where if command == "web" else [])]
    assert exit_code(words) == EX_USAGE
    assert "Leave out" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--port", "8781"], ["--http", "8781"]])
def test_the_pages_address_may_be_a_port(
    where: list[str], option: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(address: str, *_: object) -> None:
        raise ConfigError(f"asked for {address}")

    monkeypatch.setattr("eventlog.web.open_page.open_page", opened)
    ok("install", *where)
    assert exit_code(["web", *option, *where]) == EX_CONFIG
    assert capsys.readouterr().err == "eventlog: asked for 8781\n"
