"""What installed packages offer is read as importlib.metadata reads it, from folders and from archives."""

from __future__ import annotations

import sys
import zipfile
from importlib.metadata import EntryPoint, distributions
from pathlib import Path

import pytest

from eventlog.core import registry
from eventlog.core.points import OfferedValue, read_points
from tests.support.plugins import Site, site

__all__ = ["site"]


def by_the_library() -> set[tuple[str, ...]]:
    """All entry points of ours, as Python's library finds them."""
    names, found = set[str](), set[tuple[str, ...]]()
    for one in distributions():
        name = one.name.lower().replace("_", "-")
        if name not in names:  # of one that stands there twice the first counts
            names.add(name)
            found |= {(one.name, one.version, *_words(point)) for point in one.entry_points}
    return {words for words in found if words[2].startswith("eventlog.")}


def _words(point: EntryPoint | OfferedValue) -> tuple[str, str, str, str]:
    return point.group, point.name, point.value.partition("[")[0].strip(), point.module


def by_us() -> set[tuple[str, ...]]:
    points = [point for point in read_points() if point.group.startswith("eventlog.")]
    return {(point.package, point.version, *_words(point)) for point in points}


def test_the_library_finds_the_same(site: Site) -> None:
    assert len(by_us()) > 50
    assert by_us() == by_the_library()
    site.install("eventlog-tide", {"commands": {"tide": "eventlog_tide:Sea.tide [moon]"}, "sinks": {"a b": "x.y:z"}})
    site.install("Eventlog.Moon", {"policies": {"wet": "eventlog_tide : Sea"}}, version="2.0rc1")
    file = site.folder / "eventlog_tide-1.0.dist-info" / "entry_points.txt"
    file.write_text(f"{file.read_text()}# no = point:x\n\n[eventlog.sinks]\ntwo=y:z\n")
    assert by_us() == by_the_library()
    assert {words[:2] for words in by_us()} >= {("eventlog-tide", "1.0"), ("Eventlog.Moon", "2.0rc1")}


def test_of_a_package_that_stands_there_twice_the_first_counts(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install("eventlog-tide", {"commands": {"tide": "first:x"}})
    later = Site(tmp_path / "later")
    later.folder.mkdir()
    later.install("eventlog_tide", {"commands": {"tide": "second:x"}}, version="2")
    monkeypatch.setattr(sys, "path", [*sys.path, str(later.folder), str(tmp_path / "nowhere")])
    assert by_us() == by_the_library()
    assert ("eventlog-tide", "1.0", "eventlog.commands", "tide", "first:x", "first") in by_us()


def test_packages_in_an_archive_are_found(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.install("eventlog-tide", {"commands": {"tide": "eventlog_tide:x"}}, "x = 7")
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in site.folder.rglob("*"):
            packed.write(file, file.relative_to(site.folder))
    monkeypatch.setattr(sys, "path", [str(archive), *[place for place in sys.path if place != str(site.folder)]])
    registry.forget()
    assert by_us() == by_the_library()
    [tide] = [offer for offer in registry.offers("commands") if offer.name == "tide"]
    assert (tide.package, tide.points[0].load()) == ("eventlog-tide", 7)
