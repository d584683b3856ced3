"""Commands and the configuration file: what it says of the log holds for `install` too, and beside --database."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect

from eventlog.cli.main import exit_code
from eventlog.core.errors import EX_CONFIG, EX_USAGE, OK
from eventlog.sql.names import NEW_ORDER, OLD_ORDER, STANDARD
from tests.support.logged import run

OWN = ("id", "letter", "kind", "at", "who", "tab", "k", "col", "before", "after")
USR = "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40))"
Configure = Callable[..., None]


@pytest.fixture
def configure(sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Writes eventlog.toml into the folder that commands run in."""
    monkeypatch.chdir(tmp_path)

    def write(columns: object, log: str = "event_log", url: str = str(sqlite.url)) -> None:
        source = f"[source]\nurl = {json.dumps(url)}\nlog = {json.dumps(log)}\ncolumns = {json.dumps(columns)}\n"
        Path("eventlog.toml").write_text(source, encoding="utf-8")

    return write


def published(capfd: pytest.CaptureFixture[str], *where: str) -> str:
    capfd.readouterr()
    assert exit_code(["run", "--once", *where]) == OK
    return capfd.readouterr().out


@pytest.mark.parametrize(
    "columns, order, names",
    [
        ("auto", NEW_ORDER, STANDARD),
        ("new", NEW_ORDER, STANDARD),
        ("old", OLD_ORDER, STANDARD),
        (OWN, NEW_ORDER, OWN),
        (NEW_ORDER, NEW_ORDER, STANDARD),
    ],
)
def test_a_log_is_made_as_it_will_be_read(
    sqlite: Engine,
    configure: Configure,
    columns: object,
    order: tuple[str, ...],
    names: tuple[str, ...],
    capfd: pytest.CaptureFixture[str],
) -> None:
    configure(columns, "own_log")
    run(sqlite, USR)
    assert exit_code(["install"]) == OK
    made = [str(column["name"]) for column in inspect(sqlite).get_columns("own_log")]
    assert made == [*[names[STANDARD.index(column)] for column in order], "eventlog_context"]
    assert exit_code(["install", "--sql"]) == OK
    printed = capfd.readouterr().out
    assert "CREATE TABLE own_log_mark" in printed
    assert names[3] in printed
    assert exit_code(["track", "usr"]) == OK
    run(sqlite, "INSERT INTO usr VALUES (1, 'a')")
    assert '<value type="string">a</value>' in published(capfd)
    assert exit_code(["check"]) == OK
    assert exit_code(["uninstall", "--yes"]) == OK
    assert inspect(sqlite).get_table_names() == ["usr"]


def test_an_order_that_contradicts_the_configuration_is_refused(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("old")
    assert exit_code(["install", "--columns", "new"]) == EX_CONFIG
    assert "contradicts source.columns = 'old'" in capsys.readouterr().err
    assert exit_code(["install", "--columns", "old"]) == OK
    configure("new by bytes", "other_log")
    for more in ([], ["--sql"]):
        assert exit_code(["install", *more]) == EX_CONFIG
        assert "there is none" in capsys.readouterr().err


def test_the_file_counts_beside_a_database_that_is_named(
    sqlite: Engine, configure: Configure, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    configure("auto", "own_log", url="postgresql://${NO_SUCH_SECRET}@nowhere/app")
    where = ["--database", str(sqlite.url)]
    assert exit_code(["install", *where]) == OK
    assert inspect(sqlite).has_table("own_log")
    assert exit_code(["install", "--log", "third_log", *where]) == OK
    assert not inspect(sqlite).has_table("event_log")
    assert exit_code(["install", "--no-config", *where]) == OK
    assert inspect(sqlite).has_table("event_log")
    assert exit_code(["status"]) == EX_CONFIG
    assert "NO_SUCH_SECRET" in capsys.readouterr().err
    assert exit_code(["status", "--no-config"]) == EX_CONFIG
    assert "No database is named" in capsys.readouterr().err


def test_a_table_is_found_without_its_schema(sqlite: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--no-config", "--database", str(sqlite.url)]
    assert exit_code(["install", *where]) == OK
    columns = "record_id, status, event_type, event_time, table_name, table_key"
    rows = [(1, "app.usr"), (2, "hr.my_grp"), (3, "app.my_grp"), (4, "hr.myxgrp"), (5, "old"), (6, "app.old")]
    values = ", ".join(f"({number}, 'E', 6, '2020-01-01 00:00:00', '{table}', 'id=1')" for number, table in rows)
    run(sqlite, f"INSERT INTO event_log ({columns}) VALUES {values}")
    capsys.readouterr()

    def shown(table: str) -> list[int]:
        assert exit_code(["log", "--json", "--table", table, *where]) == OK
        return [row["record_id"] for row in json.loads(capsys.readouterr().out)]

    assert (shown("USR"), shown("app.usr"), shown("old"), shown("nowhere")) == ([1], [1], [5], [])
    assert exit_code(["log", "--table", "use", *where]) == OK
    assert "No row of the log is about use. Did you mean app.usr?" in capsys.readouterr().out
    assert exit_code(["purge", "--older-than", "1d", "--table", "my_grp", *where]) == EX_USAGE
    assert "my_grp may mean app.my_grp or hr.my_grp; say which" in capsys.readouterr().err
    assert exit_code(["requeue", "--status", "E", "--table", "usr", *where]) == OK
    assert "1 row waits again" in capsys.readouterr().out
    assert exit_code(["purge", "--older-than", "1d", "--yes", "--table", "old", *where]) == OK
    assert "1 row deleted" in capsys.readouterr().out
    assert exit_code(["purge", "--older-than", "1d", "--yes", "--table", "gone", *where]) == OK
    told = capsys.readouterr()
    assert "0 rows deleted" in told.out
    assert "`eventlog triggers` lists what is tracked" in told.err
