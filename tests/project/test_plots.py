"""The page about performance: it shows every result that is kept, with its plot, and says what was not reached."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bench import readme
from bench.plots import draw_all, draw_result
from bench.readme import README, SHOWN
from bench.report import RESULTS
from docs.plots import HERE, PAGE, figures


def test_every_result_is_shown() -> None:
    page = "\n".join(figures(RESULTS))
    for result in RESULTS.glob("*.json"):
        found = json.loads(result.read_text())
        assert f"### {found['name']}\n" in page
        assert all(target["measured"] in page for target in found["targets"])
        assert f"(plots/{found['name']}.svg)" in page


def test_results_that_are_kept_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of each kind. All of them are drawn where `./dev check` makes the pages, which takes a second for each."""
    everything = readme.kept()
    assert {one.name for one in everything} == {result.stem for result in RESULTS.glob("*.json")}
    chosen = [one for one in everything if one.name in {"rules", "growth.rules"}]
    monkeypatch.setattr("bench.plots.kept", lambda: chosen)
    drawn = {plot.stem for plot in draw_all(tmp_path) if plot.read_text().startswith("<?xml")}
    assert drawn == {"rules", "growth.rules", "soak"}


def test_no_plot_is_kept_but_the_readmes() -> None:
    kept = subprocess.run(
        ["git", "ls-files", "bench/*.svg"], capture_output=True, text=True, check=True, cwd=README.parent
    )
    assert kept.stdout.split() == [f"bench/results/{SHOWN}.svg"]
    assert f"bench/results/{SHOWN}.svg" in README.read_text(encoding="utf-8")


def test_the_readmes_plot_is_that_of_its_result(tmp_path: Path) -> None:
    [report] = [one for one in readme.kept() if one.name == SHOWN]
    assert draw_result(report, tmp_path / "drawn.svg").read_text() == (RESULTS / f"{SHOWN}.svg").read_text()


def test_what_was_not_reached_is_said(tmp_path: Path) -> None:
    kept = json.loads((RESULTS / "rules.json").read_text())
    kept["targets"] = [{"promise": "more", "measured": "less", "reached": False}]
    (tmp_path / "rules.json").write_text(json.dumps(kept))
    page = "\n".join(figures(tmp_path))
    assert "| more | less | **not reached** |" in page


def test_the_page_has_a_place_for_them() -> None:
    assert HERE in (Path(__file__).resolve().parents[2] / "docs" / PAGE).read_text()
