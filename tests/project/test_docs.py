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
from lxml import etree

from docs import readability
from docs.derived import CODES
from docs.pictures import COLUMNS
from eventlog.cli import mishaps
from eventlog.config.settings import from_settings, sections_of
from eventlog.core import errors
from eventlog.core.errors import ConfigError
from eventlog.core.model import Reason
from eventlog.core.registry import names
from eventlog.sql.names import NEWEST_MIGRATION

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
PROMISES = ROOT / "tests" / "promises.md"
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))
SECTIONS: dict[str, Any] = GENERATE["TABLES"]
SAID_OF = GENERATE["said_of"]
CONFIGURATION = (ROOT / "docs" / "reference" / "configuration.md").read_text()
BOUNDS = [(section, key, bounds) for section in SECTIONS for key, bounds in SAID_OF(section)["bounds"].items()]
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
LEFT_OUT = "(lines left out)"
SVG = "{http://www.w3.org/2000/svg}"
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if ">>> " in page.read_text()], ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_examples_say_what_the_program_does(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_pages_can_be_read() -> None:
    """No page is harder than a newspaper for grown-ups; test_people.py counts what a reader must read."""
    hard = {page.name: found for page in PAGES if (found := readability.ease(page.read_text())) is not None}
    assert len(hard) > 50
    assert {name: found for name, found in hard.items() if found < 55} == {}


def test_prose_has_short_lines() -> None:
    """Tables and code are as wide as they must be; generated pages are nobody's to edit."""
    names = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/measured.md", "bench/mutation/README.md")
    others = [ROOT / name for name in (*names, "eventlog/README.md", "tests/README.md")]
    pages = [*readability.pages(), *DECISIONS, *others]
    written = [page for page in pages if GENERATE["MADE"] not in page.read_text()]
    lines = [(page.name, line) for page in written for line in readability.CODE.sub("", page.read_text()).splitlines()]
    assert len(lines) > 3000
    assert [line for _, line in lines if len(line) > 120 and not line.lstrip().startswith(("|", "<"))] == []


def test_the_readme_is_a_page_of_words_and_not_of_figures() -> None:
    lines = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) <= 120
    assert sum(line.startswith("|") for line in lines) <= len(lines) / 4


def test_the_readme_shows_what_the_demo_prints() -> None:
    [name] = re.findall(r"\((docs/pictures/\w+\.svg)\)", (ROOT / "README.md").read_text())
    picture = etree.fromstring((ROOT / name).read_bytes())
    shown = [text for element in picture.iter(f"{SVG}text") if (text := "".join(map(str, element.itertext())).rstrip())]
    printed = CliRunner().invoke(import_module("eventlog.cli.main").main, ["demo"]).output
    assert len(shown) > 40
    cut = {line[:COLUMNS].rstrip() for line in printed.splitlines()}
    assert [line for line in shown if line not in cut and "product version" not in line] == []


def test_the_readme_shows_the_page_in_light_and_dark() -> None:
    shown = re.findall(r'"(docs/pictures/page-\w+\.png)"', (ROOT / "README.md").read_text())
    assert sorted(shown) == ["docs/pictures/page-dark.png", "docs/pictures/page-light.png"]
    assert all((ROOT / name).read_bytes().startswith(b"\x89PNG") for name in shown)


def test_generated_pages_are_as_they_would_be_made_now() -> None:
    # A process of its own: what other tests have done to this one must not show in the pages.
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout + said.stderr) == (0, ""), "run ./dev docs and commit what it wrote"


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_has_a_meaning_and_every_meaning_a_key(section: str) -> None:
    keys = {field.encode_name for kind in SECTIONS[section] for field in msgspec.structs.fields(kind)}
    keys |= {tag for kind in SECTIONS[section] if (tag := kind.__struct_config__.tag_field)}
    said = SAID_OF(section)
    of_one_kind = {f"{kind.__struct_config__.tag}.{key}" for kind in SECTIONS[section] for key in keys}
    assert said["keys"].keys() - of_one_kind == keys
    assert said["bounds"].keys() <= keys


