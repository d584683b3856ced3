"""Every error that is raised is a sentence or two: what, where, what to do. Read from the source, one by one."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from msgspec import Struct

from eventlog.core import errors
from eventlog.core.errors import EventlogError
from tests.support.sources import GROUP, nodes

pytestmark = pytest.mark.xdist_group(GROUP)

ROOT = Path(__file__).resolve().parents[3]
FILES = [path for folder in ("eventlog", "spark", "streams_tools") for path in sorted((ROOT / folder).rglob("*.py"))]
PIECES = {"ExpressionError", "KeySyntaxError", "XmlError", "DamageError"}
"""What these say becomes part of another sentence, which adds the place."""

KINDS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, EventlogError)}
SAID = "{}"
"""Stands for a value."""


class Raised(Struct, frozen=True, kw_only=True):
    """One place at which an error is made; `hint` is None without one, and a value counts as said."""

    file: str
    line: int
    kind: str
    message: str
    hint: str | None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line} {self.kind}: {self.message} {self.hint or ''}"


def raised() -> Iterator[Raised]:
    for path in FILES:
        for scope in nodes(path):
            if isinstance(scope, ast.FunctionDef) and (calls := list(_calls(scope))):
                known = dict(_texts(scope))
                for call in calls:
                    kind = _name(call)
                    hint = next((_said(word.value, known) for word in call.keywords if word.arg == "hint"), None)
                    yield Raised(
                        file=str(path.relative_to(ROOT)),
                        line=call.lineno,
                        kind=kind,
                        message=_said(call.args[0], known) if call.args else "",
                        hint=hint,
                    )


def _calls(scope: ast.FunctionDef) -> Iterator[ast.Call]:
    """The errors that are made in this function itself."""
    waiting = deque(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.popleft()
        if isinstance(node, ast.FunctionDef):
            continue
        if isinstance(node, ast.Call) and _name(node) in KINDS:
            yield node
        waiting.extend(ast.iter_child_nodes(node))


def _name(call: ast.Call) -> str:
    """The last name of what is called."""
    called = call.func
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _texts(scope: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """What the function's own names stand for, where that is a text."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, _said(node.value, {})


def _said(node: ast.expr, known: dict[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else SAID for part in node.values)
    return known.get(node.id, SAID) if isinstance(node, ast.Name) else SAID


@cache
def every() -> list[Raised]:
    """Read by who asks, for each process of a run collects this file."""
    return list(raised())


@cache
def said() -> list[Raised]:
    """Whole sentences."""
    return [one for one in every() if one.kind not in PIECES and one.message != SAID]


WAY_OUT = re.compile(
    r"; |`|--\w|\b(must|needs?|takes?|choose|say|write|written|such as|go(es)? (back|with)|begin again|do it|convert each)\b|\?",
    re.IGNORECASE,
)
"""How a sentence says what to do, where no hint does."""

QUOTED = re.compile(r": ([^.;]*\{\}|\{\}[^.]*)\.?$|^\{\}[.:]? ?\{\}\.?$|^\{\}: \{\}|\(\{\}\)\.$|\. \{\}$")
"""A sentence that ends with what somebody else says: a system, a server, a parser, a list of what there is instead."""

RECORDS = (
    "it speaks of a record as it was found; who reads it adds the place, and the record cannot be mended by eventlog"
)
ALLOWED = {
    "eventlog/sources/gbase/layout.py": RECORDS,
    "eventlog/sources/gbase/rows.py": RECORDS,
    "eventlog/sources/gbase/files.py": RECORDS,
    "eventlog/sources/linter/exports.py": RECORDS,
    "streams_tools/eventlog_streams_tools/linter/packed.py": RECORDS,
    "eventlog/sources/linter/operations.py": RECORDS,
    "eventlog/sources/linter/rows.py": RECORDS,
    "streams_tools/eventlog_streams_tools/linter/emulator.py": RECORDS,
    "eventlog/sources/linter/telling.py": RECORDS,
    "eventlog/qlik/messages/reader.py": RECORDS,
    "eventlog/qlik/messages/kept.py": RECORDS,
    "eventlog/core/rules/screen.py": "it becomes the note of a row; docs/how-to/runbook.md has what to do, by reason",
    "eventlog/sources/stream/captured.py": "it becomes the note of an event; docs/how-to/runbook.md has what to do, by reason",
    "eventlog/sources/stream/images.py": "it becomes the note of an event; docs/how-to/runbook.md has what to do, by reason",
    "eventlog/sources/gbase/reader.py": "the server's own words go before it, and the publisher opens another session",
}
"""Files whose messages may say nothing about what to do, and why."""


def sentences(one: Raised) -> int:
    return sum(len(re.findall(r"[.?](?= [A-Z`{-])", text)) + 1 for text in (one.message, one.hint) if text)


def is_free(one: Raised) -> bool:
    return one.file in ALLOWED and ALLOWED[one.file] == RECORDS


def test_the_source_is_read() -> None:
    assert len(said()) > 350
    assert {one.kind for one in every()} >= {"ConfigError", "UsageError", "DataError", "SinkError", "SourceError"}
    assert set(ALLOWED) <= {one.file for one in every()}


def test_a_message_is_a_sentence_and_begins_with_what_it_is_about() -> None:
    """A capital, a value, an option; or a configuration key, which is written as it stands in the file."""
    begins = re.compile(
        r"[A-Z{`$-]|[a-z]+(_[a-z]+)+\b|(output|source|publisher|verify|web|query|lineage|change_tables)\.|columns |eventlog "
    )
    assert [one.place for one in said() if not begins.match(one.message) and not is_free(one)] == []
    ends = re.compile(r"[.?]$|\{\}$")
    assert [one.place for one in said() if not ends.search(one.message) and not is_free(one)] == []
    assert [one.place for one in said() if one.hint and not ends.search(one.hint)] == []


def test_a_message_with_its_hint_is_one_or_two_sentences() -> None:
    assert [one.place for one in said() if sentences(one) > 2] == []


def test_a_message_says_what_to_do() -> None:
    silent = [one for one in said() if one.hint is None and not WAY_OUT.search(one.message)]
    left = [one for one in silent if not QUOTED.search(one.message)]
    assert [one.place for one in left if one.file not in ALLOWED] == []
    assert {one.file for one in silent} >= set(ALLOWED), "a file needs no exception any more"
