"""What is fetched for tests has hashes in the repository, and another byte is refused in a sentence."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from tests.support import fetching
from tests.support.fetching import LEVELS, LOCKS, UnfetchedError, check_hashes, main, read_pins


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the two files that a part has, and nothing else pinned."""
    monkeypatch.setattr(fetching, "PINS", tmp_path / "pins.sha256")
    monkeypatch.setattr(fetching, "_pinning", ["--pin"])
    fetching.PINS.write_text("")
    folder = tmp_path / "came"
    folder.mkdir()
    for name in ("a.jar", "b.jar"):
        (folder / name).write_bytes(name.encode())
    check_hashes("part", folder.iterdir())
    monkeypatch.setattr(fetching, "_pinning", [])
    return folder


def test_what_is_as_it_was_is_taken(pinned: Path) -> None:
    check_hashes("part", pinned.iterdir())
    assert sorted(read_pins()["part"]) == ["a.jar", "b.jar"]


def test_a_changed_byte_is_refused_by_name(pinned: Path) -> None:
    (pinned / "b.jar").write_bytes(b"b.jaR")
    with pytest.raises(UnfetchedError, match=r"^b\.jar is another file than part has in pins\.sha256; "):
        check_hashes("part", pinned.iterdir())


def test_a_file_that_nobody_named_and_one_that_is_missing_are_refused(pinned: Path) -> None:
    (pinned / "c.jar").write_bytes(b"")
    with pytest.raises(UnfetchedError, match=r"^c\.jar is none of the files part has"):
        check_hashes("part", pinned.iterdir())
    (pinned / "c.jar").unlink()
    (pinned / "a.jar").unlink()
    with pytest.raises(UnfetchedError, match=r"^a\.jar, which is pinned for part, did not come"):
        check_hashes("part", pinned.iterdir())


def test_a_level_whose_file_was_changed_is_not_had(
    pinned: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def make(folder: Path) -> None:
        (folder / "a.jar").write_bytes(b"other")
        check_hashes("part", folder.iterdir())

    monkeypatch.setenv("EVENTLOG_FETCHED", str(tmp_path / "fetched"))
    monkeypatch.setattr(fetching, "LEVELS", {"kafka": {"kafka": make}})
    assert main(["kafka"]) == 69
    assert "dev: kafka cannot be had: a.jar is another file than part has" in capsys.readouterr().err
    assert not (tmp_path / "fetched" / "kafka").exists()


def test_all_that_maven_and_npm_bring_is_pinned() -> None:
    makers = [make for parts in LEVELS.values() for make in parts.values()]
    jars = {make.args[0] for make in makers if isinstance(make, partial) and make.func is fetching._jars}
    servers = {f"postgres-{major}" for major in fetching.POSTGRES_VERSIONS}
    images = {f"image-{pom.parent.name}" for pom in (fetching.TESTS / "containers" / "images").glob("*/pom.xml")}
    assert set(read_pins()) == jars | servers | images | {"axe", "keycloak", "registry"}


def test_each_package_of_python_has_hashes() -> None:
    for lock in LOCKS.glob("*.txt"):
        packages = re.findall(r"^[a-z0-9][^\n]*==[^\n]*(?:\n +[^\n]*)*", lock.read_text(), re.MULTILINE)
        assert packages
        assert [package for package in packages if "--hash=sha256:" not in package] == []