@pytest.mark.parametrize("section", SECTIONS)
def test_a_key_is_required_where_a_file_without_it_is_refused(section: str) -> None:
    _, _, behind = CONFIGURATION.partition(
        f"## [[{section}]]\n" if section in GENERATE["SEVERAL"] else f"## [{section}]\n"
    )
    kinds = SECTIONS[section]
    several = kinds[0].__struct_config__.tag_field
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| required \|", behind.partition("\n## ")[0], re.MULTILINE)
    shown = [name for name, row in rows for _ in (row.partition(" | ")[0].split(", ") if several else "1")]
    required = [field.encode_name for kind in kinds for field in msgspec.structs.fields(kind) if field.required]
    assert sorted(shown) == sorted(required)


def test_a_place_for_documents_that_is_a_database_is_not_called_an_address() -> None:
    rows = re.findall(r"^\| `url` \| `(\w+)` \| text \| required \| (.+) \|$", CONFIGURATION, re.MULTILINE)
    said = dict(rows)
    assert said["database"].startswith("The database, as a SQLAlchemy URL.")
    assert "POST" in said["http"]
    assert "POST" not in said["database"]


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
    table: dict[str, Any] = {inner: {key: whole}} if inner else {key: whole}
    if inner.replace("_", "-") in names("formats"):
        table["format"] = inner.replace("_", "-")
    return {outer: [{"sink": "files", "path": "out", **table}]} if outer == "output" else {outer: table}


def test_the_words_of_other_pages_are_explained_and_no_others() -> None:
    words = (ROOT / "docs" / "concepts.md").read_text().partition("## Words")[2].partition("\nNot captured")[0]
    explained = {
        word.lower()
        for row in re.findall(r"^\| (\*\*.+?) \|", words, re.MULTILINE)
        for word in re.findall(r"\*\*(.+?)\*\*", row)
    }
    reasons = {str(reason) for reason in (Reason.LOOPBACK, Reason.SUPERSEDED, Reason.VANISHED)}
    needed = {
        "backlog",
        "lag",
        "lease",
        "standby",
        "query-back",
        "state tables",
        "hold",
        "release",
        "requeue",
        "refresh",
    }
    assert (reasons | needed) - explained == set()
    others = "\n".join(page.read_text().lower() for page in PAGES if page.name != "concepts.md").replace("-", " ")
    assert [word for word in explained if word.replace("-", " ") not in others] == []


@pytest.mark.parametrize("page", [*PAGES, PROMISES], ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_are_named_exist(page: Path) -> None:
    named = NAMED.findall(page.read_text())
    assert [name for name in named if name[1] not in _functions(ROOT / name[0])] == []
    assert named or page.name != "promises.md"


@pytest.mark.in_turn
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
        env=kept | {"PATH": path, "NO_COLOR": "1", "COLUMNS": "200"},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    printed = iter(done.stdout.split("@@@"))
    shown = ""
    for language, text in blocks:
        shown = next(printed) if language == "sh" else shown
        assert language == "sh" or re.search(as_pattern(text), without_rules(shown)), f"{text}\n\nis not in\n\n{shown}"


def test_every_exit_code_is_in_the_table() -> None:
    ours = [errors, mishaps, import_module("eventlog.verify.command")]
    named = {"OK", "INTERRUPTED", "TERMINATED", "CLOSED_PIPE", "_DIFFERS"}
    known = {code for one in ours for name, code in vars(one).items() if name in named or name.startswith("EX_")}
    assert set(CODES) == known | {errors.EventlogError.exit_code}
    for code, (name, _) in CODES.items():
        assert getattr(errors, name, code) == code


def test_decisions_are_few_and_each_is_listed_once() -> None:
    assert len(DECISIONS) <= 18  # rules by the shape of a row came
    listed = (ROOT / "docs" / "decisions" / "index.md").read_text()
    assert [listed.count(f"({decision.name})") for decision in DECISIONS] == [1] * len(DECISIONS)


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: decision.stem)
def test_a_decision_has_its_four_parts(decision: Path) -> None:
    text = decision.read_text()
    assert re.search(r"^Status: (proposed|accepted|replaced by \d{4})$", text, re.MULTILINE)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert len(text.split()) <= (600 if decision.stem == "0055-the-journal" else 450)


