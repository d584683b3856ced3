"""What a terminal shows, at three widths, to the letter; what a pager, a pipe and a program get in its place.

`EVENTLOG_GOLDEN=write` writes the sessions anew, to be read before they are committed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.cli.main import exit_code
from eventlog.core.errors import EX_USAGE
from tests.acceptance.command import at_a_terminal

GOLDEN = Path(__file__).parents[1] / "golden" / "terminal"
WIDTHS = (60, 80, 120)
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COMMANDS = (
    ("log",),
    ("log", "--key", "idu=1"),
    ("log", "--reason", "refused"),
    ("triggers",),
    ("explain", "3"),
    ("outputs", "list"),
    ("check",),
    ("config",),
    ("rules",),
    ("status",),
    ("track", "usr", "--events", "field"),
    ("untrack", "usr", "--dry-run"),
    ("outputs", "pause", "directory", "--why", "their disk is changed"),
    ("outputs", "list"),
    ("hold", "5", "--why", "their directory moves on Sunday"),
    ("purge", "--older-than", "1d", "--dry-run"),
    ("requeue", "--status", "E", "--dry-run"),
    ("status",),
    (
        "convert",
        "database",
        "sqlite:///app.db",
        "--status",
        "SE",
        "--out",
        "documents",
        "--engine",
        "local[1]",
    ),
)
WRONG = (
    ("lgo",),
    ("log", "--statsu", "E"),
    ("log", "--reason", "refusd"),
    ("log", "--since", "never"),
    ("explain", "x"),
    ("explain", "99"),
    ("outputs", "puse", "directory"),
    ("outputs", "pause", "directry"),
    ("track", "usrs"),
    ("untrack", "grp"),
    ("release", "7"),
    ("validate", "nowhere.xml"),
    ("status", "--config", "nowhere.toml"),
)
CONFIGURATION = """\
[[output]]
sink = "files"
name = "directory"
path = "out"

