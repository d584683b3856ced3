"""`./dev release --dry-run`: the files of a release, a bill of materials that is whole, and nothing that leaves this machine."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "requirements" / "release.py"
RELEASE = runpy.run_path(str(SCRIPT))
PART = ROOT / "requirements" / "part.py"


@pytest.mark.in_turn
def test_a_release_is_three_wheels_their_sources_and_a_bill_and_nothing_is_uploaded(tmp_path: Path) -> None:
    made = [*RELEASE["build"](ROOT, tmp_path), RELEASE["bill"](ROOT, tmp_path)]
    now = RELEASE["version"](ROOT)
    assert sorted(path.name for path in made) == [
        f"eventlog_cdc-{now}-py3-none-any.whl",
        f"eventlog_cdc-{now}.cdx.json",
        f"eventlog_cdc-{now}.tar.gz",
        f"eventlog_spark-{now}-py3-none-any.whl",
        f"eventlog_spark-{now}.tar.gz",
        f"eventlog_streams_tools-{now}-py3-none-any.whl",
        f"eventlog_streams_tools-{now}.tar.gz",
    ]
    assert zipfile.is_zipfile(made[0])
    expect_each_package_of_the_lock(json.loads(made[-1].read_text()))
    said = "\n".join(RELEASE["told"](ROOT, made))
    assert all(path.name in said for path in made)
    for definition in RELEASE["IMAGES"]:
        assert (ROOT / definition).is_file()
        assert definition in said
    assert said.endswith("\nNothing was uploaded.")


def expect_each_package_of_the_lock(bill: dict[str, Any]) -> None:
    """With its hashes."""
    needed = subprocess.run([sys.executable, PART, "eventlog-cdc", "all"], capture_output=True, text=True, check=True)
    locked = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", needed.stdout, re.MULTILINE))
    assert len(locked) > 30
    assert {one["name"]: one["version"] for one in bill["components"]} == locked
    hashes = {
        value["content"]
        for one in bill["components"]
        for place in one["externalReferences"]
        for value in place["hashes"]
    }
    assert hashes == set(re.findall(r"--hash=sha256:(\w+)", needed.stdout))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "eventlog-cdc"
    assert bill["metadata"]["component"]["version"] == RELEASE["version"](ROOT)


def test_what_is_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "eventlog").mkdir()
    (tmp_path / "eventlog" / "version.py").write_text('VERSION = "9.9.9"\n')
    (tmp_path / "CHANGELOG.md").write_text("## [9.9.9]\n")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert len([*RELEASE["hindrances"](tmp_path)]) == 2
    (tmp_path / "eventlog" / "version.py").write_text('VERSION = "9.9.9.dev0"\n')
    assert len([*RELEASE["hindrances"](tmp_path)]) == 3
    (tmp_path / "eventlog" / "version.py").write_text('VERSION = "9.9.9"\n')
    (tmp_path / "CHANGELOG.md").write_text("## [9.9.9] - 2026-11-22\n")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n[project.urls]\nSource = 'https://example.net'\n")
    assert [*RELEASE["hindrances"](tmp_path)] == []


@pytest.mark.parametrize("words", [(), ("--upload",)])
def test_without_dry_run_it_refuses(words: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 64
    assert "--dry-run" in done.stderr


def test_the_version_is_the_last_dated_one_or_comes_after_it() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    # Nothing was given out before the first.
    last, *_ = *re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE), "0.0.0"
    unreleased = changelog.partition("## [Unreleased]")[2].partition("\n## [")[0]
    release, _, between = RELEASE["version"](ROOT).partition(".dev")
    if "- " in unreleased:  # what is built now is not what was released
        assert between
        assert _numbers(release) > _numbers(last)
        assert f"calls itself {release}.dev{between} " in unreleased
    else:
        assert (release, between) == (last, "")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