def test_the_map_of_layers_is_that_of_import_linter() -> None:
    contract, *_ = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [re.findall(r"\w+", layer) for layer in contract["layers"]]
    shown = re.findall(r"^\| (`[a-z].+?) \|", (ROOT / "eventlog" / "README.md").read_text(), re.MULTILINE)
    rows = [row for row in (re.findall(r"`(\w+)`", names) for names in shown) if row]
    places = [{place for place, layer in enumerate(layers) if name in layer} for row in rows for name in row]
    assert [len(found) for found in places] == [1] * len(places)
    assert sorted(places, key=min) == places
    folders = {folder.name for folder in (ROOT / "eventlog").iterdir() if (folder / "__init__.py").exists()}
    assert folders - {name for row in rows for name in row} == set()


def test_the_levels_of_tests_are_the_folders_that_there_are() -> None:
    shown = set(re.findall(r"^\| `tests/(\w+)` \|", (ROOT / "tests" / "README.md").read_text(), re.MULTILINE))
    levels = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")}
    assert levels - shown == set()
    assert {name for name in shown if not (ROOT / "tests" / name).is_dir()} == set()


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()


def _functions(file: Path) -> set[str]:
    """Names of the functions in a file; none where there is no file."""
    tree = ast.parse(file.read_text() if file.exists() else "")
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} | ({""} if file.exists() else set())


def as_pattern(shown: str) -> str:
    """A pattern for output with these lines and no others between them, however wide its columns are.

    … stands for anything in a line, (lines left out) for any lines.
    """
    pattern = ""
    for line in shown.splitlines():
        if line == LEFT_OUT:
            pattern += "(?s:.*)"
        else:
            pattern += ".*".join(map(_words, " ".join(line.split()).split("…"))) + r"[^\S\n]*(?:\n[^\S\n]*|\Z)"
    return pattern


def without_rules(printed: str) -> str:
    """Output without the lines that are drawn below the heads of tables."""
    return "".join(line for line in printed.splitlines(keepends=True) if line.strip(" ─\n") or not line.strip())


def _words(text: str) -> str:
    return r"[^\S\n]+".join(re.escape(word) for word in text.split())


def test_keys_that_pages_name_are_keys() -> None:
    named = {
        (found[1], found[2], page.name)
        for page in PAGES
        if page not in DECISIONS and page.name != "api.md"  # there it is a value of Python
        for found in re.finditer(r"`(source|publisher|web)\.([a-z]\w+)", page.read_text())
    }
    known = {
        section: {key for kind in kinds for key in kind.__struct_fields__}
        for section, kinds in sections_of(
            {"output": [{}], "source": {"compare": {}, "gbase": {}, "linter": {}}}
        ).items()
    }
    assert len(named) > 30
    assert [one for one in sorted(named) if one[1] not in known[one[0]]] == []


def test_the_page_on_upgrades_has_every_migration() -> None:
    files = (ROOT / "eventlog" / "capture" / "migrations" / "versions").glob("[0-9]*.py")
    page = (ROOT / "docs" / "how-to" / "upgrade.md").read_text()
    numbers = sorted(file.name[:4] for file in files)
    assert re.findall(r"^\| (\d{4}) \|", page, re.MULTILINE) == [one for one in numbers if one <= NEWEST_MIGRATION]
