"""The way of one changed row to its document: the page names functions that are there, and the way is short."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from bench.walk import walk_of_a_row

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


MOST = {"functions": 263, "calls": 364, "changes of file": 227}
"""More than before (215, 290, 175): places, tables that cannot be read, conversions, late answers and looks that begin
where rows may still come, and now and then everywhere, are asked about with each batch,
objects that values name and SQLite's file are looked at, and two functions of ours hand each statement to the driver,
where a dozen of SQLAlchemy's did. The goals were 220, 380 and 180; `python -m bench.walk` says how far it is."""


def test_an_updated_row_takes_few_functions_calls_and_changes_of_file(tmp_path: Path) -> None:
    walk = walk_of_a_row(tmp_path)
    taken = {"functions": walk.functions, "calls": len(walk.calls), "changes of file": walk.changes}
    assert {"publisher/journal.py", "xds/write.py"} <= walk.files
    assert {name: count for name, count in taken.items() if count > MOST[name]} == {}
