"""The page about the Python API: it has every name that the package offers, and what it shows works."""

from __future__ import annotations

import re
import runpy
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import eventlog
import eventlog.plugins
import eventlog.testing
from docs.stable import SPARK, STABLE
from tests.acceptance.command import ok
from tests.support.plugins import proven_by_pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "api.md").read_text()
BLOCKS = re.findall(r"^```python\n(.+?)^```$", PAGE, re.DOTALL | re.MULTILINE)
DECIDING, PUBLISHING, TESTING = BLOCKS


def run(folder: Path, code: str) -> None:
    (folder / "shown.py").write_text(code)
    runpy.run_path(str(folder / "shown.py"))


def write(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "app.db")) as connection, connection:
        connection.execute(statement)


def test_every_name_of_the_package_is_on_the_page() -> None:
    shown = re.findall(r"^      members: \[(.+)\]$", PAGE, re.MULTILINE)
    assert len(shown) == len(STABLE)
    assert {*shown[0].split(", ")} == {*eventlog.__all__} - {"ABSENT", "__version__"}
    assert {*", ".join(shown).split(", ")} >= {*eventlog.plugins.__all__, *eventlog.testing.__all__} - {
        "EVERY_DOCUMENT",
        "PEOPLE",
    }


def test_pages_import_nothing_but_what_is_stable() -> None:
    pages = [ROOT / "README.md", *(page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts)]
    stable = {*STABLE, SPARK, "eventlog_dlt", "eventlog.xds", "eventlog.masks"}
    wrong = [
        (page.name, module)
        for page in pages
        for module in re.findall(
            r"(?:from|import) (eventlog[\w.]*)|`(eventlog\.[a-z_]+(?:\.[a-z_]+)+)[.`]", page.read_text()
        )
        for module in module
        if module and module not in stable
    ]
    assert wrong == []


def test_the_rules_decide_as_the_page_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, DECIDING)
    said = capsys.readouterr().out
    assert '<modify class-name="usr"' in said
    assert said.splitlines()[-1].startswith("(43,) E invalid ")


def test_a_publisher_runs_as_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path / 'app.db'}"
    (tmp_path / "eventlog.toml").write_text(f'[source]\nurl = "{url}"\n[[output]]\nsink = "files"\npath = "out"\n')
    ok("install")
    write(tmp_path, "CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname TEXT)")
    ok("track", "usr")
    write(tmp_path, "INSERT INTO usr VALUES (1, 'Ann')")
    run(tmp_path, PUBLISHING)
    assert capsys.readouterr().out.splitlines()[:1] == ["1 rows, 1 documents"]
    assert len([*(tmp_path / "out").glob("*.xml")]) == 1


def test_a_users_test_passes_as_the_page_shows(tmp_path: Path) -> None:
    plugins, _, test = TESTING.partition("\n")
    (tmp_path / "conftest.py").write_text(plugins)
    (tmp_path / "test_shown.py").write_text(test)
    assert "1 passed" in proven_by_pytest("--basetemp", tmp_path / "base", tmp_path, cwd=tmp_path)
