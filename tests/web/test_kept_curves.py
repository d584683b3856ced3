"""The file in which the page keeps its curves: it is tried, and no file of somebody else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eventlog.check.plugins import plugin_points
from eventlog.check.point import PointLevel
from eventlog.config.settings import Config
from eventlog.web.settings import WebConfig


@pytest.mark.parametrize(
    "below, said",
    [
        ("curves.json", None),
        ("no/curves.json", "there is no folder"),
        ("file/curves.json", "there is no folder"),
        ("closed/curves.json", "may not write into"),
        (".", "something else"),
        ("file", "something else"),
    ],
)
def test_the_file_of_curves_is_tried_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str, said: str | None
) -> None:
    (tmp_path / "file").write_text("[source]\n")
    (tmp_path / "closed").mkdir()
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "closed" and allowed(path, mode))
    before = sorted(tmp_path.rglob("*"))
    history = str(tmp_path / below)
    [point] = [
        point for point in plugin_points(Config(tables={"web": WebConfig(history=history)})) if point.name == "web"
    ]
    assert point.level == (PointLevel.WARNING if said else PointLevel.OK)
    assert history in point.said
    assert (said or "are kept in") in point.said
    assert sorted(tmp_path.rglob("*")) == before
    assert [point for point in plugin_points(Config()) if point.name == "web"] == []
