"""Figures of style over the program: ternaries, comments, functions that are used once, long lines, words in the docs.

python -m bench.style
"""

from __future__ import annotations

import ast
import re
import subprocess
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


if __name__ == "__main__":
    apart = ("tests", "bench", "docs")
    files = [file for file in tracked("*.py") if not set(apart) & set(file.relative_to(ROOT).parts[:-1])]
    for name, found in figures(files).items():
        goal, less = GOALS[name]
        print(f"{name}: {found:.2f} (goal: at {'most' if less else 'least'} {goal})")
    words_in_docs = sum(len(file.read_text(encoding="utf-8").split()) for file in tracked("docs/*.md"))
    print(f"words in docs: {words_in_docs:,}")
