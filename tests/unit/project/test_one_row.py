"""The page that follows one row names functions that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "explanation" / "one-row.md"


def functions(file: str) -> set[str]:
    """The functions, classes and methods of a module, as the page names them."""
    found = set[str]()
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    return found


def test_each_step_names_a_function_that_is_there() -> None:
    steps = re.findall(r"`(eventlog/[a-z_/]+\.py)` `([A-Za-z_.]+)`", PAGE.read_text())
    assert len(steps) >= 11
    missing = [f"{file}: {name}" for file, name in steps if name not in functions(file)]
    assert not missing
