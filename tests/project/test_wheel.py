"""The wheel holds every file of the package and nothing else; what the pages say of installing it works.

A stranger's package of the same name is not run for ours.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from eventlog.core.errors import EX_CONFIG
from eventlog.version import DISTRIBUTION, VERSION

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INSTALL = ROOT / "docs" / "how-to" / "install.md"
PACKAGED = {".py", ".pyi", ".typed", ".sql", ".rng", ".mako", ".avsc", ".html", ".css"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as `./dev build` makes it."""
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(built)


def test_the_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    there = {str(file.relative_to(ROOT)) for file in (ROOT / "eventlog").rglob("*") if file.suffix in PACKAGED}
    assert {"eventlog/py.typed", "eventlog/core/model.py"} <= there
    assert there - set(wheel.namelist()) == set()


def test_the_wheel_holds_nothing_but_the_packages(wheel: zipfile.ZipFile) -> None:
    folders = {name.partition("/")[0] for name in wheel.namelist()}
    assert folders == {"eventlog", "eventlog_spark", f"eventlog_cdc-{VERSION}.dist-info"}
    assert not [name for name in wheel.namelist() if "__pycache__" in name]


def test_the_wheel_carries_licence_command_and_extras(wheel: zipfile.ZipFile) -> None:
    about = f"eventlog_cdc-{VERSION}.dist-info"
    assert b"Apache License" in wheel.read(f"{about}/licenses/LICENSE")
    assert b"eventlog = eventlog.cli.main:run" in wheel.read(f"{about}/entry_points.txt")
    metadata = wheel.read(f"{about}/METADATA").decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert {"postgres", "oracle", "mysql", "all"} <= set(_values(metadata, "Provides-Extra"))


def _values(metadata: str, field: str) -> list[str]:
    return [line.partition(": ")[2] for line in metadata.splitlines() if line.startswith(f"{field}: ")]


def named() -> list[tuple[Path, str]]:
    """What the pages tell people to give to pip in quotes."""
    found = [(page, name) for page in PAGES for name in re.findall(r"pip install '([^']+)'", page.read_text("utf-8"))]
    assert len(found) > 5
    return found


def run(*words: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, words)), check=False, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **settings}
    )


def test_a_page_names_extras_that_there_are_and_never_the_package_of_a_stranger() -> None:
    for page, name in named():
        where, _, extras = name.removesuffix("]").partition("[")
        assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"]), f"{page.name}: {name}"
        assert where in {".", DISTRIBUTION, f"dist/eventlog_cdc-{VERSION}-py3-none-any.whl"}, f"{page.name}: {name}"
        assert where == "." or page == INSTALL, f"{page.name} has {name}, which only works where {INSTALL.name} says so"


def test_the_page_has_every_extra() -> None:
    text = INSTALL.read_text(encoding="utf-8")
    assert [extra for extra in PROJECT["optional-dependencies"] if f"| `{extra}` |" not in text] == []


def test_the_wheel_is_called_as_the_page_says_and_runs_where_it_is_installed(built: Path, tmp_path: Path) -> None:
    assert f"dist/{built.name}[" in INSTALL.read_text(encoding="utf-8")
    venv.create(tmp_path, with_pip=False, symlinks=True)
    python = tmp_path / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps")
    done = run(*pip, f"{built}[postgres]", HOME=str(tmp_path))  # pip asks Rust for its version, which writes there
    assert done.returncode == 0, done.stderr
    # Its packages come from this environment: what a folder on this path is linked to is not followed.
    needs = {"PYTHONPATH": sysconfig.get_path("purelib")}
    assert run(tmp_path / "bin" / "eventlog", "--version", **needs).stdout == f"eventlog {VERSION}\n"
    [module] = tmp_path.glob("lib/python*/site-packages/eventlog/__init__.py")
    module.write_text('__version__ = "0.11.0"\n', encoding="utf-8")
    refused = run(tmp_path / "bin" / "eventlog", "--version", **needs)
    assert refused.returncode == EX_CONFIG
    assert refused.stderr == (
        "eventlog: Files of another project stand in the place of ours: the package index knows a stranger as eventlog."
        " Uninstall both, and install this one again: pip uninstall eventlog eventlog-cdc.\n"
    )
