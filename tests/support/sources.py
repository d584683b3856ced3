"""The project's sources, as tests read them that judge what is written: each file is parsed once for all of these."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

GROUP: Final = "sources"
"""For pytest-xdist: the tests that read them run in one process, which has them."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def nodes(file: Path) -> list[ast.AST]:
    """Return all nodes in a file, as `ast.walk` finds them."""
    return list(ast.walk(tree(file)))


@cache
def definitions(file: Path) -> list[Function | ast.ClassDef]:
    return [node for node in nodes(file) if isinstance(node, Function | ast.ClassDef)]


def forget() -> None:
    """Drop the caches: hundreds of megabytes that Python's collector scans again and again."""
    tree.cache_clear()
    nodes.cache_clear()
    definitions.cache_clear()
