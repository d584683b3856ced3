"""The documentation: its examples and its tutorial run, its generated pages are the program's, the tests it names exist."""

from __future__ import annotations

import ast
import doctest
import os
import re
import runpy
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from eventlog.config.settings import from_settings
from eventlog.core.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))
SECTIONS: dict[str, Any] = GENERATE["TABLES"]
SAID_OF = GENERATE["said_of"]
BOUNDS = [(section, key, bounds) for section in SECTIONS for key, bounds in SAID_OF(section)["bounds"].items()]
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


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
    # A process of its own: what other tests have done to this one must not show in the pages.
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout + said.stderr) == (0, ""), "run ./dev docs and commit what it wrote"


def test_a_generated_page_that_differs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    differences = GENERATE["differences"]
    page = tmp_path / "rules.md"
    monkeypatch.setitem(differences.__globals__, "DOCS", tmp_path)
    monkeypatch.setitem(differences.__globals__, "pages", lambda: {page: "as it is now"})
    assert differences()[-1] == "+as it is now"
    page.write_text("as it was")
    assert differences()[-2:] == ["-as it was", "+as it is now"]
    page.write_text("as it is now")
    assert differences() == []


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_has_a_meaning_and_every_meaning_a_key(section: str) -> None:
    keys = {field.encode_name for kind in SECTIONS[section] for field in msgspec.structs.fields(kind)}
    keys |= {"sink"} if section == "output" else set()
    said = SAID_OF(section)
    assert said["keys"].keys() == keys
    assert said["bounds"].keys() <= keys


@pytest.mark.parametrize("section, key, bounds", BOUNDS, ids=str)
def test_the_bounds_of_a_key_are_those_that_are_kept(section: str, key: str, bounds: list[float | str]) -> None:
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(SECTIONS[section][0])}
    low, high = (float(defaults[end] if isinstance(end, str) else end) for end in bounds)
    for value in (low, high):
        from_settings(placed(section, key, value), {}, origin="the page")
    for value in (low - 1, high + 1):
        with pytest.raises(ConfigError, match=r"\w+\.\w+ is "):
            from_settings(placed(section, key, value), {}, origin="the page")


def placed(section: str, key: str, value: float) -> dict[str, Any]:
    """A configuration that sets this key."""
    whole = int(value) if value == int(value) else value
    outer, _, inner = section.partition(".")
    table = {inner: {key: whole}} if inner else {key: whole}
    return {outer: [{"sink": "files", "path": "out", **table}]} if outer == "output" else {outer: table}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_are_named_exist(page: Path) -> None:
    named = NAMED.findall(page.read_text())
    assert [name for name in named if name[1] not in _functions(ROOT / name[0])] == []
    assert named or page.name != "delivery.md"


def test_the_tutorial_does_what_it_shows(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(sh|text)\n(.+?)^```$", TUTORIAL, re.DOTALL | re.MULTILINE)
    script = "set -e\nexec 2>&1\n" + "".join(f"{text}echo '@@@'\n" for language, text in blocks if language == "sh")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    done = subprocess.run(
        ["sh"],
        input=script,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=kept | {"PATH": path, "NO_COLOR": "1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    printed = iter(done.stdout.split("@@@"))
    shown = ""
    for language, text in blocks:
        shown = next(printed) if language == "sh" else shown
        assert language == "sh" or re.search(_as_pattern(text), shown), f"{text}\n\nis not in\n\n{shown}"


def test_every_decision_is_listed_and_numbered_in_turn() -> None:
    listed = (ROOT / "docs" / "decisions" / "index.md").read_text() + (ROOT / "mkdocs.yml").read_text()
    assert [listed.count(decision.name) for decision in DECISIONS] == [2] * len(DECISIONS)
    assert [int(decision.name[:4]) for decision in DECISIONS] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: decision.stem)
def test_a_decision_has_its_four_parts(decision: Path) -> None:
    text = decision.read_text()
    assert re.search(r"^Status: (proposed|accepted|replaced by \d{4})$", text, re.MULTILINE)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]


def test_the_map_of_layers_is_that_of_import_linter() -> None:
    contract, *_ = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [re.findall(r"\w+", layer) for layer in contract["layers"]]
    shown = re.findall(r"^\| (`[a-z].+?) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    rows = [row for row in (re.findall(r"`(\w+)`", names) for names in shown) if row]
    places = [{place for place, layer in enumerate(layers) if name in layer} for row in rows for name in row]
    assert [len(found) for found in places] == [1] * len(places)
    assert sorted(places, key=min) == places
    folders = {folder.name for folder in (ROOT / "eventlog").iterdir() if (folder / "__init__.py").exists()}
    assert folders - {name for row in rows for name in row} == set()


def test_the_levels_of_tests_are_the_folders_that_there_are() -> None:
    shown = set(re.findall(r"^\| `tests/(\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE))
    levels = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")}
    assert levels - shown == set()
    assert {name for name in shown if not (ROOT / "tests" / name).is_dir()} == set()


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()


def _functions(file: Path) -> set[str]:
    """Names of the functions in a file; none where there is no file."""
    tree = ast.parse(file.read_text() if file.exists() else "")
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} | ({""} if file.exists() else set())


def _as_pattern(shown: str) -> str:
    """A pattern for output in which these lines come in this order, however wide its columns are; … stands for anything."""
    lines = (" ".join(line.split()) for line in shown.splitlines())
    return "(?s:.*)".join(".*".join(map(_words, line.split("…"))) for line in lines)


def _words(text: str) -> str:
    return r"[^\S\n]+".join(re.escape(word) for word in text.split())


def _lines(text: str) -> set[str]:
    return {line.rstrip() for line in text.splitlines()}
