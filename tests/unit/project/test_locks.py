"""The lock files: made from this pyproject.toml, hashed, and without any address to fetch from."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
STAMP = runpy.run_path(str(ROOT / "requirements" / "stamp.py"))
PYPROJECT = (ROOT / "pyproject.toml").read_text()
LOCKS = ("run.txt", "dev.txt")


def pinned(lock: str) -> set[tuple[str, str]]:
    """Names and versions; a name may come twice, for Pythons of different age."""
    return set(re.findall(r"^([\w.-]+)==([\w.+!]+)", (ROOT / "requirements" / lock).read_text(), re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_with_hashes_and_nothing_else_stands_there(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text()
    starts = [line for line in text.splitlines() if re.match(r"[^\s#]", line)]
    assert len(starts) == len(pinned(lock)) > 10
    assert text.count("--hash=sha256:") >= len(starts)
    assert "://" not in text


def test_the_run_set_is_part_of_the_dev_set_version_for_version() -> None:
    assert pinned("run.txt") <= pinned("dev.txt")


def test_the_locks_were_made_from_this_pyproject() -> None:
    assert STAMP["outdated"](ROOT / "requirements") == []


def test_a_lock_is_outdated_once_a_dependency_changes(tmp_path: Path) -> None:
    folder = tmp_path / "requirements"
    folder.mkdir()
    for lock in LOCKS:
        (folder / lock).write_text((ROOT / "requirements" / lock).read_text())
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    assert STAMP["outdated"](folder) == []
    (tmp_path / "pyproject.toml").write_text(PYPROJECT.replace('"click>=', '"click>=9999.'))
    assert STAMP["outdated"](folder) == list(LOCKS)
    (folder / "run.txt").unlink()
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    assert STAMP["outdated"](folder) == ["run.txt"]
