"""Packages of strangers, as they lie where pip has put them: modules, and beside them what they offer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from eventlog.config import outputs, settings
from eventlog.core import registry


class Site:
    """A folder of installed packages on the path of this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._modules: list[str] = []

    def install(
        self, package: str, points: Mapping[str, Mapping[str, str]], module: str = "", version: str = "1.0"
    ) -> None:
        """Puts a package there: `points` by groups, and one module that is called as it is."""
        name = package.replace("-", "_")
        about = self.folder / f"{name}-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        lines = [
            f"[eventlog.{group}]\n" + "".join(f"{k} = {v}\n" for k, v in all_.items()) for group, all_ in points.items()
        ]
        (about / "entry_points.txt").write_text("\n".join(lines))
        (self.folder / f"{name}.py").write_text(dedent(module))
        self._modules.append(name)
        forget()

    def remove(self) -> None:
        for name in self._modules:
            sys.modules.pop(name, None)
        forget()


def proven_by_pytest(*arguments: Path | str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Run pytest in its own process; check that all tests pass; return its output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def forget() -> None:
    """Forget the installed plug-ins, so that all look again."""
    registry.forget()
    outputs.kind_of.cache_clear()
    settings.make_config_type.cache_clear()
    settings.source_kind.cache_clear()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    made = Site(folder)
    yield made
    monkeypatch.undo()
    made.remove()
