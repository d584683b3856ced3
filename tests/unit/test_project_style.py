"""The house rules that a machine can check: sizes, docstrings, names, reasons beside exceptions."""

from __future__ import annotations

import ast
import re
import statistics
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("eventlog", "tests", "bench", "docs", "requirements", "spark")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
PROGRAM = [file for file in FILES if file.is_relative_to(ROOT / "eventlog")]
SQL = sorted((ROOT / "eventlog").rglob("*.sql"))
Function = ast.FunctionDef | ast.AsyncFunctionDef

every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
every_test = pytest.mark.parametrize(
    "file", [file for file in FILES if file.name.startswith("test_")], ids=lambda file: str(file.relative_to(ROOT))
)


@lru_cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def functions(file: Path) -> list[Function]:
    return [node for node in ast.walk(tree(file)) if isinstance(node, Function)]


def length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


@every_file
def test_a_file_begins_with_what_it_is_for(file: Path) -> None:
    empty = file.name == "__init__.py" and not file.read_text()
    assert empty or ast.get_docstring(tree(file)), "the first line says what the file is for"


@every_file
def test_a_file_fits_into_a_head(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= 300


@every_file
def test_no_function_is_longer_than_a_screen(file: Path) -> None:
    assert [function.name for function in functions(file) if length(function) > 60] == []


def test_functions_and_files_are_small_as_a_rule() -> None:
    assert statistics.median(length(function) for file in PROGRAM for function in functions(file)) <= 8
    assert statistics.median(len(file.read_text().splitlines()) for file in PROGRAM) <= 150


@every_file
def test_names_are_the_words_of_the_domain(file: Path) -> None:
    classes = {node.name for node in ast.walk(tree(file)) if isinstance(node, ast.ClassDef)}
    assert not [name for name in classes if re.search(r"Manager|Helper|Util|^Base|Base$", name)]
    assert not re.search(r"util|helper|manager|misc|common", file.stem)


@every_file
def test_an_exception_to_a_check_has_its_reason_beside_it(file: Path) -> None:
    exception = re.compile(r"#\s*(?:type:\s*ignore\[[\w, -]+\]|noqa:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*|pragma: no \w+)(.*)")
    bare = re.compile(r"#\s*(?:type:\s*ignore(?!\[)|noqa(?!:))")
    lines = [line for line in file.read_text().splitlines() if "re.compile" not in line]
    assert [line for line in lines if bare.search(line)] == []
    found = [(line, exception.search(line)) for line in lines]
    assert [line for line, match in found if match and not re.search(r"[a-z]{3}", match[1])] == []


@every_test
def test_every_test_can_fail(file: Path) -> None:
    tests = [function for function in functions(file) if function.name.startswith("test_")]
    assert [test.name for test in tests if not _can_fail(test)] == []


@pytest.mark.parametrize("file", SQL, ids=lambda file: str(file.relative_to(ROOT)))
def test_sql_begins_with_a_line_of_purpose(file: Path) -> None:
    assert file.read_text().startswith("-- ")


def _can_fail(test: Function) -> bool:
    """An assert, a `pytest.raises`, or a call of a function that says in its name that it asserts."""
    calls = [node.func for node in ast.walk(test) if isinstance(node, ast.Call)]
    names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
    asserting = any(re.match(r"raises$|warns$|assert|check|expect", name) for name in names)
    return asserting or any(isinstance(node, ast.Assert) for node in ast.walk(test))
