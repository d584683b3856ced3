"""What `eventlog check` says of sources that are no event log: what their plug-ins find, and nothing of a log."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eventlog.check.examine import check
from eventlog.check.point import Point
from eventlog.cli.main import exit_code
from eventlog.config.settings import from_settings
from eventlog.core.errors import EX_CONFIG, EX_UNAVAILABLE
from tests.support.plugins import Site, site

__all__ = ["site"]

TIDE = """
    from msgspec import Struct

    from eventlog.plugins import Finding, SourceError, SourcePlugin


    class Tide(Struct, frozen=True, kw_only=True):
        place: str = "here"


    def findings(order):
        assert order.marks is None
        if order.settings.place == "mars":
            raise SourceError("There is no water on mars.", hint="Try the moon.")
        yield Finding(message=f"{order.settings.place} has water")
        yield Finding(message="the moon is new", mend="Wait.")


    def plugin(check=None):
        return SourcePlugin(
            settings=Tide, build=lambda order: None, marks=lambda settings: "tide.json", title="tide", check=check
        )


    TIDE = plugin(findings)
    EBB = plugin()
"""


def checked(source: Mapping[str, Any]) -> list[Point]:
    settings = {"source": source, "output": [{"sink": "stdout"}]}
    first, *found, output = (
        point for point in check(lambda: from_settings(settings, {}, origin="x")) if point.name != "plug-ins"
    )
    assert (first.said, output.name) == (f"1 output, source {source['kind']}", "output 1")
    return found


def said(source: Mapping[str, Any]) -> tuple[str, str, str | None, int]:
    [point] = checked(source)
    assert point.name == "source"
    return str(point.level), point.said, point.mend, point.exit_code


def test_a_strangers_source_says_what_it_finds(site: Site) -> None:
    points = {"sources": {"tide": "eventlog_tide:TIDE", "ebb": "eventlog_tide:EBB"}}
    site.install("eventlog-tide", points, TIDE)
    found = checked({"kind": "tide"})
    assert [(str(point.level), point.said, point.mend) for point in found] == [
        ("ok", "here has water", None),
        ("warning", "the moon is new", "Wait."),
    ]
    mars = said({"kind": "tide", "tide": {"place": "mars"}})
    assert mars == ("failure", "There is no water on mars.", "Try the moon.", EX_UNAVAILABLE)
    assert said({"kind": "ebb"})[1] == "the source ebb has nothing to try"


def test_a_comparison_wants_tables_with_keys(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("CREATE TABLE usr (idu INTEGER PRIMARY KEY)")
        database.execute("CREATE TABLE odd (a TEXT)")
    keyed = said({"kind": "compare", "url": url, "tables": ["usr"]})
    assert keyed == ("ok", f"1 table of {url} can be compared", None, 0)
    without = said({"kind": "compare", "url": url, "tables": ["odd"]})
    assert without[:2] == ("failure", "odd has no key, so its rows cannot be compared.")
    gone = said({"kind": "compare", "url": f"sqlite:///{tmp_path / 'b.db'}"})
    assert (gone[0], gone[3]) == ("failure", EX_CONFIG)


def test_a_queue_of_linter_is_read(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    assert exit_code(["emulate", "linter", "--database", url]) == 0
    assert said({"kind": "linter", "url": url}) == ("ok", "DISPATCH_QUEUE can be read", None, 0)
    level, sentence, _, code = said({"kind": "linter", "url": url, "linter": {"queue": "Q"}})
    assert (level, code) == ("failure", EX_UNAVAILABLE)
    assert "no such table: Q" in sentence


@pytest.mark.parametrize("files", [0, 2])
def test_captured_files_of_gbase_are_opened(files: int, tmp_path: Path) -> None:
    folder = tmp_path / "captured"
    level = "failure"
    if files:
        level = "ok"
        folder.mkdir()
        for number in range(files):
            (folder / f"{number}.bin").write_bytes(b"")
    source = {"kind": "gbase", "gbase": {"path": str(folder)}}
    found = said(source)
    assert found[0] == level
    assert found[1] == (
        f"{folder}: 2 files can be read" if files else f"{folder} cannot be read: No such file or directory."
    )
