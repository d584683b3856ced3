"""What users read is plain: private words and old ones stay out of pages, of the help, and of what the program says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import GROUP, nodes

pytestmark = pytest.mark.xdist_group(GROUP)

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = sorted(
    file for folder in ("eventlog", "spark/eventlog_spark", "streams_tools") for file in (ROOT / folder).rglob("*.py")
)
HISTORY = ROOT / "docs" / "decisions"
"""Decisions are what was written then, as CHANGELOG is."""
SQL = sorted((ROOT / "eventlog").rglob("*.sql"))
TEMPLATES = sorted([*(ROOT / "eventlog" / "web").rglob("*.html"), *(ROOT / "eventlog" / "web").rglob("*.js")])
PAGES = [
    *(
        ROOT / name
        for name in (
            "README.md",
            "SECURITY.md",
            "CONTRIBUTING.md",
            "eventlog/README.md",
            "tests/README.md",
            "bench/mutation/README.md",
            "docs/configuration.toml",
        )
    ),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if not page.is_relative_to(HISTORY)),
]

INSTEAD = {
    r"seats?": "lock",
    r"shea(?:f|ves)": "partition",
    r"givens": "settings from the environment",
    r"errands?": "work",
    r"vitals": "health",
    r"abreast": "at the same time",
    r"haste": "speed",
    r"sift\w*": "duplicates",
    r"verdicts?": "answer",
    r"ow(?:ed|es)": "still has to get",
    r"told": "published, said, shown",
    r"anew": "again",
    r"rubbish": "other bytes",
    r"(?:batch|what it has|rows) in hand": "current batch",
    r"hand in hand": "at the same time",
    r"beforehand": "in advance",
    r"hence|whence|thereof|thereby|herein|hitherto|heretofore|aforesaid|lest|albeit": "a short sentence",
    r"some day": "at last",
    r"lets? go of": "gives back",
    r"robbed|outlives?|bears no": "a plain verb",
    r"in the midst": "in the middle",
    r"(?:broken?|breaks) off": "interrupted",
    r"beneath": "below, under",
    r"swallows?": "keep back",
    r"unsaid|needless|affairs?|contestants?|foreseen": "a word that everybody knows",
    r"(?:the|its|their|final|other|another|same|status) letters?(?! or| and|,)": "status",
    r"settl(?:e|es|ed|ing|ements?)": "acknowledge, finish",
    r"companions?": "state tables, the tables beside the log",
    r"mend(?:s|ed|ing)?": "correct, repair",
    r"(?:go|goes|going|went|gone) on": "continue",
    r"read-backs?": "query-back; a row is read back",
    r"lifetimes?": "the life of an object",
    r"said": "shown, written, reported",
    r"rooms?": "space",
    r"who(?:so)?ever|what(?:so)?ever|wherever": "who, any",
    r"meanwhile|besides": "at the same time, also",
    r"stretch(?:es)?": "range",
    r"stands?(?! for|ing| still)|stood": "is, is there",
    r"lies?|lay": "is, is put",
    r"(?:goes|go) with": "needs, belongs to",
    r"wants(?! to)": "needs",
    r"strange(?:rs?|r's)": "other, unknown",
    r"dear(?:est|er)?": "slow, expensive",
}
"""Words of this project alone, and words that one does not learn at school; beside each what to say. Keys and values that users type stay."""

FOUND = re.compile(rf"(?<![\w/.-])(?:{'|'.join(INSTEAD)})(?![\w/-])", re.IGNORECASE)
IN_PAGES = {r"in step": "up to date", r"stands? by": "is on standby"}
"""Not in pages; `in step` is a value that `eventlog outputs list --json` has."""

VALUES = ("no room", "goes on")
"""Reasons of rows: they stand in databases and are options of `eventlog log`."""

CODE = re.compile(
    r"(?ms)^( *)```(?:text|pycon|python|sql|toml|json|yaml|console|ini|xml)\n.*?^ *```$|`[^`\n]*`|\]\([^)]*\)"
)
KEPT = ("decisions/", "written by docs/generate.py", "./dev docs writes it anew")
"""In lines with these the words stand in an address or in a remark that no page shows."""


def test_pages_use_plain_words() -> None:
    lines = [(page, line) for page in PAGES for line in prose(page.read_text("utf-8")).splitlines()]
    read = [(page, line) for page, line in lines if not any(kept in line for kept in KEPT)]
    assert len(read) > 2500
    refused = re.compile(rf"{FOUND.pattern}|(?<![\w/.-])(?:{'|'.join(IN_PAGES)})(?![\w/-])", re.IGNORECASE)
    assert [f"{page.relative_to(ROOT)}: {line}" for page, line in read if refused.search(line)] == []


def prose(page: str) -> str:
    """A page without code, output, addresses of links and the reasons of rows."""
    text = CODE.sub("", page)
    return re.sub(rf"^\| (?:{'|'.join(VALUES)}) \|", "|", text, flags=re.MULTILINE)


def test_the_program_says_plain_words() -> None:
    said = [(file, text) for file in PROGRAM for text in _said(file)]
    found = [(file, text) for file in SQL for text in re.findall(r"'([^'*\n]+ [^'*\n]+)'", file.read_text("utf-8"))]
    assert len(said) > 2000
    assert len(found) > 100
    assert [f"{file.relative_to(ROOT)}: {text}" for file, text in (*said, *found) if FOUND.search(text)] == []


def test_the_page_says_plain_words() -> None:
    read = [(file, text) for file in TEMPLATES for text in _drawn(file.read_text("utf-8"))]
    assert len(read) > 500
    assert [f"{file.relative_to(ROOT)}: {text}" for file, text in read if FOUND.search(text)] == []


def _drawn(source: str) -> Iterator[str]:
    """What a template or a script shows: texts between tags, and quoted ones with a blank in them."""
    source = re.sub(r'\{#.*?#\}|^\s*//[^\n]*|class="[^"]*"', "", source, flags=re.DOTALL | re.MULTILINE)
    yield from (
        re.sub(r"\{\{.*?\}\}", "", quoted) for _, quoted in re.findall(r"""(["'`])([^"'`\n]* [^"'`\n]*)\1""", source)
    )
    if "<" in source:
        yield from re.sub(r"\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", "", source, flags=re.DOTALL).splitlines()


def _said(file: Path) -> Iterator[str]:
    """Texts with a blank in them, and the docstrings of commands; no other docstrings, which programmers read."""
    unread = {id(text) for node in nodes(file) for text in _docstrings(node)}
    for node in nodes(file):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in unread
            and " " in node.value.strip()
            and node.value not in VALUES
        ):
            yield re.sub(r"`[^`\n]*`", "", node.value)


def _docstrings(node: ast.AST) -> Iterator[ast.Constant]:
    body = getattr(node, "body", None)
    if not isinstance(body, list) or _is_command(node):
        return
    for one in body:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
            yield one.value


def _is_command(node: ast.AST) -> bool:
    marks = getattr(node, "decorator_list", ())
    return any(".command" in text or ".group" in text for text in map(ast.unparse, marks))
