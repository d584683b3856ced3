"""A database has a room: nothing outside of it knows its name, and eventlog/README.md says what a room has."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.core.registry import names
from eventlog.sql.dialect import dialects
from tests.support.sources import GROUP, nodes

pytestmark = pytest.mark.xdist_group(GROUP)

ROOT = Path(__file__).resolve().parents[3]
COMMON = ROOT / "eventlog" / "sql" / "common"
DATABASES = ROOT / "eventlog" / "databases"
NAMES = "|".join(names("databases"))
ROOMS = sorted(path.parent.name for path in DATABASES.glob("*/dialect.py"))
ALLOWED = {
    "eventlog/demo/command.py": "the demonstration makes an SQLite file for itself",
    **dict.fromkeys(
        [f"eventlog/sinks/events/debezium{part}.py" for part in ("", "_defaults", "_types")],
        "Debezium has a connector for each database, and this writes what each of them writes",
    ),
    "eventlog/testing/__init__.py": "a test gets an SQLite file of its own",
}
_named = re.compile(rf"({NAMES})([_+:].*)?", re.DOTALL).fullmatch
_row = re.compile(r"^\| `([\w.]+)` \|", re.MULTILINE)


def outside() -> list[Path]:
    """The modules that belong to no room."""
    found = [
        path for folder in ("eventlog", "spark", "streams_tools") for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    return [path for path in found if path.parent.parent != DATABASES]


def named(file: Path) -> Iterator[ast.Constant]:
    """Texts that are a database's name, or begin with one as an option or a URL does; docstrings are for people."""
    for node in nodes(file):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _named(node.value):
            yield node


def imported(file: Path) -> Iterator[str]:
    """What a module imports."""
    for node in nodes(file):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_nobody_outside_of_a_room_knows_a_databases_name() -> None:
    """Neither to compare it nor as the key of a table; what is different there is a field of the dialect."""
    found = {f"{path.relative_to(ROOT)}": [node.lineno for node in named(path)] for path in outside()}
    knowing = {path: lines for path, lines in found.items() if lines}
    assert knowing.keys() == ALLOWED.keys(), knowing


def test_each_room_comes_in_by_an_entry_point() -> None:
    assert sorted(dialect.room for dialect in dialects()) == [f"eventlog.databases.{room}" for room in ROOMS]


def test_nobody_outside_of_a_room_imports_what_is_in_one() -> None:
    inner = re.compile(rf"(eventlog\.databases\.({'|'.join(ROOMS)})|sqlalchemy\.dialects)\b").match
    found = [f"{path.relative_to(ROOT)}: {name}" for path in outside() for name in imported(path) if inner(name)]
    assert found == []


def test_a_room_is_imported_when_its_database_is_opened() -> None:
    asked = "import sys; from eventlog.sql.dialect import dialect_of; dialect_of('sqlite://'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout.split()
    assert [room for room in ROOMS if f"eventlog.databases.{room}" in loaded] == ["sqlite"]


def chapter() -> str:
    """Return what eventlog/README.md says of a new database."""
    return (ROOT / "eventlog" / "README.md").read_text().partition("## Adding a database")[2].partition("\n## ")[0]


def test_the_readme_lists_the_files_that_a_room_has() -> None:
    """SQLite's has what every room has; another one may also have what differs there of other files of `common`."""
    told = _row.findall(chapter())
    assert sorted(told) == sorted(
        path.name for path in (DATABASES / "sqlite").iterdir() if path.suffix in (".py", ".sql")
    )
    shared = {path.name for path in COMMON.iterdir()}
    for room in ROOMS:
        files = {path.name for path in (DATABASES / room).iterdir() if path.suffix in (".py", ".sql")}
        assert set(told) <= files, room
        assert {name for name in files - set(told) if name.endswith(".sql")} <= shared, room
