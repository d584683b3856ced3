"""The house rules that a machine can check: sizes, docstrings, reasons beside exceptions."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.sources import GROUP, Function, definitions, tree

pytestmark = pytest.mark.xdist_group(GROUP)

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("eventlog", "eventlog_cdc", "tests", "bench", "docs", "requirements", "spark", "streams_tools")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))


def functions(file: Path) -> list[Function]:
    return [node for node in definitions(file) if isinstance(node, Function)]


def length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def faulty(is_fault: Callable[[Path], object]) -> list[str]:
    """The files in which something is wrong. One test asks for all of them: thousands of tests would cost half a minute."""
    return [str(file.relative_to(ROOT)) for file in FILES if is_fault(file)]


def test_a_file_begins_with_what_it_is_for() -> None:
    def says_nothing(file: Path) -> bool:
        empty = file.name == "__init__.py" and not file.read_text()
        return not empty and not ast.get_docstring(tree(file))

    assert faulty(says_nothing) == [], "the first line says what the file is for"


def test_a_file_fits_into_a_head() -> None:
    assert faulty(lambda file: len(file.read_text().splitlines()) > 550) == []


def test_no_function_is_longer_than_a_screen() -> None:
    long = {function.name for file in FILES for function in functions(file) if length(function) > 66}
    assert long == set()


def test_an_exception_to_a_check_has_its_reason_beside_it() -> None:
    exception = re.compile(r"#\s*(?:type:\s*ignore\[[\w, -]+\]|noqa:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*|pragma: no \w+)(.*)")
    bare = re.compile(r"#\s*(?:type:\s*ignore(?!\[)|noqa(?!:))")
    lines = [line for file in FILES for line in file.read_text().splitlines() if "re.compile" not in line]
    assert [line for line in lines if bare.search(line)] == []
    found = [(line, exception.search(line)) for line in lines]
    assert [line for line, match in found if match and not re.search(r"[a-z]{3}", match[1])] == []


def test_every_test_can_fail() -> None:
    tests = [
        (file.name, function)
        for file in FILES
        if file.name.startswith("test_")
        for function in functions(file)
        if function.name.startswith("test_")
    ]
    assert [(name, test.name) for name, test in tests if not _can_fail(test)] == []


def test_a_property_that_has_two_ways_counts_the_examples_of_each() -> None:
    """Else all of them may take the same one, and the other is never asked: see tests/support/shares.py."""
    properties = [
        (str(file.relative_to(ROOT)), function)
        for file in FILES
        if file.is_relative_to(ROOT / "tests" / "unit") and file.name.startswith("test_")
        for function in functions(file)
        if any("given(" in ast.unparse(one) for one in function.decorator_list)
    ]
    assert len(properties) > 100
    assert [(file, one.name) for file, one in properties if _has_two_ways(one) and "met(" not in ast.unparse(one)] == []


def _has_two_ways(function: Function) -> bool:
    """Whether the test itself asks something else of some examples than of others."""
    return any(
        isinstance(node, ast.If | ast.Try)
        or (isinstance(node, ast.Call) and ast.unparse(node.func) == "assume")
        or (isinstance(node, ast.Assert) and isinstance(node.test, ast.IfExp | ast.BoolOp))
        for node in ast.walk(function)
    )


def _can_fail(test: Function) -> bool:
    """An assert, a `pytest.raises`, or a call of a function that says in its name that it asserts."""
    calls = [node.func for node in ast.walk(test) if isinstance(node, ast.Call)]
    names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
    asserting = any(re.match(r"raises$|warns$|assert|check|expect", name) for name in names)
    return asserting or any(isinstance(node, ast.Assert) for node in ast.walk(test))
