"""A class name is defined once, and a numeric constant ends in its unit."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.sources import GROUP, nodes, tree

pytestmark = pytest.mark.xdist_group(GROUP)

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "eventlog"
FILES = sorted(
    file
    for folder in (PACKAGE, ROOT / "spark" / "eventlog_spark", ROOT / "streams_tools")
    for file in folder.rglob("*.py")
)
UNITS = frozenset(
    [
        "BATCHES",
        "BITS",
        "BUCKETS",
        "BYTES",
        "CHANGES",
        "CHARACTERS",
        "COLUMNS",
        "CONNECTIONS",
        "DIGITS",
        "DOCUMENTS",
        "EVENTS",
        "FORMS",
        "GAPS",
        "HOLDERS",
        "IMAGES",
        "INTERVALS",
        "JOBS",
        "KEYS",
        "LANES",
        "LEASES",
        "LETTERS",
        "LOOKS",
        "MESSAGES",
        "MILLISECONDS",
        "NOTES",
        "NUMBERS",
        "PIECES",
        "PIXELS",
        "PLACES",
        "PROBES",
        "RANGES",
        "RENEWALS",
        "ROWS",
        "SECONDS",
        "SHAPES",
        "SLOTS",
        "SPELLINGS",
        "TABLES",
        "TASKS",
        "THREADS",
        "TRANSACTIONS",
        "TRIES",
        "VALUES",
        "VERSIONS",
        "WAITS",
        "LABELS",
    ]
)
CODES = frozenset(
    [
        "OK",
        "EX_USAGE",
        "EX_DATA",
        "EX_UNAVAILABLE",
        "EX_TRY_AGAIN",
        "EX_CONFIG",
        "INTERRUPTED",
        "TERMINATED",
        "CLOSED_PIPE",
        "M_TRIM_THRESHOLD",
        "M_MMAP_THRESHOLD",
        "M_ARENA_MAX",
        "SCHEME",
        "MAJOR",
        "POSITION_GONE",
        "FIRST_SEQ",
        "START_TIME",
        "FIRST_ADDRESS",
        "BEHIND",
        "FIRST_PAIRS",
        "DEFAULT_PORT",
        "OLDEST",
        "ROWS",
        "NOTES",
        "TABLES",
        "CONFLICTS",
        "CHANGES",
        "ENDED",
        "ENDS",
        "EVERY",
    ]
)
"""Numbers that are no quantity: exit codes, codes and first places of formats, settings of a library, versions."""
ENDS = frozenset(
    ("LARGEST_NUMBER", "EVER", "LAST_NUMBER", "ALL", "BEYOND", "LARGEST", "POSITION_LIMIT", "MAX_EXPONENT")
)
"""Numbers beyond all others."""


def test_a_class_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for file in FILES:
        for node in nodes(file):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_a_number_ends_in_its_unit() -> None:
    without = [(str(file.relative_to(ROOT)), name) for file in FILES for name in _numbers(file) if not _has_unit(name)]
    assert without == []


def _has_unit(name: str) -> bool:
    plain = name.strip("_")
    last = plain.rpartition("_")[2]
    return last in UNITS or last == "PART" or name.startswith("_") or plain in CODES or plain in ENDS


def _numbers(file: Path) -> list[str]:
    """Constants of a module whose value is a number, or numbers that are reckoned with."""
    found: list[str] = []
    for node in tree(file).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id.isupper() and _is_number(getattr(node, "value", None)):
            found.append(target.id)
    return found


def _is_number(node: ast.expr | None) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)
