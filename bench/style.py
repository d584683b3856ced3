"""Figures of style over the program, beside those of packages that are good to read: ternaries, comments, functions that
are used once, long lines; and words in the docs.

python -m bench.style
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
LONG_COLUMNS = 100
GOALS = {
    "ternaries a function": (0.2, True),
    "comment lines %": (3.0, False),
    "private functions used once %": (6.0, True),
    "lines over 100 columns %": (2.0, True),
}
"""Each with its goal, and whether less is better."""

PEERS = ("procrastinate==3.9.0", "psycopg==3.3.9", "h11==0.16.0", "alembic==1.20.1")
"""From the package index, without what they need: nothing of them runs."""


def tracked(pattern: str) -> list[Path]:
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", pattern], capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split()]


def figures(files: list[Path]) -> dict[str, float]:
    texts = [file.read_text(encoding="utf-8") for file in files]
    lines = [line for text in texts for line in text.splitlines()]
    nodes = [node for text in texts for node in ast.walk(ast.parse(text))]
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    private = Counter(name for name in functions if name.startswith("_") and not name.startswith("__"))
    words = Counter(word for text in texts for word in re.findall(r"\b_\w+", text))
    used_once = sum(count == 1 and words[name] == 2 for name, count in private.items())
    comments = sum(line.strip().startswith("#") for line in lines)
    return {
        "ternaries a function": sum(isinstance(node, ast.IfExp) for node in nodes) / len(functions),
        "comment lines %": 100 * comments / len(lines),
        "private functions used once %": 100 * used_once / len(functions),
        "lines over 100 columns %": 100 * sum(len(line) > LONG_COLUMNS for line in lines) / len(lines),
    }


def peers(folder: Path) -> dict[str, dict[str, float]]:
    """The figures of each peer, as its wheel has it."""
    found = {}
    for peer in PEERS:
        name = peer.partition("==")[0]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / name), peer]
        subprocess.run(command, check=True)
        found[peer] = figures(sorted((folder / name / name).rglob("*.py")))
    return found


if __name__ == "__main__":
    apart = ("tests", "bench", "docs")
    files = [file for file in tracked("*.py") if not set(apart) & set(file.relative_to(ROOT).parts[:-1])]
    with tempfile.TemporaryDirectory() as folder:
        columns = {"eventlog": figures(files), **peers(Path(folder))}
    print(f"{'':30}{'goal':>8}", *(f"{name:>22}" for name in columns))
    for name, (goal, less) in GOALS.items():
        values = [f"{column[name]:22.2f}" for column in columns.values()]
        print(f"{name:30}{'<=' if less else '>=':>4}{goal:4}", *values)
    words_in_docs = sum(len(file.read_text(encoding="utf-8").split()) for file in tracked("docs/*.md"))
    print(f"words in docs: {words_in_docs:,}")
