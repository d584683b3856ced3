"""What commands print into a pipe: a line for each row, with whole values; COLUMNS makes it a terminal's page."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from rich.cells import cell_len

from eventlog.cli.main import COMMANDS, exit_code
from tests.acceptance.test_reports import NOT_REPORTING

TABLE: Final = "personnel_of_every_house_and_of_all_its_branches_abroad_人员登记"
KEY: Final = "k" * 120 + "钥匙" * 40
SENTENCE: Final = "the receiver says that it knows no such group 没有 and goes on about that;"
WORDS: Final = " ".join([SENTENCE] * 4)
OUTPUT: Final = "warehouse of the whole company and of its branches"
CONFIGURATION: Final = f"""\
[publisher]
allow_loopback = true

[[output]]
name = "{OUTPUT}"
format = "change-tables"
sink = "database"
url = "sqlite:///lake.db"

[[output]]
name = "second"
sink = "files"
path = "out"

[[output.steps]]
do = "rename"
attributes = {{ words = "Words" }}
"""
PATIENCE: Final = ("--wait", "0")
REPORTS: Final[Sequence[tuple[str, ...]]] = (
    ("check",),
    ("config",),
    ("rules",),
    ("log",),
    ("log", "--status", "E"),
    ("status",),
    ("explain", "1"),
    ("explain", "3"),
    ("triggers",),
    ("track", TABLE, "--events", "image"),
    ("untrack", TABLE, "--dry-run"),
    ("outputs", "list"),
    ("outputs", "skip", OUTPUT, "--all", "--dry-run"),
    ("outputs", "pause", OUTPUT, "--why", WORDS),
    ("outputs", "resume", OUTPUT),
    ("hold", "3", "--why", WORDS),
    ("log", "--status", "N"),
    ("release", "3"),
    ("requeue", "2", "--dry-run"),
    ("purge", "--older-than", "0s", "--dry-run"),
    ("policy", "test", "samples.jsonl"),
    ("validate", "bad.xml"),
    ("convert", "database", "sqlite:///app.db", "--out", "d" * 150, "--config", "eventlog.toml"),
    ("apply", "--database", "sqlite:///lake.db"),
    ("verify", TABLE, "--output", OUTPUT, *PATIENCE),
    ("refresh", TABLE),
    ("install",),
    ("upgrade", "--to", "0001", "--dry-run"),
    ("uninstall", "--purge", "--dry-run"),
)
GROUPS: Final = frozenset({"convert", "outputs", "policy"})
DATA: Final = frozenset({"catalog", "rights"})
"""They print JSON and SQL."""

HOMELESS: Final = ("rules", "validate", "apply")
Piped = Callable[..., list[str]]


@pytest.fixture
def piped(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Piped:
    """Gives the lines that a command prints into a pipe; its log has long names and reasons."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def lines(*command: str, columns: int | None = None, codes: Sequence[int] = (0,)) -> list[str]:
        with monkeypatch.context() as patched:
            if columns is not None:
                patched.setenv("COLUMNS", str(columns))
            where = (
                () if command[0] in HOMELESS or command[1:2] == ("database",) else ("--database", "sqlite:///app.db")
            )
            code = exit_code([*command, *where])
        printed = capsys.readouterr()
        assert code in codes, printed.err
        return printed.out.splitlines()

    Path("eventlog.toml").write_text(CONFIGURATION)
    Path("bad.xml").write_text(f"<nds><input><{'unknown' * 30}/></input></nds>")
    Path("samples.jsonl").write_text(
        json.dumps({"op": "add", "table": TABLE, "key": f"id={KEY}", "new": {"words": WORDS}})
    )
    with closing(sqlite3.connect("app.db")) as database:
        database.execute(f'CREATE TABLE "{TABLE}" (id TEXT PRIMARY KEY, words TEXT)')
        lines("install")
        lines("track", TABLE, "--events", "image")
        database.execute(f'INSERT INTO "{TABLE}" VALUES (?, ?)', (KEY, WORDS))
        database.commit()
        lines("run", "--until-empty")
        database.execute(f'UPDATE "{TABLE}" SET words = ?', (f"new {WORDS}",))
        database.execute(f'INSERT INTO "{TABLE}" VALUES (?, ?)', ("短" * 50, WORDS))
        database.execute("UPDATE event_log SET status = 'E' WHERE record_id = 2")
        database.execute(
            "INSERT INTO event_log_outcome (record_id, status, reason, note) SELECT 2, 'E', 'refused', ?",
            (WORDS,),
        )
        database.commit()
    return lines


def test_with_columns_no_line_of_a_report_is_longer(piped: Piped) -> None:
    assert {command[0] for command in REPORTS} | DATA == {*COMMANDS} - (NOT_REPORTING - GROUPS)
    for command in REPORTS:
        lines = piped(*command, columns=100, codes=(0, 1, 65))
        assert lines, command
        long = [line for line in lines if cell_len(line) > 100]
        assert [line for line in long if not of_document(line)] == [], command


def test_a_pipe_gets_whole_values(piped: Piped) -> None:
    lines = piped("log")
    assert len(lines) == 5  # a row is a line
    assert [line.split()[:3] for line in lines[2:]] == [[*"1S5"], [*"2E6"], [*"3N5"]]
    assert KEY in lines[3]
    assert WORDS in lines[3]
    assert any(f"The last error is row 2: {WORDS}" in line for line in piped("status"))


def test_sentences_are_broken_between_words(piped: Piped) -> None:
    told = " ".join(piped("status", columns=100))
    assert f"The last error is row 2: {WORDS}" in told
    assert WORDS.rstrip(";") in " ".join(piped("explain", "2", columns=100))


def test_documents_json_and_statements_are_never_cut(piped: Piped) -> None:
    document = "\n".join(filter(of_document, piped("explain", "1")))
    assert f"id={KEY}," in document
    assert WORDS in document
    _, row, _ = json.loads("\n".join(piped("log", "--json")))
    assert (row["table_name"], row["note"]) == (TABLE, WORDS)
    assert max(map(len, piped("log", "--json"))) > 200
    _, row, _ = csv.DictReader(piped("log", "--csv"))
    assert (row["table_key"], row["note"], row["column_name"]) == (f"id={KEY}", WORDS, "")
    statements = (("track", TABLE), ("install",), ("uninstall", "--purge"))
    for command in (*((*words, "--sql") for words in statements), ("catalog",)):
        assert piped(*command) == piped(*command, columns=1000), command


def of_document(line: str) -> bool:
    return line.lstrip().startswith("<")
