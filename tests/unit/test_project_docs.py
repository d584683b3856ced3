"""The documentation: its examples run, its generated pages are the program's, and every decision is listed."""

from __future__ import annotations

import doctest
import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if ">>> " in page.read_text()], ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_examples_say_what_the_program_does(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_readme_shows_what_the_demo_prints() -> None:
    shown = re.search(r"```text\n(4\. .+?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    printed = CliRunner().invoke(import_module("eventlog.cli.main").main, ["demo"]).output
    assert shown is not None
    assert len(shown[1].splitlines()) > 20
    assert _lines(shown[1]) - _lines(printed) == set()


def test_generated_pages_are_as_they_would_be_made_now() -> None:
    assert GENERATE["outdated"]() == [], "run ./dev docs and commit what it wrote"


def test_a_generated_page_that_differs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outdated = GENERATE["outdated"]
    page = tmp_path / "rules.md"
    monkeypatch.setitem(outdated.__globals__, "pages", lambda: {page: "as it is now"})
    assert outdated() == [page]
    page.write_text("as it was")
    assert outdated() == [page]
    page.write_text("as it is now")
    assert outdated() == []


def test_every_decision_is_listed_and_numbered_in_turn() -> None:
    listed = (ROOT / "docs" / "decisions" / "index.md").read_text() + (ROOT / "mkdocs.yml").read_text()
    assert [listed.count(decision.name) for decision in DECISIONS] == [2] * len(DECISIONS)
    assert [int(decision.name[:4]) for decision in DECISIONS] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: decision.stem)
def test_a_decision_has_its_four_parts(decision: Path) -> None:
    text = decision.read_text()
    assert re.search(r"^Status: (proposed|accepted|replaced by \d{4})$", text, re.MULTILINE)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()


def _lines(text: str) -> set[str]:
    return {line.rstrip() for line in text.splitlines()}
