"""`eventlog init` and `eventlog config` as a user calls them: with options, at a terminal, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from eventlog.config.settings import load
from eventlog.core.errors import EX_CONFIG, EX_USAGE
from tests.acceptance.command import at_a_terminal, eventlog, ok
from tests.support.levels import ROOT

URL = "postgresql+psycopg://publisher:hunter%402@db.example.net/app"


def test_options_are_enough_and_the_secret_stays_out(tmp_path: Path) -> None:
    done = eventlog(
        "init", "--database", URL, "--log", "capture.event_log", "--schema", "app", "--table", "usr", cwd=tmp_path
    )
    assert done.returncode == 0
    text = (tmp_path / "eventlog.toml").read_text()
    assert "hunter" not in text + done.stderr
    assert "It reads DB_PASSWORD from the environment." in done.stderr
    assert done.stderr.splitlines()[-4:] == [
        "  eventlog install",
        "  eventlog track usr",
        "  eventlog check",
        "  eventlog run",
    ]
    config = load(tmp_path / "eventlog.toml", {"DB_PASSWORD": "hunter@2"})
    assert config.source.url == URL
    assert (config.source.log, config.source.schema) == ("capture.event_log", "app")


def test_a_file_elsewhere_is_named_in_what_comes_next(tmp_path: Path) -> None:
    done = eventlog("init", "my files.toml", "--database", "sqlite:///app.db", "--output", "stdout", cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == "  eventlog run --config 'my files.toml'"
    assert ok("config", "--config", "my files.toml", cwd=tmp_path)


def test_a_file_that_exists_is_replaced_only_with_force(tmp_path: Path) -> None:
    for name in ("eventlog.toml", "eventlog.schema.json"):
        (tmp_path / name).write_text("mine")
    refused = eventlog("init", "--database", "sqlite:///app.db", cwd=tmp_path)
    assert refused.returncode == EX_USAGE
    assert (
        refused.stderr == "eventlog: eventlog.toml exists already. Name another file, or use --force to replace it.\n"
    )
    assert {path.read_text() for path in tmp_path.iterdir()} == {"mine"}
    ok("init", "other.toml", "--database", "sqlite:///app.db", cwd=tmp_path)
    assert (tmp_path / "eventlog.schema.json").read_text() == "mine"
    ok("init", "--database", "sqlite:///app.db", "--force", cwd=tmp_path)
    assert "mine" not in {path.read_text() for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((), "No database is named, and nobody can be asked here. Use --database URL."),
        (("--database", "db2://x"), "eventlog does not know the database 'db2'"),
        (("--database", "sqlite:///app.db", "--output", "http"), "An output http needs its url. Use --place PLACE."),
        (("--database", "sqlite:///app.db", "--output", "http", "--place", "ftp://x"), "no address"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_written(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = eventlog("init", *arguments, cwd=tmp_path)
    assert done.returncode in (EX_USAGE, EX_CONFIG)
    assert said in done.stderr
    assert [*tmp_path.iterdir()] == []


def test_somebody_at_a_terminal_is_asked_for_what_no_option_says(tmp_path: Path) -> None:
    code, seen = at_a_terminal(
        "init", "--log", "capture.event_log", cwd=tmp_path, answers=f"{URL}\napp\nusr grp\nfiles\ndocuments\n"
    )
    assert code == 0, seen
    config = load(tmp_path / "eventlog.toml", {"DB_PASSWORD": "hunter@2"})
    assert (config.source.url, config.source.log, config.source.schema) == (URL, "capture.event_log", "app")
    assert config.output[0].name == "files"
    assert "eventlog track usr grp" in seen


def test_enter_takes_what_is_usual(tmp_path: Path) -> None:
    code, seen = at_a_terminal("init", cwd=tmp_path, answers="sqlite:///app.db\n\n\n\n\n")
    assert code == 0, seen
    ok("init", "other.toml", "--database", "sqlite:///app.db", cwd=tmp_path)
    assert (tmp_path / "eventlog.toml").read_text() == (tmp_path / "other.toml").read_text()


def test_the_configuration_in_force_is_told_with_its_places(tmp_path: Path) -> None:
    ok("init", "--database", URL, cwd=tmp_path)
    environment = {"DB_PASSWORD": "hunter@2", "EVENTLOG_PUBLISHER__BATCH_SIZE": "7"}
    environment["COLUMNS"] = "200"
    printed = ok("config", "--log", "x.y", cwd=tmp_path, environment=environment)
    rows = {line.split()[0]: re.split(r" {3,}", line.strip())[1:] for line in printed.splitlines()[2:]}
    assert rows["source.url"] == [
        '"postgresql+psycopg://publisher:${DB_PASSWORD}@db.example.net/app"',
        "eventlog.toml:7",
    ]
    assert rows["source.log"] == ['"x.y"', "--log"]
    assert rows["publisher.batch_size"] == ["7", "EVENTLOG_PUBLISHER__BATCH_SIZE"]
    assert rows["publisher.coalesce"] == ["false", "default"]
    assert "hunter" not in printed
    told = json.loads(ok("config", "--json", "--all", cwd=tmp_path, environment=environment))
    places = {one["key"]: (one["value"], one["origin"], one["where"]) for one in told}
    assert places["publisher.batch_size"] == (7, "environment", "EVENTLOG_PUBLISHER__BATCH_SIZE")
    assert places["source.gbase.trim"] == (False, "default", None)


def test_the_schema_is_printed_and_lies_beside_a_first_file(tmp_path: Path) -> None:
    ok("init", "--database", "sqlite:///app.db", cwd=tmp_path)
    printed = ok("config", "schema", cwd=tmp_path)
    assert (tmp_path / "eventlog.schema.json").read_text() == printed
    assert printed == (ROOT / "eventlog/config/eventlog.schema.json").read_text(), (
        "tests/unit/docs/test_schema.py asks more"
    )
