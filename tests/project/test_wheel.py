"""The wheel: holds every file of the package and nothing else, and says how it may be used."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from eventlog.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
PACKAGED = {".py", ".pyi", ".typed", ".sql", ".rng", ".mako", ".avsc", ".html", ".css"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    there = {str(file.relative_to(ROOT)) for file in (ROOT / "eventlog").rglob("*") if file.suffix in PACKAGED}
    assert {"eventlog/py.typed", "eventlog/core/model.py"} <= there
    assert there - set(wheel.namelist()) == set()


def test_the_wheel_holds_nothing_but_the_packages(wheel: zipfile.ZipFile) -> None:
    folders = {name.partition("/")[0] for name in wheel.namelist()}
    assert folders == {"eventlog", "eventlog_spark", f"eventlog-{VERSION}.dist-info"}
    assert not [name for name in wheel.namelist() if "__pycache__" in name]


def test_the_wheel_carries_licence_command_and_extras(wheel: zipfile.ZipFile) -> None:
    about = f"eventlog-{VERSION}.dist-info"
    assert b"Apache License" in wheel.read(f"{about}/licenses/LICENSE")
    assert b"eventlog = eventlog.cli.main:run" in wheel.read(f"{about}/entry_points.txt")
    metadata = wheel.read(f"{about}/METADATA").decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert {"postgres", "oracle", "mysql", "all"} <= set(_values(metadata, "Provides-Extra"))


def _values(metadata: str, field: str) -> list[str]:
    return [line.partition(": ")[2] for line in metadata.splitlines() if line.startswith(f"{field}: ")]