[[output]]
sink = "files"
name = "warehouse of the whole company"
format = "change-tables"
path = "lake"
"""
ROWS = (
    (1, "S", 1, "idu=1", "fname", None, "Jack"),
    (2, "S", 2, "idu=1", "fname", "Jack", "John"),
    (3, "E", 2, "idu=2", "lname", "Frost", "Möller-Wallenstein geb. von und zu Hohenstein-Auerbach"),
    (4, "W", 2, "idu=3", "fname", "\x1b[31mred", "山田太郎"),
    (5, "N", 5, "idu=1", None, None, None),
)


HOMELESS = ("rules", "validate", "lgo")
"""Commands that know no database."""


class Session:
    """Commands of one process; only what needs a terminal of its own is a process of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patched: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._patched = patched

    def ok(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """What a command printed that must end well."""
        code, printed, wrong = self.ended(*arguments, environment=environment)
        assert code == 0, wrong
        return printed

    def ended(self, *arguments: str, environment: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        """How a command ended, what it printed, and what it said beside that."""
        with self._patched.context() as patched:
            for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
                patched.delenv(name, raising=False)
            for name, value in (environment or {}).items():
                patched.setenv(name, value)
            placed = arguments[0] in HOMELESS or arguments[1:2] == ("database",) or "--config" in arguments
            where = () if placed else ("--database", "sqlite:///app.db")
            code = exit_code([*arguments, *where])
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err


@pytest.fixture
def session(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Session:
    """Commands in the folder of the log."""
    monkeypatch.chdir(folder)
    return Session(capsys, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which app.db has a log with rows of one day."""
    with closing(sqlite3.connect(tmp_path / "app.db")) as opened:
        opened.execute("CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname TEXT, lname TEXT)")
        engine = create_engine(f"sqlite:///{tmp_path / 'app.db'}")
        install(engine)
        track(engine, ["usr"])
        engine.dispose()
        opened.executemany(
            "INSERT INTO event_log (record_id, status, event_type, table_key, column_name, old_value, new_value,"
            " event_time, perpetrator, table_name) VALUES (?, ?, ?, ?, ?, ?, ?, '2025-03-23 10:57:19', 'app', 'usr')",
            ROWS,
        )
        opened.execute(
            "INSERT INTO event_log_outcome (record_id, status, reason, note) VALUES"
            " (3, 'E', 'refused', 'The receiver says: no such group, and goes on about it at some length.')"
        )
        opened.commit()
    return tmp_path


@pytest.mark.parametrize("width", WIDTHS)
def test_a_session_looks_so(session: Session, width: int) -> None:
    terminal = {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": str(width)}
    Path("eventlog.toml").write_text(CONFIGURATION)
    said = ""
    for command in (*COMMANDS, *WRONG):
        age_the_last_row(hours=3 if command == ("status",) else None)
        code, printed, beside = session.ended(*command, environment=terminal)
        end = f"(exit code {code})\n" if code else ""
        assert bool(code) is (command in WRONG and command[0] != "release"), beside
        said += f"$ eventlog {shlex.join(command)}\n{_steady(command, printed)}{beside}{end}\n"
    golden = GOLDEN / f"session-{width}.txt"
    if os.environ.get("EVENTLOG_GOLDEN") == "write":
        golden.write_text(said)
    assert said == golden.read_text()
    assert "\x1b" not in said


def age_the_last_row(*, hours: int | None) -> None:
    """Makes the row that waits so old, for commands that say how old it is; without hours, as old as the others."""
    time = "'2025-03-23 10:57:19'" if hours is None else f"datetime('now', '-{hours} hours', '-5 minutes')"
    with closing(sqlite3.connect("app.db")) as opened, opened:
        opened.execute(f"UPDATE event_log SET event_time = {time} WHERE record_id = 5")


def _steady(command: tuple[str, ...], printed: str) -> str:
    """What a command prints, without what is another one tomorrow: versions, how long ago something was, new keys."""
    match command[0]:
        case "check":
            return re.sub(r"^\w+ +(?:server|clock|rows|times) .*\n(?: .*\n)*", "", printed, flags=re.MULTILINE)
        case "config":
            return "".join(printed.splitlines(keepends=True)[:9])
    return printed


def test_letters_have_colours_on_a_terminal_and_nowhere_else(session: Session, folder: Path) -> None:
    wide = {"COLUMNS": "200"}
    coloured = session.ok("log", environment={**wide, "FORCE_COLOR": "1"})
    assert "\x1b[31mE\x1b[0m" in coloured
    assert "\x1b[32mS\x1b[0m" in coloured
    for plain in ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"TERM": "dumb", "FORCE_COLOR": "1"}, {}):
        assert "\x1b" not in session.ok("log", environment=wide | plain)


def test_times_are_short_on_a_terminal_and_whole_in_a_pipe(session: Session, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "app.db")) as opened:
        opened.execute("UPDATE event_log SET event_time = date('now') || ' 08:15:16.123456' WHERE record_id = 5")
        opened.commit()
    (short,) = [
        line
        for line in session.ok("log", "--status", "N", environment={"FORCE_COLOR": "1", "NO_COLOR": "1"}).splitlines()
        if "idu=1" in line
    ]
    assert short.split()[:4] == ["5", "N", "5", "08:15:16"]
    assert " 08:15:16.123456 " in session.ok("log", "--status", "N")


def test_rows_are_chosen_by_key_words_and_time(session: Session, folder: Path) -> None:
    def ids(*options: str) -> list[int]:
        rows = json.loads(session.ok("log", "--json", *options))
        return [row["record_id"] for row in rows]

    assert ids("--key", "idu=1") == [1, 2, 5]
    assert ids("--text", "NO SUCH GROUP") == [3]
    assert ids("--text", "john", "--table", "usr") == [2]
    assert ids("--since", "2025-03-23 10:57:19") == [1, 2, 3, 4, 5]
    assert ids("--since", "2025-03-23T12:57:20+02:00") == []
    assert ids("--since", "1h") == []
    assert ids("--since", "1000w", "--limit", "2") == [4, 5]
    for wrong in ("soon", "2025-13-01"):
        assert exit_code(["log", "--since", wrong, "--database", "sqlite:///app.db"]) == EX_USAGE


def test_a_pipe_gets_many_rows_a_part_at_a_time(session: Session, folder: Path) -> None:
    many = 12_345
    with closing(sqlite3.connect(folder / "app.db")) as opened:
        opened.execute(
            "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            " INSERT INTO event_log (record_id, status, event_type, table_key, table_name, column_name, new_value)"
            " SELECT i, CASE i % 3 WHEN 0 THEN 'E' ELSE 'S' END, 2, 'idu=' || i, 'usr', 'fname', 'Jack' FROM n",
            (many,),
        )
        opened.commit()
    for options, expected in (
        ((), list(range(many - 8_999, many + 1))),
        (("--status", "E"), [3, *(number for number in range(100, many + 1) if number % 3 == 0)]),
    ):
        where = ("--limit", "9000", *options)
        assert [row["record_id"] for row in json.loads(session.ok("log", "--json", *where))] == expected
        lines = session.ok("log", *where).splitlines()
        assert [int(line.split()[0]) for line in lines[2:]] == expected


def test_where_there_is_no_document_programs_get_null_and_the_reason_elsewhere(session: Session, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "app.db")) as opened:
        opened.execute("UPDATE event_log SET new_value = char(1) WHERE record_id = 2")
        opened.commit()
    for number, has_document in ((1, True), (2, False), (5, False)):  # nothing can be said of the value in row 2
        found = json.loads(session.ok("explain", str(number), "--json"))
        assert (found["document"] or "<").lstrip().startswith("<")
        assert (found["document"] is not None) is has_document, found
    found = json.loads(session.ok("explain", "2", "--json"))
    assert found["refused"] != []


def test_help_is_a_command_too(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["log"], ["decode", "gbase"]):
        assert exit_code([*words, "--help"]) == exit_code(["help", *words]) == 0
        asked, helped = capsys.readouterr().out.split("Usage: ")[1:]
        assert asked == helped
    for words, said in ((["lgo"], "Did you mean log?"), (["decode", "lniter"], "Did you mean linter?")):
        assert exit_code(["help", *words]) == exit_code(words) == EX_USAGE
        assert capsys.readouterr().err.count(said) == 2
    assert exit_code(["help", "log", "more"]) == EX_USAGE
    assert "has no commands of its own" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, completed",
    [
        ("untrack --database sqlite:///app.db u", ["plain,usr"]),
        ("refresh --database sqlite:///app.db main.u", ["plain,main.usr"]),
        ("log --database sqlite:///app.db --table e", []),
        ("untrack --database sqlite:///nowhere/app.db u", []),
        ("log --reason re", ["plain,restored", "plain,refused", "plain,retry"]),
        ("validate do", ["file,do"]),
        ("convert do", ["file,do"]),
        ("decode lin", ["plain,linter"]),
        ("convert --config mine.toml --output h", ["plain,hr-feed", "plain,http"]),
        ("convert --output h", []),
        ("convert --config nowhere.toml --output h", []),
    ],
)
def test_a_shell_completes_tables_files_reasons_and_outputs(folder: Path, words: str, completed: list[str]) -> None:
    outputs = "".join(f'[[output]]\nname = "{name}"\nsink = "stdout"\n' for name in ("hr-feed", "http", "other"))
    (folder / "mine.toml").write_text(outputs)
    asked = {
        "_EVENTLOG_COMPLETE": "bash_complete",
        "COMP_WORDS": f"eventlog {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    command = [sys.executable, "-m", "eventlog"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, **asked}, check=False)
    assert done.stdout.split() == completed, done.stderr


DATABASE = ("--database", "sqlite:///app.db")
PAGED = {"EVENTLOG_PAGER": "sed s/^/paged:/", "PAGER": "false"}


@pytest.mark.parametrize(
    "words, environment, paged",
    [
        (["log"], PAGED, True),
        (["log"], {"PAGER": "sed s/^/paged:/"}, True),
        (["log", "--no-pager"], PAGED, False),
        (["log"], PAGED | {"EVENTLOG_PAGER": "cat"}, False),
        (["status"], PAGED, False),
    ],
)
def test_a_pager_is_for_whoever_sits_at_a_terminal(
    folder: Path, words: list[str], environment: dict[str, str], paged: bool
) -> None:
    code, said = at_a_terminal(*words, *DATABASE, cwd=folder, environment=environment)
    assert (code, "paged:" in said) == (0, paged), said


def test_a_pipe_has_no_pager(session: Session) -> None:
    assert "paged:" not in session.ok("log", environment=PAGED)


def test_a_bar_stands_below_the_lines_of_the_journal(folder: Path) -> None:
    code, said = at_a_terminal("run", "--until-empty", "--out", "documents", *DATABASE, cwd=folder)
    lines = [CONTROLS.sub("", line).strip() for line in re.split(r"[\r\n]+", said)]
    assert code == 0
    assert any(re.match(r"publish .* 0/1 ", line) for line in lines), said
    records = [line for line in lines if "published" in line or "stopped" in line]
    assert len(records) >= 2
    assert [line for line in records if not re.match(r"\d{4}-\d\d-\d\dT", line)] == [], said


def test_a_question_is_asked_at_a_terminal_and_answered_there(session: Session, folder: Path) -> None:
    code, said = at_a_terminal("purge", "--older-than", "1d", *DATABASE, cwd=folder, answers="y\n")
    assert code == 0
    assert re.search(r"4 rows would be deleted\.[\s\S]*Continue\? \[y/N\]: [\s\S]*4 rows deleted\.", said), said
    assert [row["record_id"] for row in json.loads(session.ok("log", "--json"))] == [5]
